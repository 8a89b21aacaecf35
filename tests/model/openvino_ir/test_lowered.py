"""An IR that was lowered: what is changed, what stays, and what OpenVINO makes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.model.lower import LoweredIr
from tensorsplit.model.lower.split_layers import lower_ir
from tensorsplit.model.openvino_ir.layer_types import PRECISIONS
from tensorsplit.model.reading import read_model
from tests.marks import thorough
from tests.model.ir_files import IrFile, Out, X, cut_file, named
from tests.model.openvino_ir.engine import run_by_ourselves, run_in_openvino
from tests.model.openvino_ir.random_irs import random_ir
from tests.refusals import refused

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*lengths that are fed are cut"),
    pytest.mark.filterwarnings("ignore:.*computes double in float32"),
]


WAYS = [run_by_ourselves, pytest.param(run_in_openvino, marks=pytest.mark.engine("openvino"))]


@pytest.fixture(params=WAYS, ids=["own", "openvino"])
def run(request: pytest.FixtureRequest) -> Any:
    """What runs an IR: our own engine, which has to take it as well, and OpenVINO."""
    return request.param


def lowered(path: Path) -> LoweredIr:
    made = ts.lower(path, target="openvino")
    assert isinstance(made, LoweredIr)
    return made


def saved(ir: IrFile, folder: Path, text: str | None = None) -> Path:
    """The file of the lowered model; what was lowered lies in a folder beside it."""
    (folder / "before").mkdir(exist_ok=True)
    made = lowered(ir.save(folder / "before", named(ir) if text is None else text))
    made.save(folder / "safe.xml", overwrite=True)
    return folder / "safe.xml"


def open_split(
    lengths: tuple[int, ...] = (2, -1),
    *,
    shape: str = "?,8",
    element: str = "f32",
    fed: str = "",
    axis: int | str = 0,
) -> IrFile:
    """``x`` cut into two parts, by lengths that are constant or fed."""
    ir = IrFile()
    x = ir.parameter("x", element, shape)
    given = ir.parameter("lengths", fed, "?") if fed else ir.int64(*lengths)
    at = ir.parameter("axis", axis, "") if isinstance(axis, str) else ir.int64(axis, scalar=True)
    for part in ir.variadic_split(x, at, given, len(lengths), ("a", "b")):
        ir.result(part)
    return ir


def joined_again(ir: IrFile, parts: list[Out]) -> None:
    ir.result(ir.layer("Concat", parts, 1, '<data axis="0"/>', name="join")[0])


@pytest.mark.parametrize(
    "ir",
    [
        cut_file(),
        open_split((2, 4), shape="6,8"),
        open_split((-1, 4), shape="6,8"),
        open_split((2, 4)),
        open_split((2, 1), axis="i64"),
    ],
    ids=["known", "static", "remainder of a number", "open", "axis at run time"],
)
def test_a_layer_that_runs_right_stays_byte_for_byte(ir: IrFile, tmp_path: Path) -> None:
    path = ir.save(tmp_path)
    made = lowered(path)
    assert (made.text, made.added) == (path.read_bytes(), b"")
    made.save(tmp_path / "safe.xml")
    assert (tmp_path / "safe.xml").read_bytes() == path.read_bytes()
    assert (tmp_path / "safe.bin").read_bytes() == path.with_suffix(".bin").read_bytes()


@pytest.mark.parametrize(
    "ir",
    [
        open_split(),
        open_split(fed="i64"),
        open_split(fed="i32", axis="i32"),
        open_split(axis="i32"),
        open_split(shape="6,8", fed="u8"),
        open_split(element="string"),
        open_split(element="string", fed="i64"),
    ],
)
def test_what_was_lowered_is_known_again(ir: IrFile, tmp_path: Path) -> None:
    path = saved(ir, tmp_path)
    before = (tmp_path / "before" / "model.xml").read_bytes()
    assert path.read_bytes() != before
    again = lowered(path)
    assert (again.text, again.added) == (path.read_bytes(), b"")
    found = ts.check(path, target="openvino")
    assert {each.code for each in found} <= {"TS812", "TS824", "TS843"}
    assert all("2^32" in each.message for each in found if each.code == "TS843")


OTHERS = {
    "Add": "Subtract",
    "Equal": "NotEqual",
    "Less": "LessEqual",
    "LogicalAnd": "LogicalOr",
    "Maximum": "Minimum",
    "Minimum": "Maximum",
    "Multiply": "Add",
    "ReduceSum": "ReduceMax",
    "Subtract": "Add",
}
"""Layers of checks, each with another one that takes the same."""

EXCHANGED = ("Less", "Select", "Subtract")
"""Layers that give something else if their last two inputs are exchanged."""


def tampered(text: str, before: str) -> Iterator[str]:
    """An IR with one of the layers that it has more than before doing something else."""
    old = set(re.findall(r'<layer id="(\d+)"', before))
    for layer in re.finditer(r'<layer id="(\d+)"[^>]* type="(\w+)".*?</layer>', text, re.DOTALL):
        number, kind = layer[1], layer[2]
        if number in old:
            continue
        if kind in OTHERS:
            changed = layer[0].replace(f'type="{kind}"', f'type="{OTHERS[kind]}"')
            yield text.replace(layer[0], changed)
        edge = f'from-layer="0" from-port="0" to-layer="{number}"'
        if kind == "ShapeOf" and edge in text:  # of the lengths, not of the data
            yield text.replace(edge, edge.replace('from-layer="0"', 'from-layer="1"'))
        if kind in EXCHANGED:
            last = len(re.findall("<port", layer[0])) - 2
            first, second = (f'to-layer="{number}" to-port="{at}"' for at in (last - 1, last))
            yield text.replace(first, "KEPT").replace(second, first).replace("KEPT", second)


@pytest.mark.parametrize(
    "ir",
    [
        open_split(),
        open_split(fed="i64"),
        thorough([open_split(fed="i32", axis="i32")]),
        thorough([open_split(axis="i32")]),
    ],
)
def test_a_check_that_does_something_else_is_not_known_again(ir: IrFile, tmp_path: Path) -> None:
    path = saved(ir, tmp_path)
    before, text = (tmp_path / "before" / "model.xml").read_text(), path.read_text()
    changed = list(tampered(text, before))
    assert len(changed) > 5
    for each in changed:
        path.write_text(each)
        assert lowered(path).text.decode() != each


@pytest.mark.parametrize("first", [0, 2, -1])
@pytest.mark.parametrize("is_joined", [False, True])
def test_what_is_known_of_lengths_is_known_after_their_check(
    tmp_path: Path, run: Any, first: int, *, is_joined: bool
) -> None:
    """Parts of a length that is known are split by lengths calculated of it, with no check."""
    ir = IrFile()
    x, second = ir.parameter("x", "f32", "?,8"), ir.parameter("second", "i64", "1")
    pair = (ir.int64(first), second)
    lengths = ir.layer("Concat", pair, 1, '<data axis="0"/>')[0]
    parts = ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2)
    shape = ir.layer("ShapeOf", (parts[0],), 1, '<data output_type="i64"/>', version="opset3")[0]
    at, axis = ir.int64(0), ir.int64(0, scalar=True)
    rows = ir.layer("Gather", (shape, at, axis), 1, '<data batch_dims="0"/>', version="opset8")[0]
    inner = ir.layer("Concat", (rows, ir.int64(0)), 1, '<data axis="0"/>')[0]
    for part in ir.variadic_split(parts[0], axis, inner, 2):
        ir.result(part)
    joined_again(ir, parts) if is_joined else ir.result(parts[1])
    path = saved(ir, tmp_path)
    again = lowered(path)
    assert (again.text, again.added) == (path.read_bytes(), b"")
    data = np.random.default_rng(6).random((7, 8), np.float32)
    rest = 7 - max(first, 0) if first >= 0 else 4
    right, wrong = run(path, [[data, np.array([rest])], [data, np.array([8])]])
    cut = 7 - rest
    wanted = [data[:cut], data[:0], data if is_joined else data[cut:]]
    assert [each.tolist() for each in right] == [each.tolist() for each in wanted]
    assert isinstance(wrong, str)


def test_only_the_layer_and_its_edges_change(tmp_path: Path) -> None:
    ir = open_split()
    before = (
        named(ir).replace("><", ">\n\t<").replace("</net>", "<rt_info><a b='>'/></rt_info></net>")
    )
    after = saved(ir, tmp_path, before).read_text().splitlines()
    lost = [line for line in before.splitlines() if line not in after]
    assert lost == ['\t<edge from-layer="1" from-port="0" to-layer="3" to-port="2"/>']
    data = (tmp_path / "safe.bin").read_bytes()
    assert data.startswith(ir.weights)
    assert len(data) % 8 == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [("no xml", "TS501"), ("<!DOCTYPE net><net/>", "TS503"), ('<net version="11"/>', "TS502")],
)
def test_what_is_no_ir_is_refused(text: str, code: str, tmp_path: Path) -> None:
    with refused(code):
        lowered(open_split().save(tmp_path, text))


@pytest.mark.parametrize("way", ["lengths", "strings", "an Abs"])
def test_the_report_says_which_layer_became_what_and_why(way: str, tmp_path: Path) -> None:
    ir, expected, why = {
        "lengths": (
            open_split(fed="i64"),
            ("layer 'cut' (id 3)", "VariadicSplit", "VariadicSplit with checked lengths"),
            "D7",
        ),
        "strings": (
            open_split(element="string"),
            ("layer 'cut' (id 3)", "VariadicSplit", "Gather"),
            "D17",
        ),
        "an Abs": (
            distances("a result", "f32"),
            ("layer 'layer2' (id 2)", "Abs", "Abs of the negative"),
            "the import puts Abs before the Concat",
        ),
    }[way]
    _, report = lower_ir(read_model(ir.save(tmp_path, named(ir))), "openvino")
    (change,) = report.changes
    assert (change.node, change.operator, change.became) == expected
    assert change.reason.startswith("openvino 2026.4.1: ")
    assert why in change.reason


@pytest.mark.parametrize(
    ("lengths", "code"), [((-1, 7), "TS306"), ((-1, -1), "TS306"), ((2, 5), "TS302")]
)
def test_what_never_fits_is_refused(lengths: tuple[int, ...], code: str, tmp_path: Path) -> None:
    with refused(code, "openvino.VariadicSplit-1", "layer 'cut' (id 3)"):
        lowered(open_split(lengths, shape="6,8").save(tmp_path))


def test_an_ir_that_is_not_well_formed_is_refused(tmp_path: Path) -> None:
    """It gives nothing out."""
    ir = IrFile()
    x = ir.parameter("x", "f32", "?,8")
    ir.variadic_split(x, ir.int64(0, scalar=True), ir.int64(2, -1), 2)
    with refused("TS502", "no outputs"):
        lowered(ir.save(tmp_path))


def test_other_targets_read_no_ir(tmp_path: Path) -> None:
    path = open_split().save(tmp_path)
    for target in ("onnxruntime", "portable"):
        with refused("TS513"):
            ts.lower(path, target=target)


def test_a_type_that_is_always_wrong_is_refused(tmp_path: Path) -> None:
    with refused("TS513", "layer 'cut' (id 3)"):
        lowered(open_split(element="u2").save(tmp_path))


def test_a_missing_bin_and_one_that_changes_are_refused(tmp_path: Path) -> None:
    path = open_split().save(tmp_path)
    made = lowered(path)
    path.with_suffix(".bin").write_bytes(b"more than there was, or less")
    with refused("TS504"):
        made.save(tmp_path / "safe.xml")
    assert not (tmp_path / "safe.xml").exists()
    path.with_suffix(".bin").unlink()
    with refused("TS504", f"{path.stem}.bin' can't be read"):
        made.save(tmp_path / "safe.xml")
    with refused("TS504"):
        lowered(path)


def test_no_file_that_is_there_is_replaced_without_overwrite(tmp_path: Path) -> None:
    made = lowered(open_split().save(tmp_path))
    (tmp_path / "safe.bin").write_bytes(b"mine")
    with refused("TS702"):
        made.save(tmp_path / "safe.xml")
    assert (tmp_path / "safe.bin").read_bytes() == b"mine"
    assert not (tmp_path / "safe.xml").exists()
    made.save(tmp_path / "safe.xml", overwrite=True)
    for own in ("model.xml", "link.xml"):
        (tmp_path / "link.xml").unlink(missing_ok=True)
        (tmp_path / "link.xml").symlink_to("model.xml")
        with refused("TS702"):
            made.save(tmp_path / own, overwrite=True)


def test_an_ir_is_saved_under_the_name_of_an_xml(tmp_path: Path) -> None:
    made = lowered(open_split().save(tmp_path))
    made.save(tmp_path / "safe.xml")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    wrong: list[Any] = [*("safe.bin", "other", "other.onnx"), "", ".", None, 5]
    for name in wrong:
        with refused("TS703", "the path of an .xml, beside which goes its .bin", parameter="path"):
            made.save(tmp_path / name if name in wrong[:3] else name, overwrite=True)
    flags: list[Any] = ["no", [], None, 2]
    for flag in flags:
        with refused("TS703", "give True or False", parameter="overwrite"):
            made.save(tmp_path / "safe.xml", overwrite=flag)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_names_are_written_as_xml_has_them(tmp_path: Path) -> None:
    ir = open_split()
    text = named(ir).replace('name="cut"', 'name="&lt;&quot;切&#10;&amp;"')
    path = saved(ir, tmp_path, text)
    assert lowered(path).text == path.read_bytes()
    assert "&lt;&quot;切&#10;&amp;" in path.read_text(encoding="utf-8")


def test_another_encoding_is_refused_where_something_changes(tmp_path: Path) -> None:
    ir = open_split()
    path = ir.save(tmp_path)
    path.write_text(ir.text.replace("?>", ' encoding="UTF-16"?>'), encoding="utf-16")
    with refused("TS513"):
        lowered(path)


@pytest.mark.engine("openvino")
@pytest.mark.parametrize("seed", range(900, 930))
def test_openvino_runs_it_right_or_refuses(seed: int, tmp_path: Path) -> None:
    made = random_ir(seed)
    path = tmp_path / "model.xml"
    made.save(path)
    try:
        lowered(path).save(tmp_path / "safe.xml")
    except ts.SplitError:
        assert all(case.parts is None for case in made.cases)
        return
    again = lowered(tmp_path / "safe.xml")
    assert (again.text, again.added) == ((tmp_path / "safe.xml").read_bytes(), b"")
    assert all(each.severity != "error" for each in ts.check(tmp_path / "safe.xml", "openvino"))
    results = run_in_openvino(tmp_path / "safe.xml", [case.feeds for case in made.cases])
    for case, found in zip(made.cases, results, strict=True):
        if case.parts is None:
            assert isinstance(found, str), (made, case.feeds[1:])
        else:
            assert not isinstance(found, str), (made, case.feeds[1:], found)
            for part, given in zip(case.parts, found, strict=True):
                np.testing.assert_array_equal(given, part, strict=True)


@pytest.mark.engine("openvino")
def test_the_layer_as_it_was_reads_behind_its_data(tmp_path: Path) -> None:
    ir = open_split((-1, 7))
    ir.save(tmp_path, named(ir))
    ((rest, part),) = run_in_openvino(tmp_path / "model.xml", [[X]])
    assert (rest.shape, part.shape) == ((0, 8), (7, 8))
    (text,) = run_in_openvino(saved(ir, tmp_path), [[X]])
    assert "reshape" in text


def test_lengths_of_which_it_is_not_known_how_many_there_are(tmp_path: Path, run: Any) -> None:
    ir = open_split(fed="u8")
    path = ir.save(tmp_path, named(ir))
    assert [each.code for each in ts.check(path, "openvino") if each.severity == "error"] == [
        "TS841"
    ]
    feeds = [[X, np.array(given, np.uint8)] for given in ((2, 4), (6,), (2, 3), (2, 4, 0))]
    right, *wrong = run(saved(ir, tmp_path), feeds)
    assert [part.shape for part in right] == [(2, 8), (4, 8)]
    assert all(isinstance(each, str) for each in wrong)


def test_parts_that_are_joined_again_are_checked(tmp_path: Path, run: Any) -> None:
    ir = IrFile()
    x, lengths = ir.parameter("x", "f32", "6,8"), ir.parameter("lengths", "i64", "2")
    joined_again(ir, ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2))
    feeds = [[X, np.array(given)] for given in ((2, 4), (2, -1), (2, 3), (-1, 7))]
    path = saved(ir, tmp_path)
    right, rest, *wrong = run(path, feeds)
    for found in (right, rest):
        np.testing.assert_array_equal(found[0], X)
    assert all(isinstance(each, str) for each in wrong)
    assert lowered(path).text == path.read_bytes()


@pytest.mark.engine("openvino")
def test_a_long_axis_is_split_where_its_parts_are(tmp_path: Path) -> None:
    """D14."""
    data = np.random.default_rng(24).integers(0, 256, 33_554_439).astype(np.uint8)
    ir = open_split((0, 0), shape="?", element="u8", fed="i64")
    given = ([16_777_217, 16_777_222], [16_777_217, 16_777_221], [16_777_217, 16_777_223], [5, -1])
    cases = [[data, np.array(each)] for each in given]
    right, *wrong, rest = run_in_openvino(saved(ir, tmp_path), cases)
    np.testing.assert_array_equal(right[0], data[:16_777_217])
    np.testing.assert_array_equal(right[1], data[16_777_217:])
    np.testing.assert_array_equal(rest[1], data[5:])
    assert all(isinstance(each, str) for each in wrong)


def test_a_used_part_of_length_0_keeps_the_check(tmp_path: Path, run: Any) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "?,8")
    empty, _ = ir.variadic_split(x, ir.int64(0, scalar=True), ir.int64(0, 6), 2)
    ir.result(ir.layer("Abs", (empty,), 1)[0])
    path = saved(ir, tmp_path)
    right, wrong = run(path, [[X], [X[:5]]])
    assert right[0].shape == (0, 8)
    assert isinstance(wrong, str)
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("count", [2, 4, 12])
def test_equal_parts_that_are_joined_again_are_checked(
    count: int, tmp_path: Path, run: Any
) -> None:
    ir = IrFile()
    x = ir.parameter("x", "f32", "?,8")
    (data,) = ir.layer("Abs", (x,), 1)
    joined_again(ir, ir.split(data, ir.int64(0, scalar=True), count))
    path = saved(ir, tmp_path)
    whole = np.random.default_rng(count).random((2 * count, 8), np.float32)
    right, wrong = run(path, [[whole], [whole[1:]]])
    np.testing.assert_array_equal(right[0], whole)
    assert isinstance(wrong, str)
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("shape", ["?", "5"])
def test_strings_are_taken_one_by_one(shape: str, tmp_path: Path, run: Any) -> None:
    words: Any = np.array(list("abcde"))
    path = saved(open_split(shape=shape, element="string"), tmp_path)
    ((a, b),) = run(path, [[words]])
    assert (a.tolist(), b.tolist()) == (["a", "b"], ["c", "d", "e"])
    if shape == "?":
        (text,) = run(path, [[words[:1]]])
        assert isinstance(text, str)


@pytest.mark.parametrize("element", ["f32", "string"])
@pytest.mark.parametrize("kind", ["i64", "i32"])
def test_a_remainder_follows_from_a_shape(
    element: str, kind: str, tmp_path: Path, run: Any
) -> None:
    """OpenVINO takes what shapes without a limit give for never equal to a number below 0."""
    ir, numpy = IrFile(), "<i8" if kind == "i64" else "<i4"
    x = ir.parameter("x", element, "?")
    one, two, three, seven, least, none = (
        ir.constant(np.array([n], numpy).tobytes(), kind, "1") for n in (1, 2, 3, 7, -1, 0)
    )
    made = f'<data output_type="{kind}"/>'
    (shape,) = ir.layer("ShapeOf", (x,), 1, made, version="opset3")
    (less,) = ir.layer("Subtract", (shape, seven), 1)
    (lengths,) = ir.layer("Concat", (one, less), 1, '<data axis="0"/>')
    for part in ir.variadic_split(x, ir.int64(0, scalar=True), lengths, 2):
        ir.result(part)
    (is_least,) = ir.layer("Equal", (less, least), 1)
    (end,) = ir.layer("Select", (is_least, three, two), 1)
    ir.result(ir.layer("Slice", (ir.int64(*range(8)), none, end, one), 1, version="opset8")[0])
    path = saved(ir, tmp_path)
    assert lowered(path).text == path.read_bytes()
    data = np.array(list("abcdefghi")) if element == "string" else np.arange(9, dtype=np.float32)
    right, wrong = run(path, [[data[:6]], [data]])
    assert [list(part) for part in right] == [[*data[:1]], [*data[1:6]], [0, 1, 2]]
    assert isinstance(wrong, str)


def test_parts_of_a_layer_that_is_replaced_keep_their_names(tmp_path: Path) -> None:
    ir = IrFile()
    inputs = (ir.parameter("x", "f32", "?,8"), ir.int64(0, scalar=True))
    data = '<data num_splits="3"/>'
    names = ["a", "b\\,1,b2", "\N{LATIN SMALL LETTER E WITH ACUTE}&amp;"]
    joined_again(ir, ir.layer("Split", inputs, 3, data, name="cut", names=names))
    layers = ElementTree.fromstring(lowered(ir.save(tmp_path, named(ir))).text).find("layers")
    assert layers is not None
    assert "Split" not in [each.get("type") for each in layers]
    found = [port.get("names") for port in layers.iter("port") if port.get("names")]
    assert found == ["a", "b\\,1,b2", "\N{LATIN SMALL LETTER E WITH ACUTE}&"]


def test_what_ports_say_of_a_layer_that_is_replaced_stays_known(tmp_path: Path) -> None:
    """Lengths of another split, which are the lengths of a part, need no check either time."""
    ir = IrFile()
    x, y = ir.parameter("x", "string", "?,8"), ir.parameter("y", "f32", "?,2")
    axis, zero = ir.int64(1, scalar=True), ir.int64(0, scalar=True)
    part, rest = ir.variadic_split(x, axis, ir.int64(2, -1), 2, "ab")
    ir.result(rest)
    shape = ir.layer("ShapeOf", (part,), 1, '<data output_type="i64"/>', version="opset3")[0]
    lengths = ir.layer("Gather", (shape, ir.int64(1, 1), zero), 1, version="opset8")[0]
    for end in ir.variadic_split(y, axis, ir.layer("Subtract", (lengths, ir.int64(0, 2)), 1)[0], 2):
        ir.result(end)
    said = re.sub('names="a"/>', 'names="a"><dim>-1</dim><dim>2</dim></port>', named(ir))
    path = saved(ir, tmp_path, said)
    layers = ElementTree.fromstring(path.read_bytes()).findall("layers/layer")
    assert [each.get("type") for each in layers].count("Split") == 0
    assert [each.get("type") for each in layers].count("VariadicSplit") == 1
    assert lowered(path).text == path.read_bytes()


def test_layers_that_are_added_have_ids_and_names_of_their_own(tmp_path: Path) -> None:
    """The ids of a file may have gaps, as those of one that was edited before."""
    ir = open_split((2, 3, -1), fed="i64")
    spread = re.sub(
        r'(layer id|from-layer|to-layer)="(\d+)"',
        lambda found: f'{found[1]}="{3 + 5 * int(found[2])}"',
        named(ir),
    )
    path = saved(ir, tmp_path, spread)
    assert lowered(path).text == path.read_bytes()
    layers = ElementTree.fromstring(path.read_bytes()).find("layers")
    assert layers is not None
    for name in ("id", "name"):
        found = [each.get(name) for each in layers]
        assert len(found) == len(set(found)) > len(ir.layers)
    added = [str(name) for name in found if f'name="{name}"' not in spread]
    assert {re.split(r"\W", name)[0] for name in added} == {"cut"}


def test_strings_that_are_split_twice(tmp_path: Path, run: Any) -> None:
    ir = IrFile()
    axis = ir.int64(0, scalar=True)
    _, rest = ir.variadic_split(ir.parameter("x", "string", "?"), axis, ir.int64(1, -1), 2)
    for part in ir.split(rest, axis, 2):
        ir.result(part)
    path = saved(ir, tmp_path)
    ((a, b),) = run(path, [[np.array(list("abcde"))]])
    assert (a.tolist(), b.tolist()) == (["b", "c"], ["d", "e"])
    (text,) = run(path, [[np.array(list("abcd"))]])
    assert isinstance(text, str)


def looped(body: IrFile, ports: str = "") -> str:
    layers, edges = "".join(body.layers), "".join(body.edges)
    return f"{ports}<body><layers>{layers}</layers><edges>{edges}</edges></body>"


def test_a_layer_in_the_body_of_another_one_is_lowered(tmp_path: Path) -> None:
    body, ir = open_split(), IrFile()
    text = looped(body)
    ir.result(ir.layer("Loop", [ir.parameter("x", "f32", "?,8")], 1, text)[0])
    ir.weights = body.weights
    path = saved(ir, tmp_path)
    before = (tmp_path / "before" / "model.xml").read_text()
    assert path.read_text().count("<layer ") > before.count("<layer ")
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("is_read", [False, True])
def test_a_check_of_joined_parts_that_a_body_gives_is_known_again(
    tmp_path: Path, *, is_read: bool
) -> None:
    """Where nothing reads what the body gives, the check needs no part of length 0."""
    body, ir = IrFile(), IrFile()
    x = body.parameter("x", "f32", "?,8")
    body.result(body.layer("Relu", (x,), 1)[0])
    lengths = body.int64(2, -1)
    joined_again(body, body.variadic_split(x, body.int64(0, scalar=True), lengths, 2))
    ends = '<input external_port_id="0" internal_layer_id="0"/>'
    for port, inner in ((1, 2), (2, len(body.layers) - 1)):
        ends += f'<output external_port_id="{port}" internal_layer_id="{inner}"/>'
    text = looped(body, f"<port_map>{ends}</port_map>")
    rows, joined = ir.layer("TensorIterator", [ir.parameter("x", "f32", "?,8")], 2, text)
    ir.result(joined if is_read else rows)
    ir.weights = body.weights
    path = saved(ir, tmp_path)
    assert "Reshape" in path.read_text()
    assert lowered(path).text == path.read_bytes()


@pytest.mark.engine("openvino")
def test_layers_in_bodies_are_lowered_too(tmp_path: Path) -> None:
    import openvino as ov
    from openvino import opset8 as ops

    def branch(first: int) -> Any:
        x = ops.parameter(ov.PartialShape([-1]), ov.Type.f32)
        given = ops.constant(np.array([first, -1]))
        return ov.Model([ops.variadic_split(x, ops.constant(0), given).output(1)], [x], "branch")

    x = ops.parameter(ov.PartialShape([-1]), ov.Type.f32, name="x")
    condition = ops.parameter(ov.PartialShape([]), ov.Type.boolean, name="condition")
    node = ops.if_op(condition.output(0))
    then, other = branch(1), branch(3)
    node.set_then_body(then)
    node.set_else_body(other)
    node.set_input(x.output(0), then.get_parameters()[0], other.get_parameters()[0])
    result = node.set_output(then.get_results()[0], other.get_results()[0])
    ov.save_model(ov.Model([result], [x, condition], "bodies"), tmp_path / "model.xml")
    lowered(tmp_path / "model.xml").save(tmp_path / "safe.xml")
    path = tmp_path / "safe.xml"
    assert lowered(path).text == path.read_bytes()
    data = np.array([1.5, 2.5], np.float32)
    yes, no = run_in_openvino(path, [[data, np.array(True)], [data, np.array(False)]])
    np.testing.assert_array_equal(yes[0], data[1:])
    assert isinstance(no, str)


def recurrent(way: str) -> IrFile:
    """A model whose steps an RNN reads; ``way`` says what else reads them turned."""
    ir, rng = IrFile(), np.random.default_rng(4)
    e = ir.layer("ReLU", (ir.parameter("x", "f32", "6,2,8"),), 1)[0]

    def moved(data: Out, *order: int) -> Out:
        return ir.layer("Transpose", (data, ir.int64(*order)), 1)[0]

    def weights(*shape: int) -> Out:
        held = rng.standard_normal(shape).astype(np.float32)
        return ir.constant(held.tobytes(), "f32", ",".join(map(str, shape)))

    steps = moved(e, 1, 0, 2)
    if way == "the same layer":
        ir.result(steps)
    elif way == "another layer":
        ir.result(moved(e, 1, 0, 2))
    elif way == "two layers":
        ir.result(moved(moved(e, 2, 0, 1), 2, 1, 0))
    else:
        ir.result(moved(ir.layer("Sigmoid", (e,), 1)[0], 1, 0, 2))
    lengths = ir.constant(np.full(2, 6, np.int32).tobytes(), "i32", "2")
    states, *others = weights(2, 1, 3), weights(1, 3, 8), weights(1, 3, 3), weights(1, 3)
    data = '<data hidden_size="3" activations="tanh" direction="forward"/>'
    inputs = (steps, states, lengths, *others)
    rows, _ = ir.layer("RNNSequence", inputs, 2, data, version="opset5")
    ir.result(moved(rows, 2, 1, 0, 3))
    return ir


@pytest.mark.parametrize("way", ["the same layer", "another layer", "two layers"])
def test_what_a_recurrent_layer_reads_is_turned_right(way: str, tmp_path: Path, run: Any) -> None:
    x = np.random.default_rng(6).standard_normal((6, 2, 8)).astype(np.float32)
    path = saved(recurrent(way), tmp_path)
    before = tmp_path / "before" / "model.xml"
    (found,) = [each for each in ts.check(before, target="openvino") if each.code == "TS843"]
    assert "LSTM, GRU or RNN" in found.message
    assert [each for each in ts.check(path, target="openvino") if each.code == "TS843"] == []
    assert lowered(path).text == path.read_bytes()
    ((turned, rows),), ((_, expected),) = (run(each, [[x]]) for each in (path, before))
    np.testing.assert_array_equal(turned, np.maximum(x, 0).transpose(1, 0, 2))
    np.testing.assert_allclose(rows, expected, rtol=1e-4)


def test_a_transpose_that_only_a_recurrent_layer_reads_stays(tmp_path: Path) -> None:
    ir = recurrent("another calculation")
    path = ir.save(tmp_path, named(ir))
    assert lowered(path).text == path.read_bytes()
    assert ts.check(path, target="openvino") == []


def distances(way: str, kind: str) -> IrFile:
    """A model with an Abs of a Concat; ``way`` says what else reads that."""
    ir = IrFile()
    data = ir.parameter("x", kind, "?")
    joined = ir.layer("Concat", (data, data), 1, '<data axis="0"/>')[0]
    held = ir.layer("Reshape", (joined, ir.int64(-1)), 1)[0] if way == "a reshape" else joined
    ir.result(ir.layer("Abs", (held,), 1)[0])
    if way == "its shape":
        ir.result(ir.layer("ShapeOf", (joined,), 1, version="opset3")[0])
    elif way == "another Concat":
        ir.result(ir.layer("Concat", (data, data), 1, '<data axis="0"/>')[0])
    elif way != "nothing":
        ir.result(joined)
    return ir


@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize("way", ["a result", "a reshape", "another Concat"])
def test_what_is_joined_keeps_its_sign_beside_abs(
    way: str, kind: str, tmp_path: Path, run: Any
) -> None:
    x = np.array([-5, 3], np.float32 if kind == "f32" else np.int64)
    path = saved(distances(way, kind), tmp_path)
    (found,) = ts.check(tmp_path / "before" / "model.xml", target="openvino")
    assert "an Abs of a Concat" in found.message
    assert ts.check(path, target="openvino") == []
    assert lowered(path).text == path.read_bytes()
    (((positive, joined),),) = (run(path, [[x]]),)
    np.testing.assert_array_equal(positive, [5, 3, 5, 3])
    np.testing.assert_array_equal(joined, [-5, 3, -5, 3])


@pytest.mark.parametrize("way", ["nothing", "its shape"])
def test_an_abs_of_what_nothing_else_reads_stays(way: str, tmp_path: Path) -> None:
    ir = distances(way, "f32")
    path = ir.save(tmp_path, named(ir))
    assert ts.check(path, target="openvino") == []
    assert lowered(path).text == path.read_bytes()


def test_an_abs_of_what_follows_from_shapes_is_right(tmp_path: Path, run: Any) -> None:
    ir, x = IrFile(), np.random.default_rng(8).standard_normal(3, np.float32)
    given, kind = ir.parameter("x", "f32", "?"), '<data output_type="i64"/>'
    (size,) = ir.layer("ShapeOf", (given,), 1, kind, version="opset3")
    (less,) = ir.layer("Subtract", (size, ir.int64(5)), 1)
    ir.result(ir.layer("Abs", (less,), 1)[0])
    path = saved(ir, tmp_path)
    (found,) = ts.check(tmp_path / MADE, target="openvino")
    assert "an Abs of what is calculated from shapes" in found.message
    assert ts.check(path, target="openvino") == []
    (((positive,),),) = (run(path, [[x]]),)
    np.testing.assert_array_equal(positive, [2])


MADE = "before/model.xml"
TO_BOOL = '<data destination_type="boolean"/>'


def cast_part(way: str, kind: str) -> IrFile:
    """A model with a part of a list of 4, as booleans; ``way`` says what gives it, and how."""
    ir = IrFile()
    x, zero = ir.parameter("x", kind, "4"), ir.int64(0, scalar=True)
    if way == "lengths":
        _, part = ir.variadic_split(x, zero, ir.int64(2, 2), 2)
    elif way == "one length":
        (part,) = ir.variadic_split(ir.split(x, zero, 2)[1], zero, ir.int64(-1), 1)
    elif way == "topk":
        largest = '<data axis="0" mode="max" sort="none" index_element_type="i64"/>'
        two = ir.int64(2, scalar=True)
        part, _ = ir.layer("TopK", (x, two), 2, largest, version="opset11")
    else:
        first, second = ir.split(x, zero, 2)
        part = first if way == "the first" else second
    if way == "turned":
        (part,) = ir.layer("Transpose", (part, ir.int64(0)), 1)
    if way == "negative":
        (part,) = ir.layer("Negative", (part,), 1)
    if way == "like":
        like = ir.layer("Greater", (x, x), 1, '<data auto_broadcast="numpy"/>')[0]
        (made,) = ir.layer("ConvertLike", (part, like), 1)
    else:
        (made,) = ir.layer("Convert", (part,), 1, TO_BOOL)
    *before, last = ir.layers
    typed = [each.replace("FP32", PRECISIONS[kind]) for each in before]
    ir.layers = [*typed, last.replace("FP32", "BOOL")]
    ir.result(made)
    return ir


CAST_WRONGLY = {
    "equal": "the elements of the first part",
    "turned": "the elements of the first part",
    "lengths": "Default output not supported",
    "one length": "Default output not supported",
    "topk": "Default output not supported",
}


@pytest.mark.filterwarnings("ignore:.*computes int64")
@pytest.mark.parametrize("kind", ["f32", "i64", "f16", "u8"])
@pytest.mark.parametrize("way", CAST_WRONGLY)
def test_parts_are_converted_to_boolean(way: str, kind: str, tmp_path: Path, run: Any) -> None:
    """OpenVINO takes the first part for another one, or asks a layer for its only result."""
    types: dict[str, Any] = {"f32": np.float32, "i64": np.int64, "f16": np.float16, "u8": np.uint8}
    path = saved(cast_part(way, kind), tmp_path)
    check_cast(tmp_path, CAST_WRONGLY[way])
    ((got,),) = run(path, [[np.array([3, 0, 0, 2], types[kind])]])
    np.testing.assert_array_equal(got, np.array([way == "topk", True]), strict=True)


def check_cast(folder: Path, note: str) -> None:
    """Check that a Cast to bool is found in the model of a folder, and not when lowered."""
    before, after = (ts.check(folder / name, target="openvino") for name in (MADE, "safe.xml"))
    assert sum(note in each.message for each in before) == 1
    assert not any("to bool" in each.message for each in after)
    assert lowered(folder / "safe.xml").text == (folder / "safe.xml").read_bytes()


@pytest.mark.engine("openvino")
def test_a_part_is_converted_like_booleans(tmp_path: Path) -> None:
    """Our own engine runs no ConvertLike."""
    path = saved(cast_part("like", "f32"), tmp_path)
    check_cast(tmp_path, "the elements of the first part")
    ((got,),) = run_in_openvino(path, [[np.array([3, 0, 0, 2], np.float32)]])
    np.testing.assert_array_equal(got, np.array([False, True]), strict=True)


@pytest.mark.parametrize("way", ["the first", "negative"])
def test_other_parts_are_converted_as_they_are(way: str, tmp_path: Path) -> None:
    ir = cast_part(way, "f32")
    path = ir.save(tmp_path, named(ir))
    assert not any("to bool" in each.message for each in ts.check(path, target="openvino"))
    assert lowered(path).text == path.read_bytes()


def counted(kinds: str) -> IrFile:
    """A model that counts from a number to another one by a third, of these types."""
    ir = IrFile()
    fed = [ir.parameter(f"n{place}", kind, "") for place, kind in enumerate(kinds.split())]
    made = "f32" if kinds.startswith("f32") else "i64"
    ir.result(ir.layer("Range", fed, 1, f'<data output_type="{made}"/>', version="opset4")[0])
    return ir


@pytest.mark.filterwarnings("ignore:.*computes int64")
@pytest.mark.parametrize("kinds", ["i64 i64 i64", "i32 i64 i32", "i64 i32 i32", "f32 f32 f32"])
@pytest.mark.parametrize("numbers", [(0, -2, 1), (5, 0, -2), (0, 5, 2), (2, -5, 3), (3, 3, 1)])
def test_a_range_whose_limit_is_on_the_other_side_is_empty(
    numbers: tuple[int, int, int], kinds: str, tmp_path: Path, run: Any
) -> None:
    path = saved(counted(kinds), tmp_path)
    assert lowered(path).text == path.read_bytes()
    types: dict[str, Any] = {"i32": np.int32, "i64": np.int64, "f32": np.float32}
    feeds = [np.array(n, types[kind]) for n, kind in zip(numbers, kinds.split(), strict=True)]
    ((counts,),) = run(path, [feeds])
    assert counts.tolist() == list(range(*numbers))


def test_a_range_of_floats_and_integers_is_refused(tmp_path: Path) -> None:
    with refused("TS513", "its numbers are of several types"):
        lowered(counted("i64 f32 i64").save(tmp_path))


def halved(kind: str, rule: str = "") -> tuple[IrFile, str]:
    """A model that divides, and its text; ``rule`` says how its operands are broadcast."""
    ir = IrFile()
    x, y = ir.parameter("x", kind, "?"), ir.parameter("y", kind, "?")
    data = f'<data auto_broadcast="{rule}"/>' if rule else ""
    ir.result(ir.layer("Divide", (x, y), 1, data, name="half")[0])
    return ir, named(ir).replace("FP32", kind.upper())


@pytest.mark.parametrize("rule", ["", "numpy", "NUMPY", "none"])
@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_quotients_of_8_bits_are_rounded_toward_zero(
    kind: str, rule: str, tmp_path: Path, run: Any
) -> None:
    ir, text = halved(kind, rule)
    path = saved(ir, tmp_path, text)
    assert lowered(path).text == path.read_bytes()
    dtype: Any = np.int8 if kind == "i8" else np.uint8
    signs = np.array([1, -1, -1] if kind == "i8" else [1, 1, 1], dtype)
    x, y = np.array([7, 9, 100], dtype) * signs, np.array([2, 5, 3], dtype)
    ((quotient,),) = run(path, [[x, y]])
    np.testing.assert_array_equal(quotient, np.array([3, 1, 33], dtype) * signs, strict=True)


def test_quotients_that_are_not_broadcast_as_numpy_does_are_refused(tmp_path: Path) -> None:
    ir, text = halved("i8", "pdpd")
    with refused("TS513", "not broadcast as NumPy does"):
        lowered(ir.save(tmp_path, text))


@pytest.mark.parametrize(
    ("rounding", "is_down"),
    [
        ("", True),
        ('<data m_pythondiv="true"/>', True),
        ('<data m_pythondiv="1"/>', True),
        ('<data m_pythondiv="false"/>', False),
        ('<data m_pythondiv="FALSE"/>', False),
        ('<data m_pythondiv="0"/>', False),
    ],
)
@pytest.mark.parametrize(("kind", "may_be_below_0"), [("i32", True), ("u32", False)])
def test_quotients_that_are_to_be_rounded_down_are_found(
    kind: str, may_be_below_0: bool, rounding: str, is_down: bool, tmp_path: Path
) -> None:
    """The default of `m_pythondiv` is true; OpenVINO rounds toward 0 whatever it is."""
    ir = IrFile()
    x, y = ir.parameter("x", kind, "?"), ir.parameter("y", kind, "?")
    ir.result(ir.layer("Divide", (x, y), 1, rounding)[0])
    path = ir.save(tmp_path, named(ir).replace("FP32", kind.upper()))
    found = [each for each in ts.check(path, target="openvino") if "m_pythondiv" in each.message]
    assert bool(found) is (is_down and may_be_below_0)


@pytest.mark.parametrize("least", [0, -1])
def test_a_quotient_of_what_is_not_below_0_is_right_however_it_is_rounded(
    least: int, tmp_path: Path
) -> None:
    ir = IrFile()
    (natural,) = ir.layer("Abs", (ir.parameter("x", "i32", "50,2"),), 1)
    divisors = np.random.default_rng(8).integers(1, 99, (50, 2), np.int32)
    divisors[25, 1] = least
    given = ir.constant(divisors.tobytes(), "i32", "50,2")
    ir.result(ir.layer("Divide", (natural, given), 1)[0])
    path = ir.save(tmp_path, named(ir).replace("FP32", "I32"))
    found = [each for each in ts.check(path, target="openvino") if "m_pythondiv" in each.message]
    assert bool(found) is (least < 0)


def taken(shape: str, indices: tuple[int, ...], axis: int) -> IrFile:
    ir = IrFile()
    x, at = ir.parameter("x", "f32", shape), ir.int64(axis, scalar=True)
    ir.result(ir.layer("Gather", (x, ir.int64(*indices), at), 1, version="opset8")[0])
    return ir


@pytest.mark.parametrize(
    ("shape", "indices", "axis", "made"),
    [
        ("0,3", (2, -3), 1, (0, 2)),
        ("3,0", (0, 1, -1), 0, (3, 0)),
        ("0,3", (2, 2), -1, (0, 2)),
        ("3,4", (), 0, (0, 4)),
        ("3,4", (), -1, (3, 0)),
    ],
)
def test_what_is_taken_of_no_elements_is_none(
    shape: str, indices: tuple[int, ...], axis: int, made: tuple[int, ...], tmp_path: Path, run: Any
) -> None:
    ir = taken(shape, indices, axis)
    found = str(ts.check(ir.save(tmp_path), target="openvino"))
    assert ("without indices" in found, "of data without elements" in found) == (
        not indices,
        bool(indices),
    )
    path = saved(ir, tmp_path)
    assert "Gather" not in path.read_text()
    ((none,),) = run(path, [[np.zeros(tuple(map(int, shape.split(","))), np.float32)]])
    assert (none.shape, none.dtype) == (made, np.float32)


@pytest.mark.parametrize("indices", [(3,), (-4,), (0, 3)])
def test_what_is_out_of_range_of_no_elements_is_refused(
    indices: tuple[int, ...], tmp_path: Path
) -> None:
    with refused("TS513", "indices that may be out of range"):
        lowered(taken("0,3", indices, 1).save(tmp_path))


@pytest.mark.parametrize("shape", ["0,?", "?,3"])
def test_a_gather_of_data_whose_shape_is_not_seen_stays(shape: str, tmp_path: Path) -> None:
    path = taken(shape, (1,), 1).save(tmp_path)
    assert lowered(path).text == path.read_bytes()


def sliced_twice(way: str) -> IrFile:
    """Ones in the shape of a slice of a slice, and of the first one, by bounds that are fed."""
    ir = IrFile()
    x, at = ir.parameter("x", "f32", "?,8"), ir.int64(way != "an axis of unknown length")
    bounds = [ir.parameter(name, "i64", "1") for name in "abcd"]
    one, back = ir.int64(1), ir.int64(1, 0)
    if way == "an axis that was another one":
        (x,), at = ir.layer("Transpose", (x, back), 1, shape=(8, -1)), ir.int64(0)
    (u,) = ir.layer("Slice", (x, *bounds[:2], one, at), 1, version="opset8", shape=(-1, -1))
    if way == "an axis that was another one":
        (u,), at = ir.layer("Transpose", (u, back), 1, shape=(-1, -1)), one
    (s,) = ir.layer("Slice", (u, *bounds[2:], one, at), 1, version="opset8", shape=(-1, -1))
    for each in (s, u):
        (shape,) = ir.layer(
            "ShapeOf", (each,), 1, '<data output_type="i64"/>', version="opset3", shape=(2,)
        )
        ir.result(
            ir.layer("Broadcast", (one, shape), 1, '<data mode="numpy"/>', version="opset3")[0]
        )
    return ir


@pytest.mark.parametrize(
    "way", ["an axis", "an axis that was another one", "an axis of unknown length"]
)
def test_a_slice_of_a_slice_keeps_a_length_of_its_own(way: str, tmp_path: Path, run: Any) -> None:
    ir, is_limited = sliced_twice(way), way != "an axis of unknown length"
    path = ir.save(tmp_path, named(ir))
    found = [str(each) for each in ts.check(path, target="openvino")]
    assert any("the largest length is known" in each for each in found) is is_limited
    safe = saved(ir, tmp_path)
    assert (safe.read_bytes() != path.read_bytes()) is is_limited
    assert lowered(safe).text == safe.read_bytes()
    ((inner, outer),) = run(safe, [[X[:5], *map(np.array, ([1], [5], [1], [3]))]])
    lengths = ((5, 2), (5, 4)) if is_limited else ((2, 8), (4, 8))
    assert (inner.shape, outer.shape) == lengths


def measured(ir: IrFile, *values: Out) -> None:
    """Give out ones in the shape of each value."""
    for each in values:
        (shape,) = ir.layer(
            "ShapeOf", (each,), 1, '<data output_type="i64"/>', version="opset3", shape=(2,)
        )
        ones = (ir.int64(1), shape)
        ir.result(ir.layer("Broadcast", ones, 1, '<data mode="numpy"/>', version="opset3")[0])


@pytest.mark.parametrize(("rows", "is_limited"), [("..8", True), ("?", False)])
def test_a_slice_of_an_input_of_a_declared_length_keeps_a_length_of_its_own(
    rows: str, tmp_path: Path, run: Any, *, is_limited: bool
) -> None:
    ir = IrFile()
    x, bounds = ir.parameter("x", "f32", f"{rows},8"), [ir.parameter(a, "i64", "1") for a in "ab"]
    given = (x, *bounds, ir.int64(1), ir.int64(0))
    measured(ir, *ir.layer("Slice", given, 1, version="opset8", shape=(-1, 8)), x)
    path = ir.save(tmp_path, named(ir))
    assert ("the largest length is known" in str(ts.check(path, "openvino"))) is is_limited
    safe = saved(ir, tmp_path)
    assert lowered(safe).text == safe.read_bytes()
    assert "rank is known only" not in str(ts.check(safe, "openvino"))
    ((inner, outer),) = run(safe, [[X[:5], *map(np.array, ([1], [4]))]])
    assert (inner.shape, outer.shape) == ((3, 8), (5, 8))
    assert b"limits" not in ts.convert(path, opset=18).SerializeToString()


@pytest.mark.parametrize(
    ("bounds", "size", "is_limited"),
    [
        ((-3, 3, 1), 1, True),
        ((3, -3, -1), 1, True),
        ((1, -1, 1), 3, False),
        ((-3, 2**31 - 1, 1), 3, False),
        ((-2, 1, -1), 2, False),
    ],
)
def test_a_slice_that_goes_past_itself_keeps_its_length(
    bounds: tuple[int, ...], size: int, tmp_path: Path, run: Any, *, is_limited: bool
) -> None:
    """OpenVINO takes the first one for empty, and says 0 of what is measured."""
    ir = IrFile()
    x, zero = ir.parameter("x", "f32", "?,8"), ir.int64(0)
    last = (x, *map(ir.int64, (-5, 2**31 - 1, 1)), zero)
    (u,) = ir.layer("Slice", last, 1, version="opset8", shape=(-1, 8))
    given = (u, *map(ir.int64, bounds), zero)
    measured(ir, *ir.layer("Slice", given, 1, version="opset8", shape=(-1, 8)))
    path = ir.save(tmp_path, named(ir))
    assert ("the largest length is known" in str(ts.check(path, "openvino"))) is is_limited
    ((found,),) = run(saved(ir, tmp_path), [[X]])
    assert found.shape == (size, 8)


def test_the_slice_of_a_check_is_left_as_it_is(tmp_path: Path) -> None:
    """One length of a list of which the largest length is known."""
    ir = IrFile()
    x, fed, (zero, one) = ir.parameter("x", "f32", "?"), ir.parameter("l", "i64", "?"), (0, 1)
    bounds = map(ir.int64, (zero, one, one, zero))
    (given,) = ir.layer("Slice", (fed, *bounds), 1, version="opset8", shape=(-1,))
    ir.result(ir.variadic_split(x, ir.int64(zero, scalar=True), given, 1)[0])
    path = saved(ir, tmp_path)
    assert "Select" in path.read_text()
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("shape", [(4, 4, 3, 4), (2, 1, 3, 2, 3)])
def test_counts_at_run_time_repeat_two_axes_at_a_time(
    shape: tuple[int, ...], kind: str, tmp_path: Path, run: Any, rng: np.random.Generator
) -> None:
    """OpenVINO gives memory that was never written where more are repeated at once."""
    ir, rank = IrFile(), len(shape)
    x = ir.parameter("x", "f32", ",".join("?" * rank))
    operands = (x, ir.parameter("counts", kind, f"{rank}"))
    ir.result(ir.layer("Tile", operands, 1, shape=(-1,) * rank)[0])
    data, counts = rng.standard_normal(shape).astype(np.float32), (1, 2, 2, 2, 3)[:rank]
    path = saved(ir, tmp_path)
    ((found,),) = run(path, [[data, np.array(counts, {"i32": np.int32, "i64": np.int64}[kind])]])
    np.testing.assert_array_equal(found, np.tile(data, counts))
    assert path.read_text().count("Tile_") == (rank + 1) // 2
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("kinds", ["i64 i64", "i64 i32", "i32 i64", "i32 i32"])
def test_a_slice_along_axes_that_are_fed_is_loaded(
    kinds: str, tmp_path: Path, run: Any, rng: np.random.Generator
) -> None:
    """OpenVINO ends the process as it loads the layer with a constant start."""
    ir, (kind, kind_of_axes) = IrFile(), kinds.split()
    types = {"i32": np.int32, "i64": np.int64}
    bounds = [
        ir.constant(np.array([number], types[kind]).tobytes(), kind, "1") for number in (1, 3, 1)
    ]
    operands = (ir.parameter("x", "f32", "4,6"), *bounds, ir.parameter("at", kind_of_axes, "1"))
    ir.result(ir.layer("Slice", operands, 1, version="opset8", shape=(-1, -1))[0])
    (found,) = [
        each
        for each in ts.check(ir.save(tmp_path, named(ir)), "openvino")
        if each.severity == "error"
    ]
    assert "rewrite the layer" in found.fix
    path, data = saved(ir, tmp_path), rng.standard_normal((4, 6)).astype(np.float32)
    assert not [each for each in ts.check(path, "openvino") if each.severity == "error"]
    assert lowered(path).text == path.read_bytes()
    for axis, wanted in enumerate((data[1:3], data[:, 1:3])):
        ((got,),) = run(path, [[data, np.array([axis], types[kind_of_axes])]])
        np.testing.assert_array_equal(got, wanted)


def test_a_layer_with_an_output_too_many_stays(tmp_path: Path) -> None:
    ir = IrFile()
    operands = ir.parameter("x", "f32", "1,2,2,2"), ir.parameter("n", "i64", "4")
    for made in ir.layer("Tile", operands, 2, shape=(-1, -1, -1, -1)):
        ir.result(made)
    path = ir.save(tmp_path, named(ir))
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("columns", "length"), [(1, 4), (8, 4), (8, 2)])
def test_data_that_layers_turn_by_one_column_or_by_no_halves_is_right(
    columns: int,
    length: int,
    order: tuple[int, int],
    tmp_path: Path,
    run: Any,
    rng: np.random.Generator,
) -> None:
    """OpenVINO makes a rotary embedding of them, of halves, and reads beyond the columns."""
    ir, whole = IrFile(), (2, 4, 8)
    x = ir.parameter("x", "f32", "2,4,8")
    factors = [ir.parameter(name, "f32", f"1,4,{columns}") for name in "cs"]
    first, second = ir.variadic_split(x, ir.int64(2, scalar=True), ir.int64(length, 8 - length), 2)
    back = ir.layer("Negative", (second,), 1, shape=(2, 4, 8 - length))[0]
    joined = ir.layer("Concat", (back, first), 1, '<data axis="-1"/>', shape=whole)[0]
    data = '<data auto_broadcast="numpy"/>'
    products = [
        ir.layer("Multiply", pair, 1, data, shape=whole)[0]
        for pair in ((x, factors[0]), (factors[1], joined))
    ]
    ir.result(ir.layer("Add", [products[i] for i in order], 1, data, shape=whole)[0])
    found = str(ts.check(ir.save(tmp_path, named(ir)), "openvino"))
    assert ("of one column" in found) is (columns == 1 or length != 4)
    path = saved(ir, tmp_path)
    assert lowered(path).text == path.read_bytes()
    fed = [rng.uniform(1, 2, shape).astype(np.float32) for shape in (whole, *[(1, 4, columns)] * 2)]
    turned = np.concatenate([-fed[0][..., length:], fed[0][..., :length]], -1)
    ((got,),) = run(path, [fed])
    np.testing.assert_allclose(got, fed[0] * fed[1] + turned * fed[2], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["Slice", "StridedSlice"])
def test_slices_of_strings_end_the_process(kind: str, tmp_path: Path) -> None:
    ir = IrFile()
    operands = (ir.parameter("x", "string", "?"), *map(ir.int64, (1, 3, 1)))
    data = '<data begin_mask="0" end_mask="0"/>' if kind == "StridedSlice" else ""
    ir.result(ir.layer(kind, operands, 1, data, version="opset8" if not data else "opset1")[0])
    path = ir.save(tmp_path, named(ir))
    (found,) = [each for each in ts.check(path, "openvino") if each.severity == "error"]
    assert "a Slice of strings" in found.message
    assert found.message.endswith("use another engine") or found.fix == "use another engine"
    with pytest.raises(ts.SplitError, match="the process dies"):
        lowered(path)


@pytest.mark.parametrize(("rows", "is_empty"), [(0, True), (2, False)])
def test_a_product_of_nothing_is_found(rows: int, tmp_path: Path, *, is_empty: bool) -> None:
    """OpenVINO gives memory that was never written."""
    ir = IrFile()
    weights = ir.constant(np.ones((rows, 3), np.int32).tobytes(), "i32", f"{rows},3")
    data = '<data transpose_a="false" transpose_b="false"/>'
    inputs = (ir.parameter("x", "i32", "?,?"), weights)
    ir.result(ir.layer("MatMul", inputs, 1, data, shape=(-1, 3))[0])
    path = ir.save(tmp_path, named(ir))
    assert ("never written" in str(ts.check(path, "openvino"))) is is_empty


def test_an_end_that_a_mask_leaves_out_limits_no_length(tmp_path: Path) -> None:
    ir = IrFile()
    x, one = ir.parameter("x", "f32", "?,3"), ir.int64(1)
    masks = '<data begin_mask="0,0" end_mask="1,0"/>'
    bounds = (ir.int64(0, 0), ir.int64(0, 2), ir.int64(1, 1))
    (u,) = ir.layer("StridedSlice", (x, *bounds), 1, masks, shape=(-1, 2))
    fed = [ir.parameter(name, "i64", "1") for name in "ab"]
    (s,) = ir.layer("Slice", (u, *fed, one, ir.int64(0)), 1, version="opset8", shape=(-1, 2))
    ir.result(s)
    path = ir.save(tmp_path, named(ir))
    assert not ts.check(path, target="openvino")
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("lengths", [(1, 3), (3, 1), (4, 0), (2, -1), (-1, 4)])
@pytest.mark.parametrize("at", ["i64", "i32"])
@pytest.mark.parametrize("has_axis", [True, False])
def test_lengths_that_the_engine_alone_knows_are_checked_as_it_loads_them(
    lengths: tuple[int, int],
    at: str,
    run: Any,
    rng: np.random.Generator,
    tmp_path: Path,
    *,
    has_axis: bool,
) -> None:
    """It calculates no CumSum of constants, and no slice whose bounds come from one.

    Where the axis is fed, all axes are of one length.
    """
    ir = IrFile()
    x, dtype = (
        ir.parameter("x", "f32", "?,4" if has_axis else "4"),
        {"i64": "<i8", "i32": "<i4"}[at],
    )
    axis = ir.int64(1, scalar=True) if has_axis else ir.parameter("axis", "i64", "")
    given = [
        ir.constant(np.array(each, dtype).tobytes(), at, f"{len(each)}")
        for each in ([2, 2], [length - 4 for length in lengths])
    ]
    (four,) = ir.layer("Power", (given[0], given[0]), 1, '<data auto_broadcast="numpy"/>')
    (known,) = ir.layer("Add", (four, given[1]), 1, '<data auto_broadcast="numpy"/>')
    for part in ir.variadic_split(x, axis, known, 2, ("a", "b")):
        ir.result(part)
    text = re.sub(r'(type="(?:Power|Add)".*?precision=")FP32', rf"\1{at.upper()}", named(ir))
    path = saved(ir, tmp_path, text)
    assert path.read_bytes() != (tmp_path / "before" / "model.xml").read_bytes()
    assert lowered(path).text == path.read_bytes()
    if run is run_by_ourselves and not has_axis:
        return  # no node of ONNX has such an axis
    rows = rng.standard_normal((3, 4)).astype(np.float32)
    end = lengths[0] if lengths[0] >= 0 else 4 - lengths[1]
    feeds = [rows] if has_axis else [rows[0], np.array(-1)]
    ((first, second),) = run(path, [feeds])
    np.testing.assert_array_equal(first, feeds[0][..., :end])
    np.testing.assert_array_equal(second, feeds[0][..., end:])


@pytest.mark.parametrize(
    ("kind", "given", "is_open"),
    [
        ("Squeeze", "?", True),
        ("Squeeze", "1", True),
        ("Squeeze", "", False),
        ("Unsqueeze", "1", True),
        ("Unsqueeze", "", False),
        ("Reshape", "?", True),
        ("Reshape", "3", False),
        ("Broadcast", "?", True),
        ("Broadcast", "3", False),
        ("Tile", "?", True),
        ("Tile", "3", False),
    ],
)
def test_a_rank_that_is_known_only_at_run_time_is_found(
    kind: str, given: str, tmp_path: Path, *, is_open: bool
) -> None:
    """That is by axes that are fed, or a list of lengths that has no known length."""
    ir = IrFile()
    x, axis = ir.parameter("x", "f32", "1,1"), ir.int64(0)
    version = "opset3" if kind == "Broadcast" else "opset1"
    data = {"Reshape": '<data special_zero="false"/>', "Broadcast": '<data mode="numpy"/>'}
    second = ir.parameter("given", "i64", given) if given else axis
    made = ir.layer(kind, (x, second), 1, data.get(kind, ""), version=version)
    ir.result(made[0])
    path = ir.save(tmp_path, named(ir))
    assert ("rank is known only at run" in str(ts.check(path, target="openvino"))) is is_open
    assert lowered(path).text == path.read_bytes()


@pytest.mark.parametrize("shape", ["?,1", "3,1"])
def test_a_squeeze_without_axes_needs_a_known_shape(shape: str, tmp_path: Path) -> None:
    ir = IrFile()
    ir.result(ir.layer("Squeeze", (ir.parameter("x", "f32", shape),), 1)[0])
    path = ir.save(tmp_path, named(ir))
    found = str(ts.check(path, target="openvino"))
    assert ("rank is known only at run" in found) is ("?" in shape)


@pytest.mark.parametrize("after", ["nothing", "a layer", "a body"])
@pytest.mark.parametrize(
    ("kind", "bounds", "shrunk", "data", "is_believed"),
    [
        ("Slice", (-3, 3, 1, 0), "", "..8,4", False),
        ("StridedSlice", (-3, 3, 1), "0", "..8,4", False),
        ("StridedSlice", (-3, 3, 1), "0", "8,4", True),
        ("StridedSlice", (0, 1, 1), "1", "?,0,4", True),
    ],
)
def test_a_length_that_a_slice_gives_of_an_open_one_is_not_believed(
    kind: str,
    bounds: tuple[int, ...],
    shrunk: str,
    data: str,
    after: str,
    tmp_path: Path,
    *,
    is_believed: bool,
) -> None:
    """OpenVINO says that it is 0, and it is 3 for 3 rows; so it says of what comes after."""
    ir, inner = IrFile(), IrFile()
    into = inner if after == "a body" else ir
    given = [into.int64(each) for each in bounds]
    masks = f'<data begin_mask="" end_mask="" shrink_axis_mask="{shrunk}"/>'
    inputs = (into.parameter("x", "f32", data), *given)
    version = "opset8" if kind == "Slice" else "opset1"
    (made,) = into.layer(kind, inputs, 1, masks, version=version, shape=(0, 4))
    if after == "a layer":
        (made,) = ir.layer("Relu", (made,), 1, shape=(0, 4))
    elif after == "a body":
        inner.result(made)
        last = len(inner.layers) - 1
        ends = f'<output external_port_id="1" internal_layer_id="{last}"/>'
        text = looped(inner, f"<port_map>{ends}</port_map>")
        outer = ir.parameter("y", "f32", "4")
        (made,) = ir.layer("TensorIterator", (outer,), 1, text, shape=(0, 4))
        ir.weights = inner.weights
    ir.result(made)
    shape = ts.infer_shapes(ir.save(tmp_path, named(ir))).graph.output[0].type.tensor_type.shape
    assert shape.dim[0].HasField("dim_value") is is_believed
    assert shape.dim[1].HasField("dim_value") is (is_believed or after == "nothing")
    assert len(shape.dim) == 2


@pytest.mark.parametrize(
    ("type", "shape", "kind", "is_read", "said"),
    [
        ("string", "?,1", "Broadcast", True, "Tile of strings"),
        ("string", "3,1", "Tile", True, "Tile of strings"),
        ("string", "3,1", "Concat", True, ""),
        ("f32", "3,1", "Tile", True, ""),
        ("f32", "...", "Tile", False, "an input of unknown rank"),
        ("f32", "?,?", "Tile", False, ""),
    ],
)
def test_strings_are_not_repeated_and_inputs_of_unknown_rank_not_left_unread(
    type: str, shape: str, kind: str, said: str, tmp_path: Path, *, is_read: bool
) -> None:
    """OpenVINO does not load such IRs."""
    ir = IrFile()
    x = ir.parameter("x", type, shape)
    y = x if is_read else ir.parameter("y", "f32", "3,1")
    second = y if kind == "Concat" else ir.int64(2, 2)
    data = {"Broadcast": '<data mode="numpy"/>', "Concat": '<data axis="0"/>'}.get(kind, "")
    version = "opset3" if kind == "Broadcast" else "opset1"
    ir.result(ir.layer(kind, (y, second), 1, data, version=version)[0])
    path = ir.save(tmp_path, named(ir))
    found = str(ts.check(path, target="openvino"))
    assert said in found if said else found == "[]"
    assert lowered(path).text == path.read_bytes()


def indexed(new: str, shrink: str) -> IrFile:
    """A StridedSlice of [6, 4] by positions 1 to 2, with masks."""
    ir = IrFile()
    count = len(new.split(","))
    masks = f'begin_mask="{new}" end_mask="{new}" new_axis_mask="{new}" shrink_axis_mask="{shrink}"'
    bounds = [ir.int64(*[number] * count) for number in (1, 2, 1)]
    x = ir.parameter("x", "f32", "6,4")
    text = f'<data {masks} ellipsis_mask=""/>'
    ir.result(ir.layer("StridedSlice", (x, *bounds), 1, text)[0], "y")
    return ir


@pytest.mark.parametrize(
    ("new", "shrink", "is_wrong"),
    [
        ("1,0", "0,1", True),
        ("0, 1", "1, 0", True),
        ("1,0,0", "0,1,0", False),
        ("1,0", "0,0", False),
        ("0,0", "0,1", False),
    ],
)
def test_positions_that_add_and_drop_axes_and_leave_some_out_are_found(
    new: str, shrink: str, is_wrong: bool, tmp_path: Path
) -> None:
    ir = indexed(new, shrink)
    found = ts.check(ir.save(tmp_path, named(ir)), target="openvino")
    assert any("StridedSlice" in each.message for each in found) is is_wrong


@pytest.mark.engine("openvino")
@pytest.mark.parametrize(("new", "shrink", "at"), [("1,0", "0,1", 1), ("1,0,0", "0,1,0", 1)])
def test_openvino_gives_other_positions(new: str, shrink: str, at: int, tmp_path: Path) -> None:
    ir = indexed(new, shrink)
    (((given,)),) = run_in_openvino(ir.save(tmp_path, named(ir)), [[X[:, :4]]])
    wanted = X[None, at, :4] if len(new) == 3 else X[None, at, 1:2]
    assert np.array_equal(given, wanted) is (len(new) > 3)
