"""Every stated cut in every wording, every axis of every rank, and every type in every place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import draw
from tensorsplit.conformance.cases.matrix import PLACES, drawn_opset, wording_case
from tensorsplit.conformance.cases.shapes import drawn_axis, shaped
from tensorsplit.conformance.cases.versions import OPSETS
from tensorsplit.conformance.cases.wordings import WORDINGS, drawn_cut
from tensorsplit.conformance.data import ALLOWED

_WIDER_TYPES_SINCE = {"bfloat16": 16}
"""The opset from which the control flow operators take the type."""


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in OPSETS:
        yield from _stated(operator)
        yield from _axes(operator)
        yield from _types(operator)


def _stated(operator: str) -> Iterator[Case]:
    for wording in WORDINGS[operator]:
        if wording.spelling in ("constant", "overridable"):
            continue
        for cut in (*wording.cuts, *wording.of_nothing):
            key = f"stated {operator} {wording.name} {wording.spelling} {cut}"
            rank = draw(f"rank {key}", (1, 2, 3))
            opset = draw(f"opset {key}", OPSETS[operator])
            shape_class = "static" if cut.dim else "zero-size"
            around = shaped(cut.dim, rank, drawn_axis(rank, key), shape_class, key)
            yield wording_case(
                operator,
                wording,
                cut,
                around,
                key,
                opset=opset,
                shape_class=shape_class,
                group="stated-",
            )


def _axes(operator: str) -> Iterator[Case]:
    for rank in range(1, 7):
        for axis in range(-rank, rank):
            key = f"axes {operator} {rank} {axis}"
            wording = draw(key, WORDINGS[operator])
            cut = drawn_cut(wording, key)
            shape_class = draw(f"class {key}", ("static", "dynamic-axis"))
            yield wording_case(
                operator,
                wording,
                cut,
                shaped(cut.dim, rank, axis, shape_class, key),
                key,
                opset=draw(f"opset {key}", OPSETS[operator]),
                shape_class=shape_class,
                group="axes-",
            )


def _types(operator: str) -> Iterator[Case]:
    for element_type, places in product(ALLOWED[operator], PLACES):
        key = f"types {operator} {element_type} {places}"
        opset = drawn_opset(operator, places, key)
        since = _WIDER_TYPES_SINCE.get(element_type, 1)
        if opset is None or (set(places) - {"function"} and opset < since):
            continue
        wording = draw(key, WORDINGS[operator])
        cut = drawn_cut(wording, key)
        rank = draw(f"rank {key}", (1, 2, 3))
        shape_class = draw(f"class {key}", ("static", "dynamic-axis"))
        if element_type == "bfloat16" and places and operator.startswith("onnx.SplitToS"):
            continue  # no sequence of it can be used where none can come out
        yield wording_case(
            operator,
            wording,
            cut,
            shaped(cut.dim, rank, drawn_axis(rank, key), shape_class, key),
            key,
            opset=opset,
            places=places,
            shape_class=shape_class,
            element_type=element_type,
            group="types-",
        )
