"""``tensorsplit ops`` and ``tensorsplit diff``: the operators, and what changed between them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tensorsplit import operators
from tensorsplit.cli.screen import Table, rendered
from tests.cli.conftest import Command

Refused = Callable[..., str]
DOCS = Path(__file__).parents[2] / "docs" / "operators"


def test_the_table_has_every_version_once_in_80_columns(tensorsplit: Command) -> None:
    ended = tensorsplit("ops")
    assert (ended.status, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines if line[:1] != " "][1:] == list(operators)
    assert max(map(len, lines)) <= 80


def test_a_page_says_what_the_standard_says(tensorsplit: Command) -> None:
    out = tensorsplit("ops", "onnx.Split-18").out
    assert "num_outputs  INT  optional" in out
    assert "axis         INT  default 0" in out
    assert "in force at opset  18 to" in out
    assert "tensor(bfloat16)" in out
    assert "[TS304]" in out
    assert 'ts.plan("onnx.Split-18", (7, 4), axis=0, num_outputs=3).sizes\n    = (3, 3, 1)' in out
    assert out.endswith("Source: https://onnx.ai/onnx/operators/onnx__Split.html#split-18\n")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "operator"),
    [
        (["Split"], "onnx.Split-18"),
        (["Split", "--opset", "12"], "onnx.Split-11"),
        (["onnx.SplitToSequence", "--opset", "11"], "onnx.SplitToSequence-11"),
        (["openvino.Split"], "openvino.Split-1"),
        (["VariadicSplit"], "openvino.VariadicSplit-1"),
        (["torch.chunk"], "torch.chunk"),
    ],
)
def test_a_name_means_the_version_in_force(
    tensorsplit: Command, words: list[str], operator: str
) -> None:
    assert tensorsplit("ops", *words).out.splitlines()[0] == operator


def test_markdown_is_the_page_of_the_documentation(tensorsplit: Command) -> None:
    page = tensorsplit("ops", "onnx.Split-13", "--format", "markdown").out
    assert page == (DOCS / "onnx.Split-13.md").read_text(encoding="utf-8")
    index = tensorsplit("ops", "--format", "markdown").out
    assert index == (DOCS / "README.md").read_text(encoding="utf-8")


def test_json_of_one_and_of_all(tensorsplit: Command) -> None:
    page = json.loads(tensorsplit("ops", "onnx.Split-2", "--format", "json").out)
    assert page["id"] == "onnx.Split-2"
    assert [entry["name"] for entry in page["attributes"]] == ["axis", "split"]
    assert len(page["types"][0]["types"]) == 15
    pages = json.loads(tensorsplit("ops", "--format", "json").out)
    assert [entry["id"] for entry in pages] == list(operators)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("TS101", ["onnx.Split-12"]),
        ("TS101", ["Concat"]),
        ("TS101", ["Split", "--opset", "0"]),
        ("TS101", ["VariadicSplit", "--opset", "99"]),
        ("TS101", ["caffe.Split"]),
        ("TS703", ["onnx.Split-13", "--opset", "13"]),
        ("TS703", ["--opset", "13"]),
        ("TS703", ["Split", "--opset", "eleven"]),
        ("TS703", ["Split", "--format", "yaml"]),
        ("TS703", ["Split", "Split"]),
    ],
)
def test_refusals_of_ops(refused: Refused, code: str, words: list[str]) -> None:
    refused(code, "ops", *words)


def test_diff_tells_what_changed_side_by_side(tensorsplit: Command) -> None:
    ended = tensorsplit("diff", "onnx.Split-13", "onnx.Split-18")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines()[0].split() == ["onnx.Split-13", "onnx.Split-18"]
    row = next(line for line in ended.out.splitlines() if "num_outputs " in line)
    assert row.split() == ["attribute", "num_outputs", "-", "INT,", "optional"]
    assert "behaviour no lengths" in ended.out
    assert max(map(len, ended.out.splitlines())) <= 80


def test_diff_lists_element_types_of_an_operand_in_one_row(tensorsplit: Command) -> None:
    out = tensorsplit("diff", "onnx.Split-11", "onnx.Split-13").out
    row = next(line for line in out.splitlines() if "type data" in line)
    assert row.split() == ["type", "data", "-", "only", "here:", "bfloat16"]


def test_diff_as_json(tensorsplit: Command) -> None:
    told = json.loads(tensorsplit("diff", "onnx.Split-11", "onnx.Split-13", "--format", "json").out)
    assert (told["before"], told["after"]) == ("onnx.Split-11", "onnx.Split-13")
    changes = {(entry["aspect"], entry["name"]): entry for entry in told["changes"]}
    assert changes["attribute", "split"]["after"] is None
    assert changes["input", "split"]["before"] is None
    assert changes["type", "data: bfloat16"]["after"] == "allowed"


def test_diff_of_two_vendors(tensorsplit: Command) -> None:
    out = tensorsplit("diff", "onnx.Split-18", "openvino.VariadicSplit-1").out
    assert "only here: any type the" in out
    assert "one -1" in out


def test_no_differences(tensorsplit: Command) -> None:
    out = tensorsplit("diff", "Split", "onnx.Split-18").out
    assert out == "onnx.Split-18 and onnx.Split-18: no differences\n"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("TS101", ["onnx.Split-13", "onnx.Split-12"]),
        ("TS101", ["model.onnx", "onnx.Split-12"]),
        ("TS703", ["onnx.Split-13"]),
        ("TS703", ["Split", "Split", "Split"]),
        ("TS703", ["Split", "Split", "--format", "markdown"]),
    ],
)
def test_refusals_of_diff(refused: Refused, code: str, words: list[str]) -> None:
    refused(code, "diff", *words)


@pytest.mark.parametrize("width", [30, 40, 80])
def test_tables_fold_and_break_no_identifier(
    tensorsplit: Command, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    listed = tensorsplit("ops").out
    for record in operators.values():
        assert record.id in listed.split()
        for word in ("attribute", "split_lengths", "refused", "num_outputs"):
            assert word in listed.split()
    compared = tensorsplit("diff", "onnx.SplitToSequence-24", "openvino.VariadicSplit-1").out
    assert "openvino.VariadicSplit-1" in compared
    assert all(
        word in compared for word in ("split_lengths", "keepdims", "onnx.SplitToSequence-24")
    )


@pytest.mark.parametrize("width", range(41, 61))
def test_a_table_loses_no_word_and_is_as_wide_as_there_is_room(width: int) -> None:
    random = Random(width)
    words = [chr(97 + n % 26) * random.randint(1, 9) for n in range(60)]
    rows = [(" ".join(words[n : n + 3]), words[n + 3], " ".join(words[n + 4 : n + 12]))
            for n in range(0, 48, 12)]  # fmt: skip
    shown = rendered(Table(rows, ("one", "two", "three"), indent=1), width=width)
    assert sorted(shown.split()) == sorted(
        ["one", "two", "three", *" ".join(map(" ".join, rows)).split()]
    )
    assert max(map(len, shown.splitlines())) <= width


def test_a_cell_of_several_lines_is_as_wide_as_its_longest_line() -> None:
    shown = rendered(Table([("x", "aa bb\ncccc", "end")], ("one", "two", "three")), width=60)
    assert [line.rstrip() for line in shown.splitlines()] == [
        "one  two    three",
        "x    aa bb  end",
        "     cccc",
    ]
