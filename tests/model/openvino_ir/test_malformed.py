"""OpenVINO IR files that are not as they must be are refused, and nothing is written."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path

import onnx_ir as ir
import pytest

from tensorsplit import SplitError
from tensorsplit.model.openvino_ir.attributes import is_set
from tensorsplit.model.openvino_ir.layers import (
    layers_of,
    listed_names,
    parse_network,
    read_network,
)
from tensorsplit.model.openvino_ir.translation import read_ir
from tensorsplit.model.reading import read_model
from tensorsplit.model.run.evaluator import CompiledModel
from tests.model.ir_files import IrFile, X, cut_file, refused, run

Change = Callable[[IrFile], str]


@pytest.mark.parametrize(
    ("text", "is_yes"),
    [
        *((text, True) for text in ("true", " True", "1")),
        *((text, False) for text in ("false", "0", "maybe", "", None)),
    ],
)
def test_an_attribute_that_is_neither_yes_nor_no_is_no(text: str | None, is_yes: bool) -> None:
    held = [] if text is None else [ir.AttrString("flag", text)]
    assert is_set(ir.Node("", "Any", [], attributes=held), "flag") is is_yes


def swap(old: str, new: str) -> Change:
    def change(ir: IrFile) -> str:
        assert old in ir.text
        return ir.text.replace(old, new, 1)

    return change


def extra_edge(*ends: object) -> Change:
    def change(ir: IrFile) -> str:
        ir.edge(*ends)
        return ir.text

    return change


def test_a_long_attribute_is_not_begun_again_for_each_small_piece() -> None:
    """One of 50 MB took eleven seconds: the parser asks for 64 KiB, and begins it again each time.

    What is parsed is the same in whatever pieces it comes.
    """
    asked: list[int] = []

    class Counted(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    name = "n" * (5 << 20)
    root = parse_network(Counted(f'<net name="{name}" version="11"/>'.encode()), Path("m.xml"))
    assert root.get("name") == name
    assert min(asked) >= 1 << 20


MALFORMED: dict[str, tuple[Change, str]] = {
    "empty": (lambda _: "", "TS501"),
    "no XML": (lambda _: "\0\1\2\3", "TS501"),
    "cut short": (lambda ir: ir.text[:200], "TS501"),
    "another root": (lambda _: "<html/>", "TS501"),
    "no version": (swap(' version="11"', ""), "TS501"),
    "IR 9": (swap('version="11"', 'version="9"'), "TS501"),
    "IR 12": (swap('version="11"', 'version="12"'), "TS501"),
    "unknown encoding": (swap('version="1.0"', 'version="1.0" encoding="no-such"'), "TS501"),
    "doctype": (lambda ir: ir.text.replace("<net", "<!DOCTYPE net><net"), "TS503"),
    "entity bomb": (
        lambda ir: ir.text.replace(
            "<net",
            '<!DOCTYPE n [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><net',
        ),
        "TS503",
    ),
    "external entity": (
        lambda ir: ir.text.replace(
            "<net", '<!DOCTYPE n [<!ENTITY a SYSTEM "file:///etc/hostname">]><net'
        ),
        "TS503",
    ),
    "no layers": (lambda _: '<net version="11"/>', "TS502"),
    "layer without id": (swap('layer id="0"', "layer"), "TS502"),
    "layer id of words": (swap('layer id="0"', 'layer id="zero"'), "TS502"),
    "layer id in other digits": (
        swap('layer id="0"', 'layer id="\N{ARABIC-INDIC DIGIT ZERO}"'),
        "TS502",
    ),
    "two layers of one id": (swap('layer id="1"', 'layer id="0"'), "TS502"),
    "one more layer of an id": (swap("</layers>", '<layer id="3" type="No"/></layers>'), "TS502"),
    "two ports of one id": (swap('port id="4"', 'port id="3"'), "TS502"),
    "one more port of an id": (
        swap('<port id="0"/><port id="1"/>', '<port id="0"/><port id="0"/><port id="1"/>'),
        "TS502",
    ),
    "Result of two": (
        lambda ir: ir.text.replace(
            "</layers><edges>",
            '<layer id="9" type="Result"><input><port id="0"/><port id="1"/></input></layer>'
            '</layers><edges><edge from-layer="0" from-port="0" to-layer="9" to-port="0"/>'
            '<edge from-layer="0" from-port="0" to-layer="9" to-port="1"/>',
        ),
        "TS502",
    ),
    "port without id": (swap('port id="0"', "port"), "TS502"),
    "edge from no layer": (swap('from-layer="0"', 'from-layer="77"'), "TS502"),
    "edge from no port": (swap('from-port="0"', 'from-port="5"'), "TS502"),
    "edge to no layer": (swap('to-layer="3"', 'to-layer="88"'), "TS502"),
    "edge to no port": (swap('to-port="2"', 'to-port="9"'), "TS502"),
    "edge without an end": (swap('to-port="2"', ""), "TS502"),
    "two edges to one port": (extra_edge(0, 0, 3, 1), "TS502"),
    "input without edge": (lambda ir: ir.text.replace(ir.edges[0], ""), "TS502"),
    "circle": (swap('from-layer="0" from-port="0"', 'from-layer="3" from-port="3"'), "TS502"),
    "Parameter with two outputs": (
        swap('<port id="0" precision="FP32"/>', '<port id="0"/><port id="1"/>'),
        "TS502",
    ),
    "Parameter without shape": (swap('shape="6,8" ', ""), "TS502"),
    "unknown element type": (swap('"f32"', '"f31"'), "TS502"),
    "no element type": (swap('element_type="f32"', ""), "TS502"),
    "Const of unknown shape": (swap('shape="2"', 'shape="?"'), "TS502"),
    "Const without offset": (swap('offset="0"', ""), "TS502"),
    "Const with a negative offset": (swap('offset="0"', 'offset="-8"'), "TS502"),
    "Const at the largest offset": (swap('offset="0"', f'offset="{(1 << 63) - 1}"'), "TS504"),
    "Const at no offset of 64 bits": (swap('offset="0"', f'offset="{1 << 63}"'), "TS502"),
    "Const beyond the data": (swap('offset="8"', 'offset="9"'), "TS504"),
    "Const far beyond the data": (swap('offset="8"', 'offset="9000000000000000000"'), "TS504"),
    "size that is not the shape's": (swap('shape="2"', 'shape="3"'), "TS504"),
    "size that is not the type's": (swap('element_type="i64"', 'element_type="i32"'), "TS504"),
    "very many dimensions": (swap('shape="2"', f'shape="{"2," * 99_999}2"'), "TS504"),
    "enormous shape": (swap('shape="2"', 'shape="4000000000,4000000000"'), "TS504"),
    "an empty <dim>": (
        swap('<port id="0" precision="FP32"/>', '<port id="0"><dim/></port>'),
        "TS502",
    ),
    "bad <dim>": (
        swap('<port id="0" precision="FP32"/>', '<port id="0"><dim>x</dim></port>'),
        "TS502",
    ),
    "VariadicSplit without lengths": (
        lambda ir: ir.text.replace('<port id="2"/>', "").replace(ir.edges[2], ""),
        "TS102",
    ),
    "Result with nothing": (
        lambda ir: ir.text.replace("</layers>", '<layer id="9" type="Result"/></layers>'),
        "TS502",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_files_are_refused(tmp_path: Path, name: str) -> None:
    change, code = MALFORMED[name]
    ir = cut_file((2, 4))
    path = ir.save(tmp_path, change(ir))
    before = sorted(tmp_path.iterdir())
    error = refused(path, x=X)
    assert error.code == code
    assert len(str(error)) < 1000
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(("depth", "is_read"), [(32, True), (33, False)])
def test_bodies_may_lie_so_deep_in_each_other(tmp_path: Path, depth: int, is_read: bool) -> None:
    text = ""
    for number in range(depth):
        body = f"<body><layers>{text}</layers><edges/></body>" if number else ""
        text = f'<layer id="9" name="n{number}" type="Outer" version="opset1">{body}</layer>'
    text = f"<body><layers>{text}</layers><edges/></body>"
    ir = cut_file((2, 4))
    outer = f'<layer id="9" name="outer" type="Outer" version="opset1">{text}</layer></layers>'
    path = ir.save(tmp_path, ir.text.replace("</layers>", outer, 1))
    if is_read:
        assert read_ir(path).message.graph.node
    else:
        with pytest.raises(SplitError, match=f"TS502.*bodies lie {depth} deep in each other"):
            read_ir(path)


def test_a_port_says_its_dimensions_in_their_order(tmp_path: Path) -> None:
    ports = '<port id="0"><dim>0</dim><dim>-1</dim><dim>5</dim></port>'
    ir = cut_file((2, 4))
    change = swap('<port id="0" precision="FP32"/>', ports)
    x = layers_of(read_network(ir.save(tmp_path, change(ir))))[0]
    assert [port.shape for port in x.outputs.values()] == [(0, None, 5)]


@pytest.mark.parametrize(
    ("text", "names"),
    [("", ()), ("a", ("a",)), ("a,,b\\,c,", ("a", "b,c")), (",", ()), ("\\,", (",",))],
)
def test_names_are_listed_with_commas(text: str, names: tuple[str, ...]) -> None:
    assert listed_names(text) == names


def test_missing_files_are_refused(tmp_path: Path) -> None:
    error = refused(tmp_path / "none.xml")
    assert (error.code, error.fix) == ("TS501", "give the path of an .xml file")
    assert refused(tmp_path).code == "TS501"
    path = cut_file().save(tmp_path)
    path.with_suffix(".bin").unlink()
    error = refused(path, x=X)
    assert error.code == "TS504"
    assert "model.bin is missing" in str(error)


def test_a_model_without_constants_needs_no_weights(tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.parameter("x", "f32", "..."))
    path = ir.save(tmp_path)
    path.with_suffix(".bin").unlink()
    assert run(path, x=X)["x.0"] is not None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        struct.pack("<i", 2),
        struct.pack("<iiii", 3, 0, 1, 2) + b"ab",
        struct.pack("<iiii", 2, 0, 2, 1) + b"ab",
        struct.pack("<iiii", 2, 0, 1, 9) + b"ab",
        struct.pack("<iiii", 2, 1, 1, 2) + b"ab",
        struct.pack("<iiii", 2, 0, -1, 2) + b"ab",
        struct.pack("<i", -1) + bytes(12),
    ],
)
def test_malformed_strings_are_refused(tmp_path: Path, data: bytes) -> None:
    ir = IrFile()
    ir.result(ir.constant(data, "string", "2"))
    error = refused(ir.save(tmp_path))
    assert error.code == "TS504"
    assert error.node == "layer '' (id 0)"


@pytest.mark.parametrize("missing", [0, 1, 2, 191, 192])
def test_a_constant_that_ends_beyond_the_weights_is_refused(tmp_path: Path, missing: int) -> None:
    """Before anything is read of it: large ones stay in the file until they are needed."""
    ir = IrFile()
    first = ir.constant(bytes(8), "i64", "1")
    data = ir.constant(X.tobytes(), "f32", "6,8")
    for source in (first, data):
        ir.result(source)
    path = ir.save(tmp_path)
    path.with_suffix(".bin").write_bytes(ir.weights[: len(ir.weights) - missing])
    if not missing:
        read_model(path)
        return
    with pytest.raises(SplitError, match=f"ends at byte 200, but .* has {200 - missing}") as caught:
        read_model(path)
    assert caught.value.code == "TS504"
    assert caught.value.node == "layer '' (id 1)"


def test_weights_cut_short_after_reading_are_refused(tmp_path: Path) -> None:
    ir = IrFile()
    data = ir.constant(X.tobytes(), "f32", "6,8")
    for part in ir.variadic_split(data, ir.int64(0, scalar=True), ir.int64(2, -1), 2):
        ir.result(part)
    path = ir.save(tmp_path)
    model = read_model(path)
    path.with_suffix(".bin").write_bytes(b"")
    with pytest.raises(SplitError, match="TS504"):
        CompiledModel(model).run({})


def test_an_axis_and_lengths_are_read_with_the_layers(tmp_path: Path) -> None:
    path = cut_file((2, 4)).save(tmp_path)
    model = read_model(path)
    path.with_suffix(".bin").write_bytes(b"")
    assert [part.shape for part in CompiledModel(model).run({"x": X}).values()] == [(2, 8), (4, 8)]


def test_bodies_without_end_are_refused(tmp_path: Path) -> None:
    ir = IrFile()
    text = '<layers><layer id="0" type="Loop"><body>' * 5000
    text += "<layers/>" + "</body></layer></layers>" * 5000
    assert refused(ir.save(tmp_path, f'<net version="11">{text}</net>')).code == "TS502"
