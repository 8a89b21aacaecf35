"""What a refusal must look like."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import version
from typing import Any

import pytest
from packaging.version import Version

from tensorsplit import SplitError


@contextmanager
def refused(code: str, *words: object, operator: str = "", parameter: str = "") -> Iterator[None]:
    """Expect a `SplitError` with this code whose message is one line and holds all these words."""
    with pytest.raises(SplitError) as caught:
        yield
    error = caught.value
    message = str(error)
    assert error.code == code, message
    assert "\n" not in message
    assert len(message) < 1000
    if operator:
        assert error.operator == operator, message
    if parameter:
        assert error.parameter == parameter, message
    for word in words:
        assert str(word) in message, message


def refused_while_tracing(message: str) -> AbstractContextManager[Any]:
    """Expect what ``torch.compile`` raises for a `SplitError` in one graph, with this message.

    Before 2.13, torch names the class of the error only.
    """
    is_shown = Version(version("torch")) >= Version("2.13")
    return pytest.raises(Exception, match=message if is_shown else "_TracedError")
