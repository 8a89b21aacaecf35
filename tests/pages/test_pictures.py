"""Pictures of a plan: every part visible, the plan's own numbers, safe for what shows them."""

from __future__ import annotations

import io
import re
from typing import Any, TypeAlias
from xml.etree import ElementTree

import pytest
from onnx import TensorProto, helper
from rich.console import Console

import tensorsplit as ts
from tensorsplit.core.dimensions import show_dim
from tensorsplit.core.errors import printable
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.pages.terminal import Picture, lines
from tensorsplit.pictures.layout import Stretch, extents, fitting, remarks, stretches
from tensorsplit.pictures.marks import PART_CLASSES
from tensorsplit.pictures.svg import sheet, style, svg

SVG = "{http://www.w3.org/2000/svg}"
Plan: TypeAlias = SplitPlan | UncountedPlan


def plan(shape: tuple[Any, ...], split: Any = None, axis: int = 0, **operands: Any) -> SplitPlan:
    made: SplitPlan = ts.plan("onnx.Split-18", shape, split, axis=axis, **operands)
    return made


def text(plan: Plan, width: int = 80, *, ascii_only: bool = False) -> str:
    drawn = lines(plan, width, ascii_only=ascii_only)
    return "\n".join(line.plain.rstrip() for line in drawn) + "\n"


HOSTILE = "N\x1b[31m<&>\"'\x00"
PLANS: dict[str, Plan] = {
    "rows": plan((7, 4), num_outputs=3),
    "columns": plan((7, 4), [1, 3], axis=1),
    "one part": plan((5,), [5]),
    "rank 1": plan((12,), [5, 0, 7]),
    "all empty": plan((0, 3), num_outputs=3),
    "middle of four axes": plan((2, 8, 16, 16), [3, 0, 5], axis=1),
    "forty parts down": plan((120, 3), num_outputs=40),
    "forty parts across": plan((2, 3, 120), num_outputs=40, axis=2),
    "huge": plan((2, 2**62), [1, 2**62 - 2, 1], axis=1),
    "symbolic": plan(("N", 4), num_outputs=3),
    "symbolic across": plan((2, "max_len"), num_outputs=30, axis=1),
    "symbolic with lengths": plan((2, "N"), [5, 0], axis=1),
    "symbolic with lengths, rank 1": plan(("N",), [5, 2]),
    "remainder": ts.plan("openvino.VariadicSplit-1", ("N", 8), axis=0, split_lengths=[2, -1, 3]),
    "nothing known": plan((None, None), num_outputs=3),
    "hostile names": plan((HOSTILE, HOSTILE), num_outputs=3),
    "long names": plan(("a" * 300, "b" * 300), num_outputs=2),
    "an arrow in the last column": plan(("a" * 5, "b" * 12), num_outputs=2, axis=1),
    "axis dropped": ts.plan("onnx.SplitToSequence-11", (5, 4), keepdims=0),
    "no parts": ts.plan("onnx.SplitToSequence-11", (0, 4)),
    "uncounted": UncountedPlan("onnx.SplitToSequence-11", ("N", 4), 0, None, None),
}


@pytest.fixture(params=PLANS, ids=str)
def any_plan(request: pytest.FixtureRequest) -> Plan:
    return PLANS[request.param]


def test_the_text_of_a_split_of_rows() -> None:
    assert (
        text(PLANS["rows"])
        == """\
axis 0 (7) of (7, 4): 3 parts

             axis 1 (4) →
             ┌────────────────────────┐ 0
axis 0 (7) ↓ │ part 0  (3, 4)         │
             │                        │
             │                        │
             ├────────────────────────┤ 3
             │ part 1  (3, 4)         │
             │                        │
             │                        │
             ├────────────────────────┤ 6
             │ part 2  (1, 4)         │
             └────────────────────────┘ 7

Whole in every part: axis 1 (4)

part  offset  size  shape
0     0       3     (3, 4)
1     3       3     (3, 4)
2     6       1     (1, 4)
"""
    )


