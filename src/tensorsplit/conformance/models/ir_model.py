"""OpenVINO IR files of one split layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx.numpy_helper import from_array

from tensorsplit.conformance import data, oracle
from tensorsplit.conformance.case import Built
from tensorsplit.conformance.models.onnx_model import CaseOperand, Shape, SplitModel
from tensorsplit.conformance.oracle import Array


class _IrWriter:
    """An IR file in the making."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = b""
        self.feeds: dict[str, object] = {}

    def operand(self, name: str, operand: CaseOperand) -> int:
        """Write a Const or Parameter that holds an axis or lengths; return its id."""
        array, kind = operand.array(operand.value), operand.element_type
        if operand.form == "constant":
            raw = pack(array, kind)
            where = f'offset="{len(self.weights)}" size="{len(raw)}"'
            self.weights += raw
            form = f'element_type="{data.IR_NAMES[kind]}" shape="{_dims(array.shape)}" {where}'
            return self.layer("Const", name, f"<data {form}/>", (), [(kind, array.shape, "")])
        return self.parameter(name, kind, array, operand.declared)

    def parameter(self, name: str, element_type: str, array: Array, declared: Shape | None) -> int:
        """Write a Parameter, and note what is fed for it; return its id."""
        shape = array.shape if declared is None else declared
        self.feeds[name] = array
        form = f'shape="{_dims(shape)}" element_type="{data.IR_NAMES[element_type]}"'
        return self.layer("Parameter", name, f"<data {form}/>", (), [(element_type, shape, name)])

    def layer(
        self,
        kind: str,
        name: str,
        attributes: str,
        inputs: Sequence[tuple[int, int, str, Shape]],
        outputs: Sequence[tuple[str, Shape, str]],
    ) -> int:
        """Write a layer, and the edges to it; return its id.

        An input is the layer and the port that feed it, its element type and its shape; an output
        is its element type, its shape and its name.
        """
        number = len(self.layers)
        text = f'<layer id="{number}" name="{name}" type="{kind}" version="opset1">{attributes}'
        if inputs:
            ports = [_port(place, *given[2:]) for place, given in enumerate(inputs)]
            text += f"<input>{''.join(ports)}</input>"
        if outputs:
            first = len(inputs)
            ports = [_port(first + place, *given) for place, given in enumerate(outputs)]
            text += f"<output>{''.join(ports)}</output>"
        self.layers.append(text + "</layer>")
        form = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
        self.edges += [form.format(*given[:2], number, place) for place, given in enumerate(inputs)]
        return number

    def text(self) -> str:
        """Return the ``.xml``."""
        head = '<?xml version="1.0"?>\n<net name="case" version="11">'
        layers, edges = "\n".join(self.layers), "\n".join(self.edges)
        return f"{head}\n<layers>{layers}</layers>\n<edges>{edges}</edges>\n</net>\n"


def build(model: SplitModel, rng: np.random.Generator) -> Built:
    """Return the files of a case, with elements sampled from `rng`."""
    writer = _IrWriter()
    x = data.values(model.element_type, model.shape, rng, model.extreme)
    given = writer.parameter("x", model.element_type, x, model.declared)
    inputs: list[tuple[int, int, str, Shape]] = [(given, 0, model.element_type, x.shape)]
    for name, operand in (("axis", model.axis_operand), ("split_lengths", model.operand)):
        if operand is not None:
            shape = operand.array(operand.value).shape
            inputs.append((writer.operand(name, operand), 0, operand.element_type, shape))
    attributes = "".join(f'<data {name}="{value}"/>' for name, value in model.attributes.items())
    names = tuple(f"y{place}" for place in range(model.outputs))
    part: Shape = (None,) * len(model.shape)
    split = writer.layer(
        model.op_type, "cut", attributes, inputs, [(model.element_type, part, n) for n in names]
    )
    for place, name in enumerate(names):
        source = (split, len(inputs) + place, model.element_type, part)
        writer.layer("Result", f"{name}/result", "", [source], ())
    expected = None
    if model.sizes is not None:
        parts = oracle.parts(x, model.axis, model.sizes)
        expected = dict(zip(names, parts, strict=True))
    return Built(writer.text().encode(), writer.weights, writer.feeds, names, expected)


def pack(array: Array, element_type: str) -> bytes:
    """Pack elements as an IR's weights hold them: little-endian, small ones from low bits."""
    if element_type == "string":
        words = [str(word).encode() for word in array.reshape(-1)]
        ends = np.cumsum([0, *map(len, words)]).astype("<i4")
        return np.array(len(words), "<i4").tobytes() + ends.tobytes() + b"".join(words)
    return from_array(array).raw_data  # ONNX packs alike


_PRECISIONS = {"bool": "BOOL", "float": "FP32", "double": "FP64", "float16": "FP16"}


def _port(number: int, element_type: str, shape: Shape, name: str = "") -> str:
    precision = _PRECISIONS.get(element_type, data.IR_NAMES[element_type].upper())
    dims = "".join(f"<dim>{dim if isinstance(dim, int) else -1}</dim>" for dim in shape)
    names = f' names="{name}"' if name else ""
    return f'<port id="{number}" precision="{precision}"{names}>{dims}</port>'


def _dims(shape: Shape) -> str:
    return ",".join(str(dim) if isinstance(dim, int) else "?" for dim in shape)
