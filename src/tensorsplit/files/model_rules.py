"""Rules that know models: the files of them that come along, and what ``config.json`` completes.

Where a rule wants a number, it may name a key of the model's configuration, or several of which the
first that is there counts: ``"num_key_value_heads or num_attention_heads"``. The table ``[config]``
lists the values that a key may have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from tensorsplit.core.errors import (
    NOT_CONFIGURED,
    OTHER_FAMILY,
    SplitError,
    short_name,
    show,
    show_path,
)
from tensorsplit.core.given import is_a, is_mapping
from tensorsplit.files.sources import check_regular, local_path, refusing_access
from tensorsplit.storage.paths import fix_unread, why_unread

_NUMBERS = (
    *("split", "segments", "groups", "heads", "num_outputs", "multiple_of"),
    *("block", "packed", "pad_to", "pad_each_to", "pad_in"),
)
_CONFIG = "config.json"
_LARGEST_CONFIG = 1 << 20
_FIX = "put the config.json of the model there, or write numbers into a copy of the rules"
_MOST_SHOWN = 8
_SUFFIX = ".toml"


@cache
def built_in() -> Mapping[str, str]:
    """Return the text of each file of rules that comes along, by its name."""
    folder = resources.files("tensorsplit.files") / "rules"
    files = {each.name: each for each in folder.iterdir() if each.name.endswith(_SUFFIX)}
    return {
        name.removesuffix(_SUFFIX): files[name].read_text(encoding="utf-8")
        for name in sorted(files)
    }


def title_of(text: str) -> str:
    """Return the title of a file of rules, which is in its first line."""
    return text.partition("\n")[0].removeprefix("# ")


def completed(tables: Mapping[str, object], source: str) -> dict[str, object]:
    """Return rules with the numbers that the configuration beside a source holds.

    Raises:
        SplitError: TS717 if it is not there or does not say a number, TS718 if it is that of
            another model than the rules are for.
    """
    found = {key: value for key, value in tables.items() if key != "config"}
    config = _Config(source)
    wanted = tables.get("config", {})
    if is_mapping(wanted):
        for key, values in wanted.items():
            config.check(key, values if isinstance(values, list) else [values])
    for kind in ("split", "shard"):
        rules = found.get(kind)
        if is_a(rules, list):
            found[kind] = [_with_numbers(each, config) for each in rules]
    return found


def _with_numbers(rule: object, config: _Config) -> object:
    """Return a rule whose numbers are numbers; what else is wrong with it is found later."""
    if not is_mapping(rule):
        return rule
    return {key: config.numbers(value) if key in _NUMBERS else value for key, value in rule.items()}


class _Config:
    """The configuration beside a source, which is read when it is first needed."""

    def __init__(self, source: str) -> None:
        self._source = source
        place = Path(source)
        self._path = (place if place.is_dir() else place.parent) / _CONFIG
        self._held: dict[str, object] | None = None

    def check(self, key: str, values: list[object]) -> None:
        """Refuse (TS718) another value of a key; one that is not there is false."""
        value = self._read().get(key)
        if not any(
            (value or False) == each and type(value or False) is type(each) for each in values
        ):
            raise SplitError(
                OTHER_FAMILY,
                f"{show_path(str(self._path))}: {short_name(key)} is {show(value)}, and the rules"
                f" are for {' or '.join(map(show, values[:_MOST_SHOWN]))}",
                "choose the rules of this model; tensorsplit rules lists the built-in ones",
                parameter="rules",
            )

    def numbers(self, value: object) -> Any:
        """Return a value, or each of a list, in which keys are numbers (TS717)."""
        if is_a(value, list):
            return [self.numbers(each) for each in value]
        return self._number(value) if is_a(value, str) else value

    def _number(self, keys: str) -> int:
        held = self._read()
        value = next((held[key] for key in keys.split(" or ") if held.get(key) is not None), None)
        if type(value) is not int or value < 1:
            problem = f"{short_name(keys)} is {show(value)}, and should be a number, at least 1"
            raise self._not_configured(problem)
        return value

    def _read(self) -> dict[str, object]:
        if self._held is None:
            try:
                check_regular(self._path)
                if self._path.stat().st_size > _LARGEST_CONFIG:
                    raise ValueError(f"it is larger than {_LARGEST_CONFIG} bytes")
                held = json.loads(self._path.read_bytes())
                if not isinstance(held, dict):
                    raise TypeError("it is not an object")
            except FileNotFoundError:
                if (place := local_path(self._source)) is not None:
                    with refusing_access(self._source):
                        place.stat()  # the source itself may be missing
                raise self._not_configured("there is no such file") from None
            except (OSError, ValueError, TypeError, RecursionError) as error:
                problem = why_unread(error, str(self._path))
                raise self._not_configured(problem, fix_unread(error, _FIX)) from None
            self._held = held
        return self._held

    def _not_configured(self, problem: str, fix: str = _FIX) -> SplitError:
        problem = f"{show_path(str(self._path))}: {problem}"
        return SplitError(NOT_CONFIGURED, problem, fix, parameter="rules")