def test_the_text_of_a_split_of_columns_in_ascii() -> None:
    assert (
        text(PLANS["rank 1"], width=60, ascii_only=True)
        == """\
axis 0 (12) of (12,): 3 parts

     axis 0 (12) ->
     +--------------------+---+----------------------------+
part | 0                  | 1 | 2                          |
size | 5                  | 0 | 7                          |
     +--------------------+---+----------------------------+
     0                    5   5                           12
     (not to scale)

part  offset  size  shape
0     0       5     (5,)
1     5       0     (0,)
2     5       7     (7,)
"""
    )


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_the_text_fits_the_terminal(any_plan: Plan, width: int, ascii_only: bool) -> None:
    drawn = text(any_plan, width, ascii_only=ascii_only)
    assert max(map(len, drawn.splitlines())) <= width
    assert all(line == "" or line.isprintable() for line in drawn.splitlines())
    assert drawn.replace("\N{REPLACEMENT CHARACTER}", "").isascii() or not ascii_only


def test_the_text_never_gets_wider_than_can_be_read() -> None:
    assert max(map(len, text(PLANS["columns"], 500).splitlines())) <= 100


def test_colour_changes_nothing_but_colour(any_plan: Plan) -> None:
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system="truecolor", no_color=False
    )
    with console.capture() as captured:
        console.print(Picture(any_plan))
    plain = re.sub("\x1b\\[[0-9;]*m", "", captured.get())
    assert [line.rstrip() for line in plain.splitlines()] == text(any_plan, 80).splitlines()


def test_a_symbol_is_written_as_a_reader_would() -> None:
    drawn = text(PLANS["symbolic"])
    assert "part 1  (ceil(N/3), 4)" in drawn
    assert "2     2*ceil(N/3)  N - 2*ceil(N/3)  (N - 2*ceil(N/3), 4)" in drawn


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("-floor(-N/3)", "ceil(N/3)"),
        ("N + 2*floor(-N/3)", "N - 2*ceil(N/3)"),
        ("N - floor(-M/2)", "N + ceil(M/2)"),
        ("-floor(-N/3 - 1/3)", "ceil(N/3 + 1/3)"),
        ("floor(-N/3)", "-ceil(N/3)"),
        ("floor(N/3)", "floor(N/3)"),
        ("N*floor(-M/3)", "-N*ceil(M/3)"),
        ("-floor(floor(-N/3)/2)", "ceil(ceil(N/3)/2)"),
        ("-floor(1/3 - N/3)", "ceil(N/3 - 1/3)"),
        ("-floor(-floor(N/2)/2)", "ceil(floor(N/2)/2)"),
        ("floor(-Max(0, N - 1)/2)", "-ceil(max(0, N - 1)/2)"),
        ("Max(0, -floor(-N/2) - 1)", "max(0, ceil(N/2) - 1)"),
        ("-floor(N/2)", "-floor(N/2)"),
        ("floor(-N/2)**2", "floor(-N/2)**2"),
        ("floor(" * 50_000, "floor(" * 50_000),
        (None, "?"),
        (7, "7"),
        ("a\nb", "a\N{REPLACEMENT CHARACTER}b"),
    ],
)
def test_how_a_dimension_is_written(name: Any, shown: str) -> None:
    assert show_dim(name) == shown


def test_parts_that_are_left_out_are_counted() -> None:
    run = stretches(PLANS["forty parts down"], 12)
    assert [stretch.label for stretch in run] == [*map(str, range(9)), "29 more", "38", "39"]
    assert [stretch.offset for stretch in run[8:]] == [24, 27, 114, 117]
    assert [stretch.size for stretch in run[8:]] == [3, 87, 3, 3]
    assert run[-1].shape == (3, 3)


@pytest.mark.parametrize(
    ("most", "shown"),
    [
        (3, "0, 38 more, 39"),
        (4, "0, 1, 37 more, 39"),
        (5, "0, 1, 36 more, 38, 39"),
        (39, ", ".join([*map(str, range(36)), "2 more", "38", "39"])),
        (40, ", ".join(map(str, range(40)))),
    ],
)
def test_as_many_parts_are_drawn_as_there_is_room_for(most: int, shown: str) -> None:
    run = stretches(PLANS["forty parts down"], most)
    assert ", ".join(stretch.label for stretch in run) == shown


