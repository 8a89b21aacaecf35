"""The names of new tensors, and of the files that are called by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tensorsplit.core.errors import PART_NAMES, SplitError, show
from tensorsplit.files.formats import Recast
from tensorsplit.storage.paths import encoded_name

_LONGEST_NAME = 240


def fill(name: str, matched: Sequence[str]) -> str:
    """Return a name with what each ``*`` stands for (TS706 if there are more or fewer)."""
    pieces = name.split("*")
    if len(pieces) == 1:
        return name
    if len(pieces) != len(matched) + 1:
        raise SplitError(
            PART_NAMES,
            f"{show(name)} holds {len(pieces) - 1} *, and the pattern leaves {len(matched)} open",
            "give as many",
            parameter="names",
        )
    return pieces[0] + "".join(map("".join, zip(matched, pieces[1:], strict=True)))


def check_names(changes: Iterable[Recast]) -> None:
    """Refuse (TS706) names that no format can write, and two tensors of one name for a rank."""
    ranks: dict[str, set[int | None]] = {}
    for output in (output for change in changes for output in change.after.outputs):
        name, taken = output.name, ranks.setdefault(output.name, set())
        if not name or any("\ud800" <= char <= "\udfff" for char in name):
            problem, fix = f"{show(name)} is not a name", "give one in UTF-8"
        elif taken and (output.rank is None or not taken.isdisjoint((output.rank, None))):
            problem = f"two tensors would be called {show(name)}"
            fix = "give each a name of its own; * stands for the name of the tensor"
        else:
            taken.add(output.rank)
            continue
        raise SplitError(PART_NAMES, problem, fix, parameter="names")


def check_file_names(names: Iterable[str]) -> None:
    """Refuse (TS706) names that are not those of different files in one folder."""
    for name, count in Counter(names).items():
        octets = None if name in ("", ".", "..") or "/" in name else encoded_name(name)
        if octets is None or "\\" in name or len(octets) > _LONGEST_NAME:
            problem = f"{show(name)} can't be the name of a file"
            fix = f"give names without slashes, of at most {_LONGEST_NAME} bytes"
        elif count > 1:
            problem = f"{count} files would be called {show(name)}"
            fix = "give each a name of its own"
        else:
            continue
        raise SplitError(PART_NAMES, problem, fix, parameter="names")
