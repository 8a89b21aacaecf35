"""How the process of an engine came to its end."""

from __future__ import annotations

import os
import signal
from typing import IO

_LONGEST = 200


class ProcessDied(Exception):  # noqa: N818 - what happened, in the past tense
    """The process of an engine died, or was stopped, before it answered.

    Args:
        status: The exit status, negative for a signal; None if the process is not known to have
            ended.
        words: The last line that it wrote to its error stream.
        seconds: How long it was given, if it was stopped because it took longer; else None.
    """

    def __init__(self, status: int | None, words: str = "", seconds: float | None = None) -> None:
        super().__init__(status, words, seconds)
        self.status = status
        self.words = words
        self.seconds = seconds

    @property
    def signal(self) -> str:
        """The signal that ended it, such as ``SIGFPE``; empty if none did."""
        if self.seconds is not None or self.status is None or self.status >= 0:
            return ""
        try:
            return signal.Signals(-self.status).name
        except ValueError:
            return f"signal {-self.status}"

    def __str__(self) -> str:
        if self.seconds is not None:
            return f"gave no answer within {self.seconds:g} s and was stopped"
        said = f", having said: {self.words}" if self.words else ""
        if self.status is None:
            return f"gave an answer that is none{said}"
        if self.status >= 0:
            return f"ended with exit status {self.status}{said}"
        name = self.signal
        number = "" if name.startswith("signal") else f" (signal {-self.status})"
        return f"was ended by {name}{number}{said}"


def last_words(stream: IO[bytes]) -> str:
    """The last line of an error stream."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - 2000))
    lines = stream.read().decode("utf-8", "replace").split("\n")
    said = [line.strip() for line in lines if line.strip()]
    return said[-1][:_LONGEST] if said else ""
