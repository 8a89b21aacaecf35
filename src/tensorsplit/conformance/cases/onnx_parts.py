"""ONNX models that have a meaning, and what comes out of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from tensorsplit.conformance.case import SHAPE_CLASSES, USES, Case
from tensorsplit.conformance.cases.making import (
    BODIES,
    SIMPLE_USES,
    bodies_of,
    case_of,
    decision_of_type,
    kinds_of_data,
    opsets_with,
    option_text,
    options,
    sampled_opset,
    sampled_rank,
    sampled_use,
    shaped,
    usable,
)
from tensorsplit.conformance.cases.split_encodings import (
    ATTRIBUTE_SPLITS,
    COMMON,
    COMMON_IN_SEQUENCES,
    ENCODINGS,
    INPUT_SPLITS,
    OPSETS,
    SEQUENCES,
    SPLITS,
    Encoding,
    Stated,
    sample,
)
from tensorsplit.conformance.data import ALLOWED
from tensorsplit.conformance.models.onnx_model import CaseOperand, Fields

_NESTED = (
    *(("if", "loop"), ("loop", "if"), ("scan", "if"), ("if", "function")),
    *(("function", "if"), ("loop", "function"), ("function", "loop")),
)
"""Where a split node is, from the outside to the inside, if it is inside two places."""

_UNDEFINED_NEGATIVE = ("onnx.Split-1", "onnx.Split-2")
"""The pages of these versions do not say what a negative axis is."""


def cases() -> Iterator[Case]:
    """Yield the cases of this group."""
    for operator in OPSETS:
        yield from _everywhere(operator)
        yield from _stated(operator)
        yield from _axes(operator)
        yield from _types_in_bodies(operator)
        yield from _types(operator)
        yield from _uses(operator)
    yield from _edges()


def _everywhere(operator: str) -> Iterator[Case]:
    """Yield each encoding of the lengths, in each place, for each class of shapes."""
    for encoding in ENCODINGS[operator]:
        key = f"{operator} {encoding.name} {encoding.form}"
        nested = [(places, sample(f"{places} {key}", SHAPE_CLASSES)) for places in _NESTED]
        for places, shape_class in (*product(BODIES, SHAPE_CLASSES), *nested):
            if not opsets_with(operator, places):
                continue
            key = f"{operator} {encoding.name} {encoding.form} {places} {shape_class}"
            opset = sampled_opset(operator, places, key)
            rank = sampled_rank(shape_class, key)
            of_nothing = shape_class == "zero-size" and bool(sample(f"nothing {key}", (0, 1)))
            of_nothing = of_nothing and any(
                # nothing can be done in a Scan with a sequence of no parts
                not split.dim and (split.sizes or "scan" not in places)
                for split in encoding.splits
            )
            split = encoding.sampled(key, of_nothing=of_nothing)
            given: Fields = {"opset": opset, "rank": rank, "places": places}
            yield _case(operator, encoding, split, key, cls=shape_class, **given)


def _stated(operator: str) -> Iterator[Case]:
    """Yield every stated split in every encoding."""
    for encoding in ENCODINGS[operator]:
        if encoding.form in ("constant", "overridable"):
            continue
        for split in encoding.splits:
            key = f"stated {operator} {encoding.name} {encoding.form} {split}"
            cls = "static" if split.dim else "zero-size"
            yield _case(operator, encoding, split, key, cls=cls, group="stated-")


def _axes(operator: str) -> Iterator[Case]:
    """Yield every axis of every rank."""
    for rank in range(1, 7):
        for axis in range(-rank, rank):
            key = f"axes {operator} {rank} {axis}"
            encoding = sample(key, ENCODINGS[operator])
            split = encoding.sampled(key)
            yield _case(operator, encoding, split, key, rank=rank, axis=axis, group="axes-")


def _types_in_bodies(operator: str) -> Iterator[Case]:
    """Yield every element type in every place."""
    for element_type, places in product(ALLOWED[operator], bodies_of(operator)):
        key = f"types {operator} {element_type} {places}"
        opset = sampled_opset(operator, places, key)
        since = 16 if element_type == "bfloat16" else 1  # from which control flow takes the type
        if set(places) - {"function"} and opset < since:
            continue
        encoding = sample(key, ENCODINGS[operator])
        if element_type == "bfloat16" and places and operator in SEQUENCES:
            continue  # no sequence of it can be used where none can come out
        given: Fields = {"opset": opset, "places": places, "element_type": element_type}
        yield _case(operator, encoding, encoding.sampled(key), key, group="types-", **given)


_USED = {
    "lengths": (Stated(6, (2, 4), (2, 4)), Stated(6, (3, 3), (3, 3)), Stated(5, (5,), (5,))),
    "chunks": (Stated(5, 2, (2, 2, 1)), Stated(6, 2, (2, 2, 2)), Stated(0, 2, ())),
    "ones": (Stated(3, None, (1, 1, 1)), Stated(0, None, ())),
    "lengths-keepdims0": (Stated(3, (1, 1, 1), (1, 1, 1)), Stated(6, (2, 4), (2, 4))),
    "chunks-keepdims0": (Stated(3, 1, (1, 1, 1)), Stated(4, 2, (2, 2))),
    "ones-keepdims0": (Stated(3, None, (1, 1, 1)), Stated(1, None, (1,))),
}


def _uses(operator: str) -> Iterator[Case]:
    """Yield each use of a sequence with each of its options."""
    for encoding in ENCODINGS[operator] if operator in SEQUENCES else ():
        if encoding.form not in ("initializer", "runtime", "absent"):
            continue
        for split, use in product(_USED.get(encoding.name, ()), USES[1:]):
            keepdims = encoding.encoded(split, "float")["keepdims"]
            for option in options(use, split, keepdims):
                key = f"{operator} {encoding.name} {encoding.form} {split} {use} {option}"
                opset = sample(f"opset {key}", OPSETS[operator])
                if not usable(use, (), opset):
                    opset = OPSETS[operator][-1]
                places = [places for places in BODIES[:2] if usable(use, places, opset)]
                yield _case(
                    operator,
                    encoding,
                    split,
                    key,
                    opset=opset,
                    places=sample(f"place {key}", places),
                    cls="" if split.dim else "zero-size",
                    group="use-",
                    used=(use, option),
                )


def _case(
    operator: str,
    encoding: Encoding,
    split: Stated,
    key: str,
    *,
    opset: int = 0,
    rank: int = 0,
    axis: int | None = None,
    places: tuple[str, ...] = (),
    cls: str = "",
    element_type: str = "",
    group: str = "",
    used: tuple[str, object] | None = None,
) -> Case:
    """Build one case of a split; fields that are not given are sampled.

    `group` is what the name begins with, if other groups have the like; `used` what is done with a
    sequence, if that is what the case is about.
    """
    opset = opset or sample(f"opset {key}", OPSETS[operator])
    rank = rank or sample(f"rank {key}", (1, 2, 3))
    axis = sample(f"axis {key}", range(-rank, rank)) if axis is None else axis
    cls = cls or sample(f"class {key}", ("static", "dynamic-axis"))
    is_sequence = operator in SEQUENCES
    common = COMMON_IN_SEQUENCES if is_sequence else COMMON
    fitting = [name for name in common if name in ALLOWED[operator]]
    element_type = element_type or sample(f"type {key}", fitting)
    encoded = encoding.encoded(split, element_type)
    encoded["attributes"] |= {"axis": axis} if axis else {}
    use, option = used or ("", None)
    if is_sequence and element_type == "bfloat16":  # there are no operators on such sequences
        use = "output"
    elif is_sequence and not used:
        use, option = sampled_use(split, encoded["keepdims"], places, opset, key)
    may_refer = places[-1:] == ("function",) and bool(encoded["attributes"])
    by_reference = may_refer and sample(f"reference {key}", (False, True))
    axis_rule = "negative-axis" if axis < 0 else "axis" if axis else "default-axis"
    body_rule = "function" if places[:1] == ("function",) else "subgraph" if places else ""
    rules = (use,) if used else tuple(filter(None, (axis_rule, use, body_rule)))
    name = f"{group}{encoding.text(split)}-axis{axis}".replace("axis-", "axism")
    return case_of(
        operator,
        name + option_text(option) + "-reference" * by_reference,
        *(*encoding.rules, *rules),
        shape_class=cls,
        form=encoding.form,
        decision=encoding.decision or _decision(operator, split, axis),
        opset=opset,
        element_type=element_type,
        places=places,
        use=use,
        option=option,
        by_reference=by_reference,
        **shaped(split.dim, rank, axis, cls, key),
        **encoded,
    )


def _decision(operator: str, split: Stated, axis: int) -> str:
    """Return the decision that a split depends on; empty if the page leaves nothing open."""
    if axis < 0 and operator in _UNDEFINED_NEGATIVE:
        return "D13"
    if split.dim == 0 and isinstance(split.requested, int):
        return "D2"
    if operator in SEQUENCES and isinstance(split.requested, tuple):
        return "D11" if len(split.requested) == 1 else "D9" if 0 in split.requested else ""
    return ""


def _types(operator: str) -> Iterator[Case]:
    """Yield every element type, in numbers that are plain and in extreme ones."""
    opsets = OPSETS[operator]
    for element_type, (number, name) in product(ALLOWED[operator], enumerate(TYPE_SPLITS)):
        given: Fields = {"opset": opsets[number % len(opsets)], "shape": (2, 7), "axis": 1}
        given |= lengths_of(operator, TYPE_SPLITS[name], axis=1)
        given["use"] = "output" if operator in SEQUENCES else ""
        for kind, fields in kinds_of_data(element_type):
            yield case_of(operator, f"{name}-{kind}", "types", **given, **fields)


TYPE_SPLITS = {"uneven": (2, 5), "many": (1, 3, 1, 2)}
"""Splits of 7, for each element type."""


def lengths_of(operator: str, sizes: tuple[int, ...], **attributes: int) -> Fields:
    """Express parts of these lengths in a version, with other attributes."""
    if operator in ATTRIBUTE_SPLITS:
        return {"sizes": sizes, "attributes": {"split": sizes, **attributes}}
    operand = CaseOperand(sizes, "initializer")
    return {"sizes": sizes, "operand": operand, "attributes": attributes}


_MANY = 300


def _edges() -> Iterator[Case]:
    """Yield cases that engines were seen to fail: unnamed outputs, unknown counts, many parts."""
    for operator in SPLITS:
        text = "string" if operator != SPLITS[0] else "double"  # the first version has no strings
        rows: dict[str, tuple[tuple[int, ...], Fields]] = {
            "unnamed-0": ((1, 2, 3), {"unnamed": (0,)}),
            "unnamed-2": ((1, 2, 3), {"unnamed": (2,)}),
            "unnamed-0.1": ((1, 2, 3), {"unnamed": (0, 1)}),
            "many-parts": ((1, 2) * (_MANY // 2), {}),
            "constant-data": ((2, 1, 3), {"is_constant": True}),
            "constant-strings": ((2, 1, 3), {"is_constant": True, "element_type": text}),
            "many-strings": ((7, 1, 9, 3), {"element_type": text}),
        }
        for name, (sizes, fields) in rows.items():
            yield _edge(operator, name, "outputs", **lengths_of(operator, sizes), **fields)
        for declared in ((6,), ("N",)) if operator != "onnx.Split-18" else ():
            yield _edge(
                operator,
                "also-halves",
                "equal",
                sizes=(2, 2, 2),
                key=f"{declared}",
                declared=declared,
                form="absent",
                also_halves=True,
                element_type="double",
            )
    for operator in SEQUENCES:
        yield from _edges_of_sequences(operator)
    for operator in (*INPUT_SPLITS, *SEQUENCES):
        yield from _unknown_counts(operator)
    for opset, (dim, sizes), unnamed in product(
        OPSETS["onnx.Split-18"], ((6, (2, 2, 2)), (7, (3, 3, 1))), ((0,), (2,))
    ):
        given: Fields = {
            "attributes": {"num_outputs": 3},
            "unnamed": unnamed,
            "opset": opset,
        }
        name = f"count-3of{dim}-unnamed-{unnamed[0]}"
        yield _edge("onnx.Split-18", name, "count", "outputs", sizes=sizes, **given)


def _edge(
    operator: str, name: str, *rules: str, sizes: tuple[int, ...], key: str = "", **fields: Any
) -> Case:
    """Return a split of a vector by its lengths; `fields` replace its own."""
    given: Fields = {
        "opset": sample(f"opset {operator} {key or name}", OPSETS[operator]),
        "shape": (sum(sizes),),
        "sizes": sizes,
        "decision": decision_of_type(fields.get("element_type", "")),
        **fields,
    }
    return case_of(operator, f"edge-{name}", *rules, **given)


def _unknown_counts(operator: str) -> Iterator[Case]:
    """Yield lengths whose number is not declared, and a default that does not fit."""
    is_sequence = operator in SEQUENCES
    for declared, sizes in product(((6,), ("N",)), ((2, 4), (6,), (1, 0, 5))):
        yield _edge(
            operator,
            f"unknown-count-{len(sizes)}",
            "lengths",
            sizes=sizes,
            key=str(sizes),
            declared=declared,
            operand=CaseOperand(sizes, "runtime", declared=("L",)),
            use="SequenceAt" if is_sequence else "",
            option=(tuple(range(len(sizes))), False) if is_sequence else None,
        )
    yield _edge(
        operator,
        "default-does-not-fit",
        "initializer",
        sizes=(2, 4),
        decision="D20",
        opset=OPSETS[operator][-1],
        declared=("N",),
        operand=CaseOperand((2, 4), "overridable", default=(2, 3)),
        use="output" if is_sequence else "",
    )


def _edges_of_sequences(operator: str) -> Iterator[Case]:
    ones, data, words = (1,) * _MANY, (2, 1, 3), (7, 1, 9, 3)
    rows: dict[str, tuple[CaseOperand, tuple[int, ...], Fields]] = {
        "many-chunks": (CaseOperand(1, "initializer"), ones, {}),
        "many-lengths": (CaseOperand(ones, "runtime"), ones, {}),
        "constant-data": (CaseOperand(data, "initializer"), data, {"is_constant": True}),
        "strings": (CaseOperand(words, "initializer"), words, {"element_type": "string"}),
        "chunk-beyond-int32": (CaseOperand(2**40, "initializer"), (6,), {"decision": "D14"}),
        "chunk-largest": (CaseOperand(2**63 - 1, "runtime"), (6,), {}),
    }
    for (name, (operand, sizes, fields)), use in product(rows.items(), SIMPLE_USES):
        yield _edge(
            operator,
            name,
            *("chunks" if "chunk" in name else "lengths", use),
            sizes=sizes,
            key=f"{name} {use}",
            operand=operand,
            use=use,
            option=SIMPLE_USES[use],
            **fields,
        )
