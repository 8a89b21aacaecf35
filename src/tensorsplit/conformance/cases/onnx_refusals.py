"""The cases that an ONNX engine has to refuse: wrong lengths, counts, axes and operands.

Each row is a node in the terms of the standard. That it makes no split is stated, not computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import (
    bodies_of,
    case_of,
    sampled_opset,
    sampled_simple_use,
)
from tensorsplit.conformance.cases.onnx_parts import lengths_of
from tensorsplit.conformance.cases.split_encodings import (
    ATTRIBUTE_SPLITS,
    INPUT_SPLITS,
    SEQUENCES,
    SPLITS,
    lengths_text,
    sample,
)
from tensorsplit.conformance.models.onnx_model import CaseOperand, Fields, Shape

_INPUTS = ("initializer", "constant", "runtime", "overridable")


@dataclass(frozen=True, slots=True, repr=False)
class RefusedNode:
    """A node that is to be refused: what `case_of` takes."""

    name: str
    keys: tuple[str, ...]
    decision: str = ""
    attributes: Mapping[str, object] = field(default_factory=dict)
    operand: CaseOperand | None = None
    blank: bool = False
    outputs: int = 1
    shape: tuple[int, ...] = (6,)
    element_type: str = "float"
    form: str = ""

    def __repr__(self) -> str:
        """Return the key that sampling uses: it stays as it is, so that cases keep their ids."""
        shown = ", ".join(f"{entry.name}={getattr(self, entry.name)!r}" for entry in fields(self))
        return f"Refused({shown})".replace(", form=", ", spelling=")


def _refusal(
    operator: str,
    row: RefusedNode,
    *,
    places: tuple[str, ...] = (),
    shape_class: str = "static",
    use: str = "",
    option: object = None,
) -> Case:
    """Return the case of a row; the use of a sequence is sampled if it is not given."""
    key = f"{operator} {row} {places} {shape_class} {use}"
    opset = sampled_opset(operator, places, key)
    if not use:
        use, option = sampled_simple_use(operator, places, opset, key)
    declared: Shape = ("N", *row.shape[1:]) if shape_class == "dynamic-axis" else row.shape
    return case_of(
        operator,
        f"refuse-{row.name}",
        *row.keys,
        **{
            **{entry.name: getattr(row, entry.name) for entry in fields(row)[2:]},
            "form": row.form or ("" if row.operand or row.attributes else "absent"),
            "opset": opset,
            "declared": declared,
            "axis": row.attributes.get("axis", 0),
            "places": places,
            "use": use,
            "option": option,
        },
    )


def cases() -> Iterator[Case]:
    """Yield the cases of this group."""
    for operator in (*SPLITS, *SEQUENCES):
        yield from _somewhere(operator, _wrong_lengths(operator))
        yield from _everywhere(operator, _axes_and_types(operator))
    for operator in SPLITS:
        yield from _everywhere(operator, _counts() if operator == SPLITS[-1] else _unequal())
    yield from _everywhere(SPLITS[0], _floats())
    for operator in SEQUENCES:
        yield from _somewhere(operator, _chunks())
        yield from _positions(operator)
    for operator in (*INPUT_SPLITS, *SEQUENCES):
        yield from _everywhere(operator, _other_inputs(operator))
    yield from _of_other_versions()


def _everywhere(operator: str, rows: Iterable[RefusedNode]) -> Iterator[Case]:
    """Yield rows in the main graph, of a known and an unknown dimension, and in one other place."""
    for row in rows:
        for shape_class in ("static", "dynamic-axis")[: 1 + bool(row.shape)]:
            yield _refusal(operator, row, shape_class=shape_class)
        if row.shape:
            places = sample(f"place {operator} {row}", bodies_of(operator)[1:])
            yield _refusal(operator, row, places=places)


def _somewhere(operator: str, rows: Iterable[RefusedNode]) -> Iterator[Case]:
    """Yield rows in the main graph or a sampled place; in both where engines fold constants."""
    for row in rows:
        first, *others = _everywhere(operator, [row])
        other = sample(f"somewhere {operator} {row}", others)
        if first.spelling in ("attribute", "initializer"):
            yield from (first, other)
        else:
            is_large = row.name.endswith("400000000")
            yield first if is_large else sample(f"some {row}", (first, other))


_WRONG_LENGTHS = (
    ("sum", "D6", "sum", ((2, 3), (2, 5), (6, 6), (0, 0), (7,), (1, 1, 1))),
    (
        *("negative", "D7", "not-negative"),
        ((-1, 7), (7, -1), (8, -2), (-1, -1), (-1, 400_000_000), (2, -1, 5)),
    ),
    (
        *("large", "D14", "sum"),
        (
            *((2**32 + 1, 5), (2**32 + 6,), (2**63 - 1, 2**63 - 1, 8)),
            (2**62, 2**62, 2**62, 2**62, 6),
        ),
    ),
)


def _wrong_lengths(operator: str) -> Iterator[RefusedNode]:
    """Yield lengths that make no split of 6, in every encoding of the version."""
    rows = [
        (f"{kind}-{lengths_text(lengths)}", key, decision, lengths, len(lengths))
        for kind, decision, key, wrong in _WRONG_LENGTHS
        for lengths in wrong
    ]
    if operator in SPLITS:
        rows += [
            (f"{len(lengths)}lengths-{outputs}outputs", "outputs", "D5", lengths, outputs)
            for lengths, outputs in (((2, 4), 3), ((2, 2, 2), 2), ((6,), 2))
        ]
    for name, key, decision, lengths, outputs in rows:
        ways: list[Fields] = [{"operand": CaseOperand(lengths, way)} for way in _INPUTS]
        if operator in ATTRIBUTE_SPLITS:
            ways = [{"attributes": {"split": lengths}}]
        for given in ways:
            yield RefusedNode(name, (key,), decision, outputs=outputs, **given)


def _unequal() -> Iterator[RefusedNode]:
    for dim, count in ((7, 3), (5, 2), (5, 4), (2, 3), (1, 2)):
        given: Fields = {"outputs": count, "shape": (dim,), "form": "absent"}
        yield RefusedNode(f"{dim}into{count}", ("equal",), "D3", **given)


def _counts() -> Iterator[RefusedNode]:
    """Yield counts that Split-18 does not take, and none or lengths beside one."""
    given: Fields
    for dim, count in ((5, 4), (3, 7), (4, 6), (9, 7), (1, 3)):
        given = {"attributes": {"num_outputs": count}, "outputs": count, "shape": (dim,)}
        yield RefusedNode(f"{dim}into{count}", ("count",), "D1", **given)
    for count, outputs in ((2, 3), (4, 3), (1, 2), (3, 1)):
        given = {"attributes": {"num_outputs": count}, "outputs": outputs, "shape": (12,)}
        yield RefusedNode(f"count{count}-{outputs}outputs", ("count", "outputs"), "D5", **given)
    for name, count in (("count0", 0), ("countm1", -1)):
        yield RefusedNode(name, ("count",), attributes={"num_outputs": count})
    for form, lengths in product(_INPUTS, ((3, 3), (2, 4))):
        given = {"attributes": {"num_outputs": 2}, "operand": CaseOperand(lengths, form)}
        yield RefusedNode(
            f"both-{lengths_text(lengths)}", ("one-of-two",), "D4", outputs=2, **given
        )
    for blank, outputs in product((False, True), (1, 2, 4)):
        name = f"neither-{outputs}outputs{'-blank' if blank else ''}"
        yield RefusedNode(name, ("one-of-two",), "D4", blank=blank, outputs=outputs)


def _floats() -> Iterator[RefusedNode]:
    """Yield the second input of Split-1."""
    rows = {
        "half": (1.5, 4.5),
        "nan": (float("nan"), 6.0),
        "inf": (float("inf"), 6.0),
        "negative": (-1.0, 7.0),
        "sum": (2.0, 3.0),
    }
    for (name, lengths), form in product(rows.items(), ("initializer", "runtime")):
        operand = CaseOperand(lengths, form, "float")
        yield RefusedNode(f"float-{name}", ("floats",), "D12", operand=operand, outputs=2)
    operand = CaseOperand((2.0, 4.0), "initializer", "float")
    both: Fields = {"attributes": {"split": (2, 4)}, "operand": operand}
    yield RefusedNode(
        "attribute-and-input", ("lengths-attribute", "floats"), "D12", outputs=2, **both
    )


def _chunks() -> Iterator[RefusedNode]:
    for form, length in product(_INPUTS, (0, -1, -(2**63))):
        for element_type in ("int64", "int32")[: 1 + (length >= -1)]:
            name = f"chunk-{lengths_text((length,))}{'-i32' if element_type == 'int32' else ''}"
            operand = CaseOperand(length, form, element_type)
            yield RefusedNode(name, ("chunk-positive",), "D10", operand=operand)


def _two(operator: str, **attributes: int) -> Fields:
    """Express two parts in a version, with other attributes."""
    given = lengths_of(operator, (2, 4), **attributes)
    return {"outputs": len(given.pop("sizes")), **given}


_NOT_ALLOWED = {
    "onnx.Split-1": ("int32", "int64", "string"),
    **dict.fromkeys(("onnx.Split-2", "onnx.Split-11", "onnx.SplitToSequence-11"), ("bfloat16",)),
}
"""Element types that the page of a version does not list, and a later version's does."""


