"""The examples of the standards' own pages, with values: drawings, and layers of an IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorsplit.arrays.prepared import plan
from tensorsplit.core.dimensions import Shape
from tensorsplit.core.plan import SplitPlan, sizes_of
from tensorsplit.core.schema import Operator

_SIX, _SEVEN = tuple(range(1, 7)), tuple(range(1, 8))
_TWO_ROWS = (_SIX, tuple(range(7, 13)))
_EIGHTEEN = tuple(tuple(range(start, start + 6)) for start in (0, 6, 12))
_EVEN: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("1-D, equal parts", _SIX, {"axis": 0, "num_outputs": 3}),
    ("1-D, lengths", _SIX, {"axis": 0, "split": [2, 4]}),
    ("2-D, equal parts", _TWO_ROWS, {"axis": 1, "num_outputs": 2}),
    ("2-D, lengths", _TWO_ROWS, {"axis": 1, "split": [2, 4]}),
    ("Default axis, equal parts", _SIX, {"num_outputs": 3}),
    ("Default axis, lengths", _SIX, {"split": [2, 4]}),
    ("Parts of length 0", (), {"split": [0, 0, 0]}),
)
_UNEVEN: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("1-D, the last part is smaller", _SEVEN, {"num_outputs": 4}),
    (
        "2-D, the last part is smaller",
        (tuple(range(1, 9)), tuple(range(9, 17))),
        {"axis": 1, "num_outputs": 3},
    ),
)
_SEQUENCES: tuple[tuple[str, Any, dict[str, Any]], ...] = (
    ("Chunks of one length", _EIGHTEEN, {"axis": 1, "split": 2}),
    ("Lengths", _EIGHTEEN, {"axis": 0, "split": [1, 2]}),
    ("No lengths, without the axis", _EIGHTEEN, {"axis": 1, "keepdims": 0}),
)
EXAMPLES = {
    **{f"onnx.Split-{version}": _EVEN for version in (1, 2, 11, 13)},
    "onnx.Split-18": (*_EVEN, *_UNEVEN),
    **{f"onnx.SplitToSequence-{version}": _SEQUENCES for version in (11, 24)},
}
"""Of ONNX operators: a title, the data and the operands, as in onnx's own node tests."""

LAYERS: dict[str, tuple[dict[str, Any], ...]] = {
    "openvino.VariadicSplit-1": (
        {"axis": 0, "split_lengths": [1, 2, 3]},
        {"axis": 0, "split_lengths": [-1, 2]},
    ),
    "openvino.Split-1": ({"axis": 1, "num_splits": 3},),
}
"""Of OpenVINO operators: the operands of each layer on the page, which splits data of `_LAYER`."""

_LAYER = (6, 12, 10, 24)


@dataclass(frozen=True, slots=True)
class Drawn:
    """An example with values: what it shows, its operands, and the tensor with its borders."""

    title: str
    operands: str
    drawing: str


def drawn_examples(record: Operator) -> Iterator[Drawn]:
    """Yield the examples of the standard's page of an ONNX operator, drawn."""
    for title, data, operands in EXAMPLES.get(record.id, ()):
        array = np.array(data, np.int64)
        split = plan(record, array.shape, **operands)
        given = ", ".join(f"{name} = {value}" for name, value in operands.items())
        yield Drawn(title, given, _drawing(array, split))


def _drawing(array: np.ndarray, split: SplitPlan) -> str:
    """Draw a tensor of rank 1 or 2 with a border between the parts."""
    rows = np.atleast_2d(array)
    width = max((len(str(value)) for value in rows.flat), default=1)
    ends = list(np.cumsum(sizes_of(split)))[:-1]
    is_across = split.axis == array.ndim - 1
    lines = []
    for number, row in enumerate(rows.tolist()):
        cells = [str(value).rjust(width) for value in row]
        if is_across:
            for end in reversed(ends):
                cells.insert(end, "|")
        elif number in ends:
            lines.append("-" * len(" ".join(cells)))
        lines.append(" ".join(cells))
    return "\n".join(lines)


def layers(record: Operator) -> Iterator[str]:
    """Yield the layers of the standard's page of an OpenVINO operator, as XML."""
    for operands in LAYERS.get(record.id, ()):
        yield "\n".join(_layer(record, operands))


def _layer(record: Operator, operands: dict[str, Any]) -> Iterator[str]:
    given = [entry.name for entry in record.attributes]
    yield f'<layer id="1" name="split" type="{record.name}" version="{record.domain}">'
    yield from (f'    <data {name}="{operands[name]}"/>' for name in given)
    yield "    <input>"
    yield from _port(0, _LAYER)
    for port, entry in enumerate(record.inputs[1:], 1):
        value = operands[entry.name]
        yield from _port(port, np.shape(value), f"{entry.name}: {value}")
    yield "    </input>"
    yield "    <output>"
    shapes = plan(record, _LAYER, **operands).output_shapes
    for port, shape in enumerate(shapes, len(record.inputs)):
        yield from _port(port, shape)
    yield "    </output>"
    yield "</layer>"


def _port(number: int, shape: Shape, held: str = "") -> Iterator[str]:
    dims = "".join(f"<dim>{dim}</dim>" for dim in shape)
    comment = f"    <!-- {held} -->" if held else ""
    yield f'        <port id="{number}">{dims}</port>{comment}'
