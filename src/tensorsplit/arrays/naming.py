"""Parts with names: a dict of lengths in, a dict of parts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tensorsplit.core.errors import OTHER_NAMES, UNUSABLE_NAMES, Kind, SplitError, count_of, show
from tensorsplit.core.given import as_dict, as_string, is_a, is_mapping

_MOST_SHOWN = 8
_MOST = 1 << 21


def names_of(given: object, parameter: str, operator: str | None = None) -> tuple[str, ...]:
    """Return names in order, which are different strings (TS316).

    They are those of a dict of lengths, or given alone.
    """
    fix = "give a different string for each part"
    names = strings_of(given, UNUSABLE_NAMES, fix, parameter=parameter, operator=operator)
    if len({*names}) == len(names):
        return names
    twice = next(name for name, count in Counter(names).items() if count > 1)
    problem = f"{show(twice)} is there twice"
    raise SplitError(UNUSABLE_NAMES, problem, fix, operator=operator, parameter=parameter)


def strings_of(
    given: object, kind: Kind, fix: str, *, parameter: str, operator: str | None = None
) -> tuple[str, ...]:
    """Return strings in order; refuse all else, such as one string, whose letters are not meant.

    What has no end is refused too: at the first item that is not a string, or that is too many.
    """
    items: list[str] = []
    iterated: Any = () if is_a(given, (str, bytes)) else given
    problem = ""
    try:  # not `suppress`, which torch 2.8 can't compile
        for item in iterated:
            name = as_string(item)
            if name is None:
                problem = f"{show(item)} is not a string"
                break
            if len(items) == _MOST:
                problem = f"there are more than {_MOST}"
                break
            items.append(name)
        else:
            if iterated is given:
                return tuple(items)
    except Exception:  # noqa: BLE001, S110 - someone else's iteration may raise anything
        pass
    problem = problem or f"it is {show(given)}"
    raise SplitError(kind, problem, fix, operator=operator, parameter=parameter)


def named_call(
    lengths: Mapping[object, object], out: object, parameter: str
) -> tuple[tuple[str, ...], tuple[Any, ...], Any]:
    """Return the names, the lengths, and the buffers in the same order (TS315, TS316)."""
    names, values = names_and_lengths(lengths, parameter)
    if is_mapping(out):
        out = in_order(out, names, "out")
    return names, values, out


def names_and_lengths(
    lengths: Mapping[object, object], parameter: str, operator: str | None = None
) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return the names of parts and their lengths (TS316)."""
    held = _held(lengths, UNUSABLE_NAMES, parameter, operator)
    return names_of(held, parameter, operator), tuple(held.values())


def _held(
    given: object, kind: Kind, parameter: str, operator: str | None = None
) -> dict[object, object]:
    """Return a mapping as a dict; refuse one that has no end, or can't be iterated."""
    held = as_dict(given)
    if held is None:
        problem, fix = f"it is of type {type(given).__name__}", "give a dict"
        raise SplitError(kind, problem, fix, operator=operator, parameter=parameter)
    return held


def check_count(names: tuple[str, ...], count: int, operator: str) -> None:
    """Refuse names of which there are not as many as parts (TS316)."""
    if len(names) != count:
        problem, fix = count_of(len(names), "name"), f"give {count_of(count, 'name')}"
        raise SplitError(UNUSABLE_NAMES, problem, fix, operator=operator, parameter="names")


def in_order(
    given: Mapping[object, object],
    names: tuple[str, ...],
    parameter: str,
    operator: str | None = None,
) -> list[Any]:
    """Return the values of a dict in the order of the names, which are all it has (TS315)."""
    wanted, held = set(names), _held(given, OTHER_NAMES, parameter, operator)
    missing = [name for name in names if name not in held]
    unknown = [name for name in held if name not in wanted]
    if not missing and not unknown:
        return [held[name] for name in names]
    what = [
        f"{kind} {', '.join(map(show, islice(found, _MOST_SHOWN)))}"
        for kind, found in (("without", missing), ("with the unknown", unknown))
        if found
    ]
    rest = ", ..." if len(names) > _MOST_SHOWN else ""
    fix = f"the parts are {', '.join(map(show, names[:_MOST_SHOWN]))}{rest}"
    problem = f"it is a dict {' and '.join(what)}"
    raise SplitError(OTHER_NAMES, problem, fix, operator=operator, parameter=parameter)