def _axes_and_types(operator: str) -> Iterator[RefusedNode]:
    for axis, shape in ((1, (6,)), (-2, (6,)), (2, (6, 6)), (-3, (6, 6)), (2**31, (6, 6))):
        name = f"axis{axis}-rank{len(shape)}".replace("axis-", "axism")
        yield RefusedNode(name, ("axis-range",), shape=shape, **_two(operator, axis=axis))
    yield RefusedNode("rank0", ("rank",), "D18", shape=(), **_two(operator))
    for element_type in _NOT_ALLOWED.get(operator, ()):
        yield RefusedNode("type", ("types",), element_type=element_type, **_two(operator))


def _other_inputs(operator: str) -> Iterator[RefusedNode]:
    """Yield inputs that are neither lengths nor a chunk length, and wrong defaults and feeds."""
    is_split = operator in SPLITS
    rows: list[tuple[str, object, str, int]] = [
        ("lengths-float", (2.0, 4.0), "float", 2),
        ("lengths-2d", ((2, 4),), "int64", 2),
    ]
    if is_split:
        rows += [("lengths-i32", (2, 4), "int32", 2), ("lengths-scalar", 6, "int64", 1)]
    else:
        rows += [("lengths-i16", (2, 4), "int16", 1), ("chunk-float", 2.0, "float", 1)]
    for (name, value, kind, outputs), form in product(rows, ("initializer", "runtime")):
        key = "lengths-type" if is_split else "lengths-or-chunk"
        operand = CaseOperand(value, form, kind)
        yield RefusedNode(name, (key,), operand=operand, outputs=outputs if is_split else 1)
    for name, operand in {
        "fed-sum": CaseOperand((2, 3), "overridable", default=(2, 4)),
        "fed-large": CaseOperand((5, 4), "overridable", default=(2, 4)),
        "fed-negative": CaseOperand((-1, 7), "overridable", default=(2, 4)),
        "default": CaseOperand((5, 5), "overridable"),
    }.items():
        yield RefusedNode(
            f"overridable-{name}", ("initializer", "sum"), "D20", operand=operand, outputs=2
        )


