"""The table of the operator records, and look-up in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, SupportsIndex

from tensorsplit.core.dimensions import as_index
from tensorsplit.core.errors import (
    UNKNOWN_OPERATOR,
    USAGE,
    SplitError,
    did_you_mean,
    show,
    show_int,
)
from tensorsplit.core.given import as_string, is_a
from tensorsplit.core.records import onnx, openvino
from tensorsplit.core.records.dialects import DIALECTS
from tensorsplit.core.records.names import DialectName, OperatorName
from tensorsplit.core.schema import Operator

NEWEST_OPSET = onnx.NEWEST_OPSET

_DIGITS = 4  # of a version


class OperatorTable(Mapping[str, Operator]):
    """The operator records by identifier, in the order of vendor, name and version."""

    def __init__(self, records: tuple[Operator, ...]) -> None:
        self._records: dict[Any, Operator] = {record.id: record for record in records}

    def __getitem__(self, identifier: str | Operator) -> Operator:
        """Return the record of an identifier such as ``onnx.Split-18``; a record stands for itself.

        Raises:
            SplitError: TS101 for an identifier that does not exist. It is a ``KeyError`` as well,
                so that ``get`` works as in any mapping.
        """
        found = self._find(identifier)
        if found is None:
            raise _unknown(identifier, self._records)
        return found

    def __contains__(self, identifier: object) -> bool:
        return self._find(identifier) is not None

    def _find(self, identifier: object) -> Operator | None:
        name = identifier.id if is_a(identifier, Operator) else as_string(identifier)
        return None if name is None else self._records.get(name)

    def __iter__(self) -> Iterator[OperatorName | DialectName]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __repr__(self) -> str:
        return f"<operators: {', '.join(self)}>"


class UnknownOperatorError(SplitError, KeyError):
    """No such operator; also a ``KeyError``, as mappings raise."""

    __str__ = SplitError.__str__


def _unknown(identifier: object, known: Iterable[str]) -> UnknownOperatorError:
    near = near_operator(show(identifier).strip("'"), known).rstrip()
    return UnknownOperatorError(
        UNKNOWN_OPERATOR,
        f"{show(identifier)} is not an operator version",
        near or f"use one of {', '.join(operators)}",
        parameter="operator",
    )


operators = OperatorTable((*onnx.OPERATORS, *openvino.OPERATORS))
"""Every operator version of the family."""

dialects = OperatorTable(DIALECTS)
"""What other libraries and standards mean by a split; none of it is of the family."""


_IMPORTED_AS = {"np": "numpy", "jnp": "jax.numpy", "tf": "tensorflow"}


def in_force(name: str, opset: SupportsIndex, *, vendor: str = "onnx") -> Operator:
    """Return the version of an operator that holds at an opset that a model imports.

    Raises:
        SplitError: TS101 if the operator does not exist at that opset, or the opset itself does
            not exist as far as the records know.
    """
    index = opset if type(opset) is int else as_index(opset)
    if index is None:
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"the opset is {show(opset)}",
            f"give an integer from 1 to {NEWEST_OPSET}",
            parameter="opset",
        )
    return _in_force(name, index, vendor)


@lru_cache(maxsize=256)
def _in_force(name: str, opset: int, vendor: str) -> Operator:
    versions = [r for r in operators.values() if r.vendor == vendor and r.name == name]
    if not versions:
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"there is no operator {vendor}.{name}",
            f"the operators are {', '.join(operators)}",
            parameter="operator",
        )
    first = min(record.since_version for record in versions)
    if opset > NEWEST_OPSET:
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"opset {show_int(opset)} is newer than what is known of {vendor}.{name}",
            f"use an opset from {first} to {NEWEST_OPSET}",
            operator=f"{vendor}.{name}",
            parameter="opset",
        )
    if opset < first:
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"{vendor}.{name} does not exist at opset {show_int(opset)}",
            f"use an opset from {first} to {NEWEST_OPSET}",
            operator=f"{vendor}.{name}",
            parameter="opset",
        )
    return max((r for r in versions if r.since_version <= opset), key=lambda r: r.since_version)


def versions_of(word: str) -> list[Operator]:
    """Return the versions that a word may mean: an identifier, or a name with or without vendor."""
    if word in dialects:
        return [dialects[word]]
    vendor, _, name = word.rpartition(".")
    return [
        record
        for record in operators.values()
        if word == record.id or (name == record.name and vendor in ("", record.vendor))
    ]


def operator_names() -> Iterable[str]:
    """Return the identifiers of versions and dialects, and the names of the newest versions."""
    names = (record.name for record in operators.values())
    return dict.fromkeys((*operators, *names, *dialects))


def near_operator(word: str, known: Iterable[str]) -> str:
    """Return ``did you mean X? `` for the known operator that is closest; empty if none is close.

    For a version that does not exist, that is the one in force there: Split-11 for Split-12; for a
    name without a version, the newest. A library may be called as it is imported: tf.split.
    """
    if versions_of(word):
        return did_you_mean(operator_named(word).id, known)
    library, dot, name = word.partition(".")
    word = f"{_IMPORTED_AS.get(library, library)}{dot}{name}"
    name, _, number = word.rpartition("-")
    versions = versions_of(name)
    if versions and number.isdecimal() and len(number) <= _DIGITS:
        older = [each for each in versions if each.since_version <= int(number)]
        word = max(older or versions[:1], key=lambda each: each.since_version).id
    return did_you_mean(word, known)


def operator_named(operator: str | Operator, opset: SupportsIndex | None = None) -> Operator:
    """Find the operator version; TS101 if there is none, TS703 for one version with an opset.

    It is a record, an identifier such as ``onnx.Split-13``, or a name such as ``Split`` or
    ``openvino.Split``, which is looked up at the opset, or at the newest one. A dialect such as
    ``torch.chunk`` has one version only.
    """
    name = as_string(operator)
    meant = [] if name is None else versions_of(name)
    if meant and meant[0].id != name:
        newest = NEWEST_OPSET if opset is None else opset
        return in_force(meant[0].name, newest, vendor=meant[0].vendor)
    if name is not None and name not in operators and name not in dialects:
        raise _unknown(name, operator_names())
    record = (dialects if operator in dialects else operators)[operator]
    if opset is not None:
        raise SplitError(
            USAGE,
            f"{record.id} is one version already, but the opset is given as {show(opset)}",
            "give the identifier alone, or a name such as Split with the opset",
            parameter="opset",
        )
    return record
