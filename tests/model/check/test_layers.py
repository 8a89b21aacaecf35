"""The split layers of an OpenVINO IR."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tensorsplit import SplitError, lower
from tensorsplit.model.check.checker import check, examine
from tests.model.ir_files import IrFile, cut_file, named
from tests.model.openvino_ir.engine import run_in_openvino
from tests.refusals import refused


def test_a_right_file_gives_no_findings(tmp_path: Path) -> None:
    report = examine(cut_file((2, -1)).save(tmp_path), "openvino")
    assert report.findings == ()
    assert report.split_nodes == 1


@pytest.mark.parametrize(
    ("lengths", "axis", "code"),
    [((2, 3), 0, "TS302"), ((-2, 8), 0, "TS301"), ((-1, -1), 0, "TS306"), ((2, 4), 2, "TS203")],
)
def test_what_the_version_refuses_is_an_error(
    tmp_path: Path, lengths: tuple[int, ...], axis: int, code: str
) -> None:
    (finding,) = check(cut_file(lengths, axis).save(tmp_path))
    assert (finding.code, finding.severity) == (code, "error")
    assert finding.operator == "openvino.VariadicSplit-1"
    assert "layer 'cut'" in finding.node


@pytest.mark.parametrize(
    ("element", "length"), [("u8", 1), ("i8", 1), ("u16", 2), ("i16", 2), ("u32", 4), ("u64", 8)]
)
def test_operands_of_every_integer_type_are_read(tmp_path: Path, element: str, length: int) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "6,8")
    axis = ir.constant((1).to_bytes(length, "little"), element, "")
    both = b"".join(number.to_bytes(length, "little") for number in (3, 4))
    for part in ir.variadic_split(x, axis, ir.constant(both, element, "2"), 2):
        ir.result(part)
    (finding,) = check(ir.save(tmp_path))
    assert (finding.code, finding.severity) == ("TS302", "error")
    assert "the dimension is 8" in finding.message


def test_every_layer_is_reported(tmp_path: Path) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "6,8")
    axis = ir.int64(0, scalar=True)
    for part in (*ir.split(x, axis, 4), *ir.variadic_split(x, axis, ir.int64(2, 5), 2)):
        ir.result(part)
    assert [f.code for f in check(ir.save(tmp_path))] == ["TS303", "TS302"]


def test_lengths_known_only_at_run_time_and_parts_that_nobody_uses(tmp_path: Path) -> None:
    ir = IrFile()
    x, lengths = ir.parameter("x", "i64", "6,8"), ir.parameter("l", "i64", "2")
    parts = ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2)
    ir.result(parts[0])
    path = ir.save(tmp_path)
    assert [f.code for f in check(path)] == ["TS824", "TS812"]
    assert "TS843" in [f.code for f in check(path, "openvino")]


def test_one_part_does_nothing(tmp_path: Path) -> None:
    assert [f.code for f in check(cut_file((6,)).save(tmp_path))] == ["TS811"]


def test_the_dimensions_of_a_port_agree_with_the_part(tmp_path: Path) -> None:
    ir = cut_file((2, 4))
    text = ir.text.replace('names="part1"/>', 'names="part1"><dim>3</dim><dim>8</dim></port>')
    (finding,) = check(ir.save(tmp_path, text))
    assert finding.code == "TS801"
    assert "(3, 8)" in finding.message


def test_other_engines_do_not_read_the_format(tmp_path: Path) -> None:
    assert [f.code for f in check(cut_file().save(tmp_path), "onnxruntime")] == ["TS841"]
    ir = IrFile()  # nothing else is said of what they do with it
    x, lengths = ir.parameter("x", "i64", "?,8"), ir.parameter("l", "i64", "2")
    for part in ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2):
        ir.result(part)
    found = check(ir.save(tmp_path), "portable")
    assert [(each.code, each.node) for each in found] == [
        ("TS824", "layer 'cut' (id 3)"),
        ("TS841", "model"),
    ]


def test_a_broken_graph_is_a_finding_and_no_xml_is_a_refusal(tmp_path: Path) -> None:
    ir = cut_file()
    path = ir.save(tmp_path, ir.text.replace('from-layer="0"', 'from-layer="77"'))
    assert [f.code for f in check(path)] == ["TS502"]
    path.write_text("no xml")
    with pytest.raises(SplitError, match="TS501"):
        check(path)


def test_a_missing_bin_is_a_finding(tmp_path: Path) -> None:
    path = cut_file().save(tmp_path)
    path.with_suffix(".bin").unlink()
    assert [f.code for f in check(path)] == ["TS504"]


def test_a_bin_outside_the_folder_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    path = cut_file().save(tmp_path / "model")
    path.with_suffix(".bin").symlink_to(path.with_suffix(".bin").rename(tmp_path / "secret.bin"))
    assert [f.code for f in check(path)] == ["TS504"]


@pytest.mark.parametrize("target", [None, "openvino"])
@pytest.mark.parametrize("version", ["opset8", "extension", ""])
def test_a_layer_of_an_unknown_version_does_not_hide_the_others(
    tmp_path: Path, version: str, target: Any
) -> None:
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "6,8"), ir.int64(0, scalar=True)
    parts = ir.layer("Split", (x, axis), 2, name="odd", version=version)
    for part in (*parts, *ir.variadic_split(x, axis, ir.int64(2, 5), 2)):
        ir.result(part)
    found = check(ir.save(tmp_path), target)
    assert [(finding.code, finding.node) for finding in found] == [
        ("TS101", "layer 'odd' (id 2)"),
        ("TS302", "layer 'cut' (id 4)"),
    ]


@pytest.mark.parametrize(("shape", "is_known"), [("...", False), ("?,4", True)])
@pytest.mark.parametrize("reader", ["Split", "Abs"])
def test_openvino_loads_no_input_of_unknown_rank(
    reader: str, shape: str, is_known: bool, tmp_path: Path
) -> None:
    """Measured on 2026.4.1: its plugin has no Parameter of dynamic rank."""
    ir = IrFile()
    x = ir.parameter("x", "f32", shape)
    if reader == "Abs":
        ir.result(ir.layer("Abs", (x,), 1)[0])
    else:
        for part in ir.split(x, ir.int64(1, scalar=True), 2):
            ir.result(part)
    found = check(ir.save(tmp_path), target="openvino")
    assert ["dynamic rank" in each.message for each in found if each.code == "TS843"] == (
        [] if is_known else [True]
    )


_BYTES = {"i4": 16, "u4": 16, "nf4": 16, "u1": 4, "u3": 12, "u6": 24, "u8": 32}
"""How many bytes 32 elements take."""


@pytest.mark.parametrize("element", _BYTES)
@pytest.mark.parametrize("is_reshaped", [False, True])
def test_a_split_of_a_constant_of_less_than_a_byte_is_found_and_refused(
    element: str, is_reshaped: bool, tmp_path: Path
) -> None:
    """Measured on 2026.4.1: it calculates their parts in whole bytes as it loads the model."""
    ir, is_packed = IrFile(), element != "u8"
    given = ir.constant(bytes(range(_BYTES[element])), element, "4,8")
    if is_reshaped:
        data = '<data special_zero="false"/>'
        (given,) = ir.layer("Reshape", (given, ir.int64(4, 8)), 1, data, shape=(4, 8))
    for part in ir.split(given, ir.int64(0, scalar=True), 2):
        ir.result(part)
    path = ir.save(tmp_path, ir.text.replace("FP32", element.upper()))
    found = "smaller than a byte" in str(check(path, target="openvino"))
    assert found is (is_packed and not (is_reshaped and element not in ("i4", "u4")))
    if found:
        with refused("TS513", "constants of int4"):
            lower(path, target="openvino")


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("element", _BYTES)
def test_openvino_splits_constants_of_less_than_a_byte_wrongly(
    element: str, tmp_path: Path
) -> None:
    """Measured on 2026.4.1, in a process of its own: it reads behind the end of the constant."""
    pytest.importorskip("openvino")
    ir, kind = IrFile(), "f32" if element == "nf4" else "u8"
    octets = np.random.default_rng(4).integers(0, 256, _BYTES[element], np.uint8).tobytes()
    given = ir.constant(octets, element, "4,8")
    for part in (given, *ir.split(given, ir.int64(0, scalar=True), 2)):
        data = f'<data destination_type="{kind}"/>'
        ir.result(ir.layer("Convert", (part,), 1, data)[0])
    (found,) = run_in_openvino(ir.save(tmp_path, named(ir)), [[]])
    whole, first, second = found
    assert first.tolist() == whole[:2].tolist()
    assert (second.tolist() == whole[2:].tolist()) is (element == "u8")