def _positions(operator: str) -> Iterator[Case]:
    """Yield positions that a sequence of two does not have."""
    for position in (2, -3, 100, 2**40, -(2**63)):
        name = f"at{position}".replace("-", "m")
        row = RefusedNode(name, ("position",), "D19", operand=CaseOperand((2, 4), "initializer"))
        for is_runtime, shape_class in product((False, True), ("static", "dynamic-axis")):
            yield _refusal(
                operator,
                replace(row, name=f"{name}-runtime") if is_runtime else row,
                shape_class=shape_class,
                use="SequenceAt",
                option=((position,), is_runtime),
            )
        option = ((position,), position == 2)
        yield _refusal(operator, row, use="SequenceErase", option=option)
        if position != 2:  # which is where the end is
            option = ((position,), position == 100)
            yield _refusal(operator, row, use="SequenceInsert", option=option)


def _of_other_versions() -> Iterator[Case]:
    """Yield operands that another version of the operator has."""
    lengths = CaseOperand((2, 4), "initializer")
    for operators, name, given in (
        (SPLITS[:-1], "num_outputs", {"attributes": {"num_outputs": 2}}),
        (INPUT_SPLITS, "split-attribute", {"attributes": {"split": (2, 4)}}),
        (("onnx.Split-2", "onnx.Split-11"), "split-input", {"operand": lengths}),
    ):
        for operator in operators:
            yield _refusal(operator, RefusedNode(name, ("signature",), outputs=2, **given))
