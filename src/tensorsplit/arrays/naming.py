"""Parts with names: a dict of lengths in, a dict of parts out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Any

from tensorsplit.core.errors import OTHER_NAMES, UNUSABLE_NAMES, Kind, SplitError, count_of, show
from tensorsplit.core.rules import MAX_PARTS

_MOST_SHOWN = 8


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
    try:  # not `suppress`, which torch 2.8 can't compile
        iterated = iter(given)  # type: ignore[call-overload]  # it refuses what is not iterable
    except (TypeError, NotImplementedError):  # of arrays without an axis, and views of memory
        iterated = None
    if iterated is None or isinstance(given, (str, bytes)):
        problem = f"it is {show(given)}"
    else:
        items: list[str] = []
        for item in iterated:
            if not isinstance(item, str):
                problem = f"{show(item)} is not a string"
                break
            if len(items) == MAX_PARTS:
                problem = f"there are more than {MAX_PARTS}"
                break
            items.append(item)
        else:
            return tuple(items)
    raise SplitError(kind, problem, fix, operator=operator, parameter=parameter)


def named_call(
    lengths: Mapping[Any, object], out: object, parameter: str
) -> tuple[tuple[str, ...], tuple[Any, ...], Any]:
    """Return the names, the lengths, and the buffers in the same order (TS315, TS316)."""
    names = names_of(lengths, parameter)
    if isinstance(out, Mapping):
        out = in_order(out, names, "out")
    return names, tuple(lengths.values()), out


def check_count(names: tuple[str, ...], count: int, operator: str) -> None:
    """Refuse names of which there are not as many as parts (TS316)."""
    if len(names) != count:
        problem, fix = count_of(len(names), "name"), f"give {count_of(count, 'name')}"
        raise SplitError(UNUSABLE_NAMES, problem, fix, operator=operator, parameter="names")


def in_order(
    given: Mapping[Any, object], names: tuple[str, ...], parameter: str, operator: str | None = None
) -> list[Any]:
    """Return the values of a dict in the order of the names, which are all it has (TS315)."""
    wanted = set(names)
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in wanted]
    if not missing and not unknown:
        return [given[name] for name in names]
    what = [
        f"{kind} {', '.join(map(show, islice(found, _MOST_SHOWN)))}"
        for kind, found in (("without", missing), ("with the unknown", unknown))
        if found
    ]
    rest = ", ..." if len(names) > _MOST_SHOWN else ""
    fix = f"the parts are {', '.join(map(show, names[:_MOST_SHOWN]))}{rest}"
    problem = f"it is a dict {' and '.join(what)}"
    raise SplitError(OTHER_NAMES, problem, fix, operator=operator, parameter=parameter)
