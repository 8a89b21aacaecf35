"""Writing OpenVINO IR files by hand, so that what is read is not what the same library wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tensorsplit import SplitError
from tensorsplit import run as run_model

X = np.arange(1, 49, dtype=np.float32).reshape(6, 8)


class Out(NamedTuple):
    """An output port: the layer's id and the port's id."""

    layer: int
    port: int


class IrFile:
    """An IR file in the making: each method adds a layer and returns its outputs.

    Everything is kept as text, so that a test can write what is wrong.
    """

    def __init__(self, version: str = "11") -> None:
        self.version = version
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.weights = b""

    def parameter(self, name: str, element: str, shape: str, names: str = "") -> Out:
        data = f'<data shape="{shape}" element_type="{element}"/>'
        return self.layer("Parameter", (), 1, data, name=name, names=[names])[0]

    def constant(self, data: bytes, element: str, shape: str, padding: int = 0) -> Out:
        self.weights += b"\xff" * padding
        text = (
            f'<data element_type="{element}" shape="{shape}" offset="{len(self.weights)}"'
            f' size="{len(data)}"/>'
        )
        self.weights += data
        return self.layer("Const", (), 1, text)[0]

    def int64(self, *values: int, scalar: bool = False) -> Out:
        data = b"".join(value.to_bytes(8, "little", signed=True) for value in values)
        return self.constant(data, "i64", "" if scalar else str(len(values)))

    def variadic_split(
        self, data: Out, axis: Out, lengths: Out, count: int, names: Sequence[str] = ()
    ) -> list[Out]:
        return self.layer("VariadicSplit", (data, axis, lengths), count, name="cut", names=names)

    def split(self, data: Out, axis: Out, count: int, num_splits: object = None) -> list[Out]:
        text = f'<data num_splits="{count if num_splits is None else num_splits}"/>'
        return self.layer("Split", (data, axis), count, text, name="cut")

    def result(self, source: Out, name: str = "", output_names: str = "") -> None:
        extra = f' output_names="{output_names}"' if output_names else ""
        self.layer("Result", (source,), 0, name=name, extra=extra)

    def layer(
        self,
        type: str,
        inputs: Sequence[Out],
        outputs: int,
        data: str = "",
        *,
        name: str = "",
        names: Sequence[str] = (),
        version: str = "opset1",
        extra: str = "",
        shape: Sequence[int] = (),
    ) -> list[Out]:
        number = len(self.layers)
        titled = f' name="{name}"' if name else ""
        text = f'<layer id="{number}"{titled} type="{type}" version="{version}"{extra}>{data}'
        if inputs:
            text += "<input>" + "".join(f'<port id="{i}"/>' for i in range(len(inputs)))
            text += "</input>"
        ports = range(len(inputs), len(inputs) + outputs)
        if outputs:
            text += "<output>"
            for place, port in enumerate(ports):
                called = names[place] if place < len(names) else ""
                attribute = f' names="{called}"' if called else ""
                dims = "".join(f"<dim>{each}</dim>" for each in shape)
                end = f">{dims}</port>" if dims else "/>"
                text += f'<port id="{port}" precision="FP32"{attribute}{end}'
            text += "</output>"
        self.layers.append(text + "</layer>")
        for port, source in enumerate(inputs):
            self.edge(source.layer, source.port, number, port)
        return [Out(number, port) for port in ports]

    def edge(self, *ends: object) -> None:
        form = '<edge from-layer="{}" from-port="{}" to-layer="{}" to-port="{}"/>'
        self.edges.append(form.format(*ends))

    @property
    def text(self) -> str:
        return (
            f'<?xml version="1.0"?>\n<net name="net" version="{self.version}">'
            f"<layers>{''.join(self.layers)}</layers><edges>{''.join(self.edges)}</edges></net>"
        )

    def save(self, folder: Path, text: str | None = None) -> Path:
        path = folder / "model.xml"
        path.write_text(self.text if text is None else text, encoding="utf-8")
        path.with_suffix(".bin").write_bytes(self.weights)
        return path


def named(ir: IrFile) -> str:
    """The text, with a name for each layer, as OpenVINO wants it."""
    return re.sub(r'<layer id="(\d+)" type', r'<layer id="\1" name="layer\1" type', ir.text)


def cut_file(
    lengths: tuple[int, ...] = (2, -1), axis: int = 0, count: int | None = None, version: str = "11"
) -> IrFile:
    """``x`` of shape [6, 8] cut into parts called ``part0``, ``part1`` and so on."""
    ir = IrFile(version)
    x = ir.parameter("x", "f32", "6,8")
    names = [f"part{place}" for place in range(len(lengths))]
    parts = ir.variadic_split(
        x, ir.int64(axis, scalar=True), ir.int64(*lengths), count or len(lengths), names
    )
    for part in parts:
        ir.result(part)
    return ir


def words(folder: Path) -> Path:
    """The file of an IR that cuts strings after the second one; OpenVINO wants its names."""
    ir = IrFile()
    x, axis = ir.parameter("x", "string", "?"), ir.int64(0, scalar=True)
    for part in ir.variadic_split(x, axis, ir.int64(2, -1), 2, "ab"):
        ir.result(part)
    text = re.sub(r'<layer id="([0-9]+)" type', r'<layer id="\1" name="layer\1" type', ir.text)
    return ir.save(folder, text)


def run(path: Path, **feeds: Any) -> dict[str, Any]:
    """The outputs of a file, of our own engine."""
    return run_model(path, feeds, engine="tensorsplit")


def refused(path: Path, **feeds: Any) -> SplitError:
    """What a file is refused for."""
    with pytest.raises(SplitError) as caught:
        run(path, **feeds)
    return caught.value
