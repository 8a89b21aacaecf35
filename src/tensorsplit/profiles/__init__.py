"""What engines were measured not to run, or to run wrongly: one file for each engine and version.

A file says who measured what, when and how; its entries name features of nodes and models by the
vocabulary of `tensorsplit.models.features`. What an engine can't do is data here and code nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.resources import files
from typing import Any

from tensorsplit.errors import SplitError, show
from tensorsplit.kinds import UNKNOWN_ENGINE

VERDICTS = ("refused", "wrong", "crash", "unsupported")
"""The engine refuses, gives wrong results, or its process dies; or a target leaves the feature
out."""

EXTENTS = ("all", "some", "edge", "values")
"""How much is affected: everything; ordinary inputs among others; only inputs that are rare or
wrong, such as a dimension of 0; only elements of large values, whatever operator moves them."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that an engine was measured not to do right.

    Attributes:
        feature: A feature of a node or a model.
        verdict: One of `VERDICTS`.
        extent: One of `EXTENTS`.
        note: What was seen, in a sentence.
        operators: The operator types that it was seen with; empty for any.
        values: The values of the feature that it was seen with; empty for any.
    """

    feature: str
    verdict: str
    extent: str
    note: str
    operators: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def holds(self, features: Mapping[str, Any]) -> bool:
        """Whether it is about something with these features."""
        return (
            self.feature in features
            and (not self.operators or features.get("operator") in self.operators)
            and (not self.values or features[self.feature] in self.values)
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of one version of an engine.

    Attributes:
        engine: The engine's name, or that of a target that can't be run.
        version: The version that was measured; empty for a target.
        measured: Who measured, when and how; by name.
        entries: What it was measured not to do right.
    """

    engine: str
    version: str
    measured: Mapping[str, str]
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """Such as ``onnxruntime 1.31.1``."""
        return f"{self.engine} {self.version}".strip()

    def about(self, features: Mapping[str, Any]) -> Iterator[Entry]:
        """The entries that hold for something with these features."""
        return (entry for entry in self.entries if entry.holds(features))


def targets() -> tuple[str, ...]:
    """The engines and targets that there are profiles of."""
    return tuple(sorted({engine for engine, _ in _names()}))


def load(engine: str, version: str | None = None) -> Profile:
    """The profile of an engine.

    Args:
        engine: The engine's name.
        version: The version that is in use; the newest profile that is not newer than it is
            taken, else the oldest. None stands for the version that is installed, or for the
            newest if none is.

    Raises:
        SplitError: TS601 if no profile of the engine exists.
    """
    versions = sorted((number for name, number in _names() if name == engine), key=_key)
    if not versions:
        raise SplitError(
            UNKNOWN_ENGINE,
            f"nothing was measured of {show(engine)}",
            f"the targets are {', '.join(targets())}",
            parameter="target",
        )
    in_use = version or _installed(engine)
    usable = [number for number in versions if in_use is None or _key(number) <= _key(in_use)]
    return _read(engine, usable[-1] if usable else versions[0])


def _installed(engine: str) -> str | None:
    try:
        return metadata.version(engine)
    except metadata.PackageNotFoundError:
        return None


@cache
def _names() -> tuple[tuple[str, str], ...]:
    """The engine and version of each file, by its name: ``ENGINE-VERSION.json``."""
    names = [entry.name for entry in files(__package__).iterdir() if entry.name.endswith(".json")]
    pairs = (name.removesuffix(".json").partition("-") for name in names)
    return tuple((engine, version) for engine, _, version in pairs)


@cache
def _read(engine: str, version: str) -> Profile:
    name = f"{engine}-{version}.json" if version else f"{engine}.json"
    content = json.loads(files(__package__).joinpath(name).read_text("utf-8"))
    entries = tuple(
        Entry(
            entry["feature"],
            entry["verdict"],
            entry["extent"],
            entry["note"],
            tuple(entry.get("operators", ())),
            tuple(entry.get("values", ())),
        )
        for entry in content["entries"]
    )
    return Profile(engine, version, content["measured"], entries)


def _key(version: str) -> tuple[int, ...]:
    """A version as numbers to compare; what follows the first letter is ignored."""
    numbers = []
    for piece in version.split("."):
        digits = piece[: len(piece) - len(piece.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