def test_labels_that_would_overlap_are_left_out() -> None:
    """Each takes as many places as letters; the last one ends where there is room left."""
    labels = [(0, "aa"), (1, "b"), (2, "c"), (4, "dd"), (5, "e"), (8, "ff"), (9, "g")]
    assert fitting(labels, 10, len) == [(0, "aa"), (2, "c"), (4, "dd"), (8, "ff")]
    assert fitting([(9, "gg"), (9, "g")], 10, len) == [(9, "g")]


def test_the_axes_that_are_not_split_are_remarked() -> None:
    assert remarks(PLANS["middle of four axes"]) == [
        "Whole in every part: axes 0 (2), 2 (16), 3 (16)"
    ]
    assert remarks(plan((1, 2, 3, 4, 5, 6, 7), num_outputs=1)) == [
        "Whole in every part: axes 1 (2), 2 (3), 3 (4), 4 (5), 5 (6), 6 (7)"
    ]
    assert remarks(plan((1, 2, 3, 4, 5, 6, 7, 8), num_outputs=1)) == [
        "Whole in every part: axes 1 (2), 2 (3), 3 (4), 4 (5), 5 (6), 6 (7), ..."
    ]
    assert remarks(PLANS["axis dropped"]) == [
        "Whole in every part: axis 1 (4)",
        "Axis 0 is dropped: the parts have no such axis",
    ]


def test_a_million_symbolic_parts_are_drawn_at_once() -> None:
    """Adding a million symbols one by one would take minutes."""
    drawn = text(plan(("N",), num_outputs=1_000_000))
    assert "999999  999999*ceil(N/1000000)" in drawn
    assert "999989 more" in drawn


@pytest.mark.parametrize(
    "name",
    [name for name, made in PLANS.items() if len(getattr(made, "sizes", ())) in range(1, 13)],
)
def test_offsets_and_shapes_are_those_of_the_plan(name: str) -> None:
    made = PLANS[name]
    assert isinstance(made, SplitPlan)
    run = stretches(made, 12)
    assert [show_dim(stretch.offset) for stretch in run] == list(map(show_dim, made.offsets))
    assert [stretch.shape for stretch in run] == list(made.output_shapes)


def test_lengths_are_drawn_in_proportion_and_none_vanishes() -> None:
    sizes = (0, 1, 1000, 2000)
    run = [Stretch(number, "", size, 0) for number, size in enumerate(sizes)]
    assert extents(run, 310, [5] * 4) == [5, 5, 100, 200]
    assert extents(run[:1], 310, [5]) == [5]
    assert sum(extents(run, 17, [5] * 4)) == 20


def test_the_svg_is_well_formed_and_holds_the_numbers(any_plan: Plan) -> None:
    root = ElementTree.fromstring(svg(any_plan))
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert (float(root.attrib["width"]), float(root.attrib["height"])) == (width, height)
    for rect in root.iter(f"{SVG}rect"):
        x, y, across, down = (float(rect.get(name, 0)) for name in ("x", "y", "width", "height"))
        assert min(x, y, across, down) >= 0
        assert x + across <= width
        assert y + down <= height
    if isinstance(any_plan, SplitPlan):
        labels = {label.text for label in root.iter(f"{SVG}text")}
        assert {str(number) for number in range(min(len(any_plan.sizes), 5))} <= labels


def test_the_table_has_a_colour_for_each_part_but_those_that_are_left_out() -> None:
    root = ElementTree.fromstring(svg(PLANS["forty parts down"]))
    fills = [each for each in root.iter(f"{SVG}rect") if each.get("width") == each.get("height")]
    rows = {each.get("y") for each in root.iter(f"{SVG}text") if each.text == "(3, 3)"}
    assert len(fills) == len(rows) > 5


