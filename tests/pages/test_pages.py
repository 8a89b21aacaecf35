"""The operator pages say what the records say, and are up to date on disk."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import runpy
import subprocess
import sys
from math import ceil
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit import operators
from tensorsplit.cli.app import COMMANDS
from tensorsplit.core.errors import KINDS
from tensorsplit.core.extras import install_command
from tensorsplit.core.rules import LengthRule, chunk, equal, explicit, ones, remainder
from tensorsplit.core.rules import ceil as ceil_parts
from tensorsplit.core.schema import Operator
from tensorsplit.model.check.checks import REPORTED
from tensorsplit.pages import markdown, page_of
from tensorsplit.pages.codes import CodeExample, code_examples
from tensorsplit.pages.content import DECISIONS, FORMULAS, decisions_for
from tensorsplit.pages.standard_examples import layers

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = runpy.run_path(str(DOCS.with_name("scripts") / "pages.py"))


def test_the_files_on_disk_are_what_is_generated() -> None:
    folder = DOCS / "operators"
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert on_disk == SCRIPT["operator_pages"](), "run python scripts/pages.py docs"


def test_the_page_of_dialects_on_disk_is_what_is_generated() -> None:
    assert (DOCS / SCRIPT["DIALECTS"]).read_text("utf-8") == SCRIPT["dialects_page"](), (
        "run python scripts/pages.py docs"
    )


def test_the_pictures_on_disk_are_what_is_drawn() -> None:
    on_disk = {path.name: path.read_text("utf-8") for path in (DOCS / "pictures").iterdir()}
    assert on_disk == SCRIPT["pictures"](), "run python scripts/pages.py docs"


def test_the_command_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, "scripts/pages.py", str(tmp_path / "new")]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    assert {path.name for path in (tmp_path / "new" / "operators").iterdir()} == set(
        SCRIPT["operator_pages"]()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_page_and_a_line_in_the_list_of_commands(command: str) -> None:
    module, does = COMMANDS[command]
    page = (DOCS / "command-line" / f"{command}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# tensorsplit {command}\n")
    assert f".. click:: tensorsplit.cli.{module}:{command}\n" in page
    contents = (DOCS / "command-line" / "README.md").read_text(encoding="utf-8")
    assert f"\n| [`{command}`]({command}.md) | {does} |\n" in contents
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert f"\ncommand-line/{command}\n" in reference


def triggered(example: CodeExample) -> dict[str, str]:
    """Return the codes that an example triggers, with their messages; its last line is a call."""
    if example.language == "sh":
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        command = ["bash", "-c", example.call]
        done = subprocess.run(
            command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        message = re.sub(r"^.*?(?=\[TS)", "", done.stderr.splitlines()[-1])
        return {message[1:6]: message}
    lines = ast.parse(example.call)
    call = lines.body.pop()
    assert isinstance(call, ast.Expr)
    names = {"np": np, "ts": ts, "onnx": onnx}
    exec(compile(lines, "example", "exec"), names)
    try:
        findings = eval(compile(ast.Expression(call.value), "example", "eval"), names)
    except ts.SplitError as error:
        return {error.code: str(error)}
    return {finding.code: str(finding) for finding in findings}


@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
@pytest.mark.parametrize("code", code_examples())
def test_the_example_of_a_code_triggers_it(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = code_examples()[code]
    for library, sign in (("safetensors", "safetensors"), ("zarr", "zarr"), ("dask", "workers=")):
        if sign in example.call:
            pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORSPLIT_ENGINE_TIMEOUT", "600")  # put back, where an example sets it
    message = triggered(example)[code].replace(f"{tmp_path}/", "")
    draft = f".tensorsplit-{'0123456789abcdef' * 2}.part"
    message = re.sub(r"(?<=')[^']*\.tensorsplit-\w+\.part", draft, message)
    home = "pip install '/home/me/tensorsplit[report]'"
    assert message.replace(install_command("report"), home) == example.message


def test_every_code_has_an_example() -> None:
    assert list(code_examples()) == list(REPORTED)


@pytest.mark.parametrize("identifier", operators)
def test_everything_of_a_record_is_on_its_page(identifier: str) -> None:
    record = operators[identifier]
    text = markdown(page_of(record))
    names = [attribute.name for attribute in record.attributes]
    names += [parameter.name for parameter in (*record.inputs, *record.outputs)]
    for name in names:
        assert f"`{name}`" in text
    for constraint in record.type_constraints:
        for name in constraint.types:
            assert f"`{name}`" in text
    for note in record.notes.values():
        assert note in text
    assert f"<{record.source}>" in text


@pytest.mark.parametrize("identifier", operators)
def test_a_page_can_be_written_as_json(identifier: str) -> None:
    told = json.loads(json.dumps(dataclasses.asdict(page_of(operators[identifier]))))
    assert told["id"] == identifier


@pytest.mark.parametrize(
    ("identifier", "opsets"),
    [
        ("onnx.Split-1", "1"),
        ("onnx.Split-2", "2 to 10"),
        ("onnx.Split-11", "11 to 12"),
        ("onnx.Split-13", "13 to 17"),
        ("onnx.SplitToSequence-11", "11 to 23"),
        ("openvino.Split-1", "from opset1"),
    ],
)
def test_the_opsets_at_which_a_version_is_in_force(identifier: str, opsets: str) -> None:
    facts = {fact.name: fact.text for fact in page_of(operators[identifier]).facts}
    assert facts["in force at opset"] == opsets


def test_every_decision_is_worded_and_names_its_refusals() -> None:
    worded = {decision.id for decision in DECISIONS}
    assert worded == {f"D{number}" for number in range(1, 24)}
    for identifier in worded:
        named = {k.code for d in DECISIONS if d.id == identifier for k in d.refusals}
        assert named == {k.code for k in KINDS.values() if identifier in k.decisions}, identifier


@pytest.mark.parametrize(
    ("identifier", "own", "foreign"),
    [
        ("onnx.Split-1", {"D3", "D5", "D7", "D12", "D13", "D20"}, {"D1", "D4", "D8", "D15", "D17"}),
        ("onnx.Split-2", {"D3", "D5", "D13", "D17"}, {"D1", "D4", "D12", "D20"}),
        ("onnx.Split-13", {"D3", "D5", "D6", "D14", "D20"}, {"D1", "D4", "D12", "D13", "D19"}),
        ("onnx.Split-18", {"D1", "D2", "D4", "D5", "D20"}, {"D3", "D8", "D12", "D13", "D15"}),
        ("onnx.SplitToSequence-24", {"D8", "D9", "D10", "D11", "D19"}, {"D1", "D3", "D4", "D5"}),
        ("openvino.VariadicSplit-1", {"D5", "D7", "D14", "D15", "D16"}, {"D3", "D9", "D20"}),
        ("openvino.Split-1", {"D3", "D15", "D16", "D17", "D18"}, {"D6", "D7", "D14", "D20"}),
    ],
)
def test_the_decisions_that_concern_a_version(
    identifier: str, own: set[str], foreign: set[str]
) -> None:
    found = {decision.id for decision in decisions_for(operators[identifier])}
    assert own <= found
    assert not foreign & found


def test_examples_cover_every_way_of_giving_the_lengths() -> None:
    sizes = [example.sizes for example in page_of(operators["onnx.SplitToSequence-11"]).examples]
    assert sizes == [(3, 3, 1), (2, 5), (1,) * 7]


ONNX_RECORDS = [record for record in operators.values() if record.vendor == "onnx"]


@pytest.mark.parametrize("record", ONNX_RECORDS, ids=str)
def test_numbers_of_inputs_and_outputs_are_those_of_the_schema(record: Operator) -> None:
    schema = onnx.defs.get_schema(record.name, record.since_version, "")
    facts = {fact.name: fact.text for fact in page_of(record).facts}
    least, most = schema.min_input, schema.max_input
    assert facts["number of inputs"] == (str(most) if least == most else f"{least} to {most}")
    outputs = "1; " if schema.max_output == 1 else f"1 to {schema.max_output:,} by the schema; "
    assert facts["number of outputs"].startswith(outputs)
    assert all(entry.is_homogeneous for entry in (*schema.inputs, *schema.outputs))


@pytest.mark.parametrize(
    ("rule", "d", "given", "sizes"),
    [
        (ceil_parts, 7, None, (3, 3, 1)),
        (explicit, 7, [2, 0, 5], (2, 0, 5)),
        (equal, 6, None, (2, 2, 2)),
        (chunk, 7, 3, (3, 3, 1)),
        (ones, 3, None, (1, 1, 1)),
        (remainder, 7, [2, -1, 1], (2, 4, 1)),
    ],
)
def test_formulas_say_the_lengths_of_the_parts(
    rule: LengthRule, d: int, given: object, sizes: tuple[int, ...]
) -> None:
    known = {"d": d, "n": len(sizes), "s": given, "ceil": ceil, "min": min, "sum": sum}
    code = compile(FORMULAS[rule], "formula", "eval")
    assert tuple(eval(code, {**known, "i": i}) for i in range(len(sizes))) == sizes


def test_an_example_is_drawn_with_its_values() -> None:
    drawn = {each.title: each.drawing for each in page_of(operators["onnx.Split-18"]).drawn}
    assert drawn["2-D, lengths"] == " 1  2 |  3  4  5  6\n 7  8 |  9 10 11 12"
    assert drawn["1-D, the last part is smaller"] == "1 2 | 3 4 | 5 6 | 7"
    assert drawn["Parts of length 0"] == "| |"
    sequences = {each.title: each for each in page_of(operators["onnx.SplitToSequence-11"]).drawn}
    assert sequences["Lengths"].drawing.splitlines() == [
        " 0  1  2  3  4  5",
        "-----------------",
        " 6  7  8  9 10 11",
        "12 13 14 15 16 17",
    ]


def test_layers_have_the_shapes_of_their_parts() -> None:
    _, remainder = layers(operators["openvino.VariadicSplit-1"])
    (equal,) = layers(operators["openvino.Split-1"])
    for text, dims in (
        (remainder, [[4, 12, 10, 24], [2, 12, 10, 24]]),
        (equal, [[6, 4, 10, 24]] * 3),
    ):
        layer = ElementTree.fromstring(text)
        ports = [[int(dim.text or "") for dim in port] for port in layer.find("output") or ()]
        assert ports == dims
        numbers = [port.get("id") for port in layer.iter("port")]
        assert numbers == list(map(str, range(len(numbers))))