def test_the_svg_stands_alone() -> None:
    """Nothing is loaded from anywhere, and nothing runs."""
    document = svg(PLANS["hostile names"]).replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\(|@import|<script|<image|href|\son\w+=", document)
    assert "\x1b" not in document


def test_the_svg_is_told_to_those_who_do_not_see_it() -> None:
    root = ElementTree.fromstring(svg(PLANS["rows"], name="first"))
    assert root.attrib["role"] == "img"
    named = {element.get("id"): element.text for element in root}
    title, description = (named[name] for name in root.attrib["aria-labelledby"].split())
    assert title == "onnx.Split-18: axis 0 (7) of (7, 4): 3 parts"
    assert description is not None
    assert "Part 2: offset 6, size 1, shape (1, 4)." in description


def test_identifiers_can_be_told_apart_in_one_page() -> None:
    assert 'id="a-b-title"' in svg(PLANS["rows"], name='a"b')


def test_the_svg_follows_the_readers_colour_scheme() -> None:
    style = ElementTree.fromstring(svg(PLANS["rows"])).find(f"{SVG}style")
    assert style is not None
    assert style.text is not None
    light, dark = style.text.split("@media (prefers-color-scheme:dark)")
    for name in PART_CLASSES:
        assert f".{name}:" in light
        assert f".{name}:" in dark
    rules = re.findall(r"[{}]([^{}]+)\{", "}" + style.text.replace("@media", "}@media"))
    assert all(".ts-split" in rule or rule.startswith("@media") for rule in rules)


def part_colours(rules: str) -> list[str]:
    found = dict(re.findall(r"\.(p\d):not\(\.empty\)\{fill:(#[0-9a-f]{6})", rules))
    return [found[name] for name in PART_CLASSES]


LIGHT, DARK = map(part_colours, style().split("@media"))


@pytest.mark.parametrize(
    ("ink", "papers"),
    [
        ("#1b1f24", (*LIGHT, "#ffffff", "#e6e9ed")),
        ("#f0f3f6", (*DARK, "#12161b", "#2b323a")),
    ],
)
def test_text_stands_out_from_every_colour_it_is_on(ink: str, papers: tuple[str, ...]) -> None:
    """WCAG 2.2, success criterion 1.4.6: a contrast of 7:1."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(
            part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True)
        )

    for paper in papers:
        bright, faint = sorted(map(luminance, (ink, paper)), reverse=True)
        assert (bright + 0.05) / (faint + 0.05) >= 7, paper


def test_an_empty_part_is_visible() -> None:
    root = ElementTree.fromstring(svg(PLANS["rank 1"]))
    empty = [rect for rect in root.iter(f"{SVG}rect") if "empty" in rect.get("class", "")]
    assert len(empty) == 2  # the part, and its mark in the table
    assert all(float(rect.get("width", 0)) >= 10 for rect in empty)


def test_several_splits_on_one_sheet() -> None:
    figures = [("graph/a<b>", PLANS["rows"]), ("graph/" + "deep/" * 30 + "last", PLANS["columns"])]
    root = ElementTree.fromstring(sheet(figures))
    labels = [label.text or "" for label in root.iter(f"{SVG}text")]
    assert "graph/a<b>" in labels
    assert any(label.endswith("deep/last") for label in labels)
    assert "onnx.Split-18: axis 0 (7) of (7, 4): 3 parts" in labels
    places = [group.get("transform", "") for group in root.iter(f"{SVG}g")]
    assert places[0] == "translate(0 0)"
    assert len(set(places)) == 2


def bars(document: str, css: str) -> list[tuple[float, float]]:
    """Where the bars of a class start and end, from left to right."""
    rects = ElementTree.fromstring(document).iter(f"{SVG}rect")
    found = [rect for rect in rects if rect.get("class") == css]
    return [(float(r.attrib["x"]), float(r.attrib["x"]) + float(r.attrib["width"])) for r in found]


def refused(*args: Any, **operands: Any) -> str:
    drawn = ts.explain(*args, **operands)._repr_svg_()
    assert drawn is not None
    return drawn


def test_what_lies_outside_the_data_is_red() -> None:
    """[-1, 7] of 6: the first part ends 1 before the data, where the second one starts."""
    document = refused("openvino.VariadicSplit-1", (6,), axis=0, split_lengths=[-1, 7])
    ((start, end),) = bars(document, "gap")
    unit = (end - start) / 6
    assert bars(document, "p0") == []
    assert bars(document, "p1") == [pytest.approx((start, end), abs=0.2)]
    negative, too_long = bars(document, "bad")
    assert negative == pytest.approx((start - unit, start), abs=0.2)
    assert too_long == pytest.approx((start - unit, end), abs=0.2)
    assert "TS306" in document


def test_lengths_of_a_count_are_drawn_although_they_are_refused() -> None:
    """5 into 4 parts of 2: the third one ends behind the data, the last one has length -1."""
    document = refused("onnx.Split-18", (5,), num_outputs=4)
    ((start, end),) = bars(document, "gap")
    unit = (end - start) / 5
    assert bars(document, "p0") == [pytest.approx((start, start + 2 * unit), abs=0.2)]
    assert bars(document, "p2") == [pytest.approx((start + 4 * unit, end), abs=0.2)]
    assert bars(document, "bad")[1] == pytest.approx((end, end + unit), abs=0.2)


@pytest.mark.parametrize(
    "operands", [{"split": [2, 3]}, {"num_outputs": 5}, {"split": [2, 3], "axis": -2}]
)
def test_what_is_left_over_is_red(operands: dict[str, Any]) -> None:
    document = refused("onnx.Split-13", (6, 4), **operands)
    ((start, end),) = bars(document, "gap")
    assert bars(document, "bad") == [pytest.approx((start + (end - start) * 5 / 6, end), abs=0.2)]
    assert "left over" in document


def test_a_part_that_ends_with_the_data_fits() -> None:
    document = refused("onnx.Split-18", (6,), [2, 4, 3])
    ((start, end),) = bars(document, "gap")
    assert bars(document, "p1") == [pytest.approx((start + (end - start) / 3, end), abs=0.2)]
    assert bars(document, "bad") == [pytest.approx((end, end + (end - start) / 2), abs=0.2)]


def test_all_bars_are_between_their_names_and_their_lengths() -> None:
    too_long = refused("onnx.Split-18", (6,), [2, 4, 3])
    negative = refused("openvino.VariadicSplit-1", (6,), axis=0, split_lengths=[-1, 7])
    starts = set[float]()
    for document, numbers in ((too_long, "6243"), (negative, "6-17")):
        drawn = [bar for css in ("gap", "p0", "p1", "bad") for bar in bars(document, css)]
        assert len(drawn) == 4
        labels = list(ElementTree.fromstring(document).iter(f"{SVG}text"))
        lengths = [each for each in labels if (each.text or "-").lstrip("-").isdigit()]
        assert "".join(each.text or "" for each in lengths) == numbers
        assert min(float(each.attrib["x"]) for each in lengths) > max(end for _, end in drawn)
        starts.add(min(start for start, _ in drawn))
    assert len(starts) == 1


def test_an_empty_part_is_a_mark_that_can_be_seen() -> None:
    ((start, end),) = bars(refused("onnx.Split-18", (6,), [0, 5]), "p0 empty")
    assert end - start == 3


@pytest.mark.parametrize("shape", [(5,), ("N", 4), (None,), (2**62, 3), (0,)])
@pytest.mark.parametrize("lengths", [[-3, 2**62], [0] * 2000, [5, 1], [-1], []])
def test_every_refusal_has_a_picture_or_none(shape: tuple[Any, ...], lengths: list[int]) -> None:
    explained = ts.explain("onnx.Split-18", shape, lengths)
    document = explained._repr_svg_()
    if explained.splits[0].refused is not None and not isinstance(shape[0], int):
        assert document is None
    else:
        assert document is not None
        ElementTree.fromstring(document)


def test_a_notebook_shows_plans_and_models() -> None:
    prepared = ts.plan("onnx.Split-18", (7, 4), num_outputs=3)
    assert prepared._repr_svg_() == svg(PLANS["rows"])
    model = ts.explain("examples/uneven.onnx")
    assert repr(model) == "graph/thirds: onnx.Split-18: axis 0 (7) of (7, 4): 3 parts"
    assert "graph/thirds" in refused("examples/uneven.onnx")


def test_a_sequence_of_a_model_is_not_said_to_be_an_output() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("SplitToSequence", ["x"], ["s"], axis=1),
            helper.make_node("Split", ["x"], ["a", "b"], axis=1),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])],
        [],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    assert [each.given for each in ts.explain(model).splits] == ["axis = 1", "axis = 1, 2 outputs"]


def test_control_characters_are_replaced() -> None:
    assert printable("a\x00\x1b\u202eb\ud800é") == "a\ufffd\ufffd\ufffdb\ufffdé"
