"""The report as text, JSON and SARIF; nothing of these may change by accident."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are a package of their own
import pytest

from tensorsplit.core.errors import DOCUMENTATION, KINDS
from tensorsplit.model.check.checks import CHECKS, DEAD_OUTPUT, NOT_CALLED
from tensorsplit.model.check.findings import (
    CheckReport,
    Finding,
    as_github,
    as_json,
    as_sarif,
    as_text,
    combined,
    of_check,
)
from tests.model.build import FLOAT, graph, model, node, value
from tests.model.check.untyped_outputs import examine

SCHEMAS = [
    Path(__file__).parents[2] / "data" / "sarif-2.1.0-extract.json",
    # the whole published schema, where its path is given
    *map(Path, filter(None, [os.environ.get("TENSORSPLIT_SARIF_SCHEMA")])),
]


@pytest.fixture
def report() -> CheckReport:
    """An error, a warning and two notes in two of three split nodes."""
    nodes = [
        node("Split", "x", "a b", name="odd one", axis=-2),
        node("Split", "x", "c d", name="right", axis=1),
        node("Split", "x", "e f g", name="wrong", axis=0),
    ]
    made = model(graph(nodes, [value("x", FLOAT, [4, 6])], ["a", "c", "d", "e", "f"]), 2)
    return examine(made)


def test_text_groups_the_findings_by_node(report: CheckReport) -> None:
    assert as_text({"m.onnx": report}) == (
        "graph/odd one (onnx.Split-2)\n"
        "  warning [TS821] axis: the axis is -2\n"
        "    give 0\n"
        "  note [TS812] outputs: nobody uses 1 of the 2 parts: 'b'\n"
        "    use a Slice for the parts that are needed, if they are few\n"
        "\n"
        "graph/wrong (onnx.Split-2)\n"
        "  error [TS303] num_outputs: the dimension 4 is not divisible into 3 equal parts\n"
        "    give explicit lengths, such as split = [2, 1, 1], or use num_outputs of"
        " onnx.Split-18\n"
        "  note [TS812] outputs: nobody uses 1 of the 3 parts: 'g'\n"
        "    use a Slice for the parts that are needed, if they are few\n"
        "\n"
        "1 error, 1 warning, 2 notes in 3 split nodes\n"
    )


@pytest.mark.parametrize(
    ("count", "named", "more"),
    [(1, 1, ""), (6, 6, ""), (7, 5, "and 2 more nodes\n"), (99, 5, "and 94 more nodes\n")],
)
def test_text_has_a_finding_of_many_nodes_once(count: int, named: int, more: str) -> None:
    nodes = [node("Split", "x", f"a{i} b{i}", axis=-1) for i in range(count)]
    outputs = [name for made in nodes for name in made.output]
    made = model(graph(nodes, [value("x", FLOAT, [4])], outputs), 2)
    kept = [each for each in examine(made).findings if each.code == "TS821"]
    titles = "".join(f"graph/Split[{i}] (onnx.Split-2)\n" for i in range(named))
    assert as_text({"m.onnx": CheckReport(tuple(kept), count)}, summary=False) == (
        f"{titles}{more}  warning [TS821] axis: the axis is -1\n    give 0\n"
    )


def test_text_of_a_clean_model() -> None:
    assert as_text({"m.onnx": CheckReport((), 1)}) == "no findings in 1 split node\n"
    assert as_text({"m.onnx": CheckReport((), 0)}) == "no split nodes\n"
    assert CheckReport((of_check(NOT_CALLED, "graph", "m"),), 0).summary == "1 note; no split nodes"


@pytest.mark.parametrize(
    ("severity", "expected"),
    [
        ("error", ("warning", "it is wrong (as it never runs)")),
        ("warning", ("warning", "it is wrong")),
        ("note", ("note", "it is wrong")),
    ],
)
def test_only_an_error_becomes_a_warning(severity: str, expected: tuple[str, str]) -> None:
    made = Finding("TS302", severity, "graph/s", "it is wrong").as_warning("as it never runs")
    assert (made.severity, made.message) == expected


def test_json_has_the_documented_fields(report: CheckReport) -> None:
    content = json.loads(as_json({"m.onnx": report}, ["portable"], "1.2.3"))
    assert content | {"findings": content["findings"][:1]} == {
        "format": 1,
        "tool": {"name": "tensorsplit", "version": "1.2.3"},
        "model": "m.onnx",
        "models": ["m.onnx"],
        "target": "portable",
        "targets": ["portable"],
        "summary": {"errors": 1, "warnings": 1, "notes": 2, "split_nodes": 3},
        "findings": [
            {
                "code": "TS821",
                "severity": "warning",
                "title": "negative axis where the text has none",
                "model": "m.onnx",
                "node": "graph/odd one",
                "operator": "onnx.Split-2",
                "parameter": "axis",
                "message": "the axis is -2",
                "fix": "give 0",
                "decisions": ["D13"],
                "url": None,
            }
        ],
    }


def test_reports_of_one_model_for_several_targets_are_one(report: CheckReport) -> None:
    both = combined([report, report])
    assert both.findings == report.findings
    assert both.summary == report.summary == "1 error, 1 warning, 2 notes in 3 split nodes"
    content = json.loads(as_json({"m.onnx": both}, ["onnxruntime", "openvino"], "1.2.3"))
    assert (content["target"], content["targets"]) == (None, ["onnxruntime", "openvino"])


def test_a_finding_without_a_fix_has_none_in_json() -> None:
    report = CheckReport((of_check(NOT_CALLED, "graph", "m"),), 1)
    (finding,) = json.loads(as_json({"m.onnx": report}, [], "1.2.3"))["findings"]
    assert (finding["fix"], finding["operator"], finding["parameter"]) == (None, None, None)


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("m.onnx", "run tensorsplit infer m.onnx -o m.onnx (once)"),
        ("my model.onnx", "run tensorsplit infer 'my model.onnx' -o 'my model.onnx' (once)"),
    ],
)
def test_the_command_of_a_fix_can_be_copied(path: str, written: str) -> None:
    fix = "run tensorsplit infer MODEL -o MODEL (once)"
    report = CheckReport((of_check(NOT_CALLED, "graph", "the MODEL", fix),), 1)
    (finding,) = report.of_file(path).findings
    assert (finding.fix, finding.message) == (written, "the MODEL")


@pytest.mark.parametrize(
    ("node", "name"),
    [("graph", "graph"), ("graph/a", "a"), ("graph/loop.body/split", "split"), ("a/", "a/")],
)
def test_a_result_has_the_name_of_the_node_and_its_path(node: str, name: str) -> None:
    report = CheckReport((of_check(NOT_CALLED, node, "m"),), 1)
    (result,) = sarif_run(report)["results"]
    assert result["locations"][0]["logicalLocations"] == [
        {"name": name, "fullyQualifiedName": node}
    ]


def test_findings_have_a_fingerprint_for_each_model_node_code_and_parameter() -> None:
    made = [
        of_check(check, node, "m", parameter=parameter)
        for check in (NOT_CALLED, DEAD_OUTPUT)
        for node in ("graph/a", "graph/b")
        for parameter in (None, "axis")
    ]
    one = CheckReport(tuple(made), 1)
    content = json.loads(as_sarif({"m.onnx": one, "n.onnx": one}, "1.2.3"))
    results = content["runs"][0]["results"]
    found = {each["partialFingerprints"]["primaryLocationLineHash"] for each in results}
    assert len(found) == 16


@pytest.mark.parametrize("schema", SCHEMAS, ids=lambda path: path.name)
@pytest.mark.parametrize("clean", [False, True])
def test_sarif_holds_to_its_schema(report: CheckReport, schema: Path, clean: bool) -> None:
    written = CheckReport((), 3) if clean else report
    content = json.loads(as_sarif({"m.onnx": written}, "1.2.3"))
    jsonschema.validate(content, json.loads(schema.read_text("utf-8")))


def sarif_run(report: CheckReport, name: str = "m.onnx") -> Any:
    return json.loads(as_sarif({name: report}, "1.2.3"))["runs"][0]


def test_sarif_rules_are_all_checks_and_all_refusals(report: CheckReport) -> None:
    rules = sarif_run(report)["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({*KINDS, *CHECKS})
    for result in sarif_run(report)["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["defaultConfiguration"]["level"] == result["level"]


def test_sarif_results_say_where(report: CheckReport) -> None:
    result = sarif_run(report, "some folder/m.onnx")["results"][0]
    assert result["message"]["text"] == "onnx.Split-2, axis: the axis is -2; give 0"
    (location,) = result["locations"]
    assert location["logicalLocations"] == [
        {"name": "odd one", "fullyQualifiedName": "graph/odd one"}
    ]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "some%20folder/m.onnx"


def test_sarif_paths_are_relative_where_they_can_be(
    report: CheckReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    artifacts = [
        sarif_run(report, str(path))["artifacts"][0]["location"]["uri"]
        for path in (tmp_path / "m.onnx", tmp_path.parent / "m.onnx")
    ]
    assert artifacts == ["m.onnx", (tmp_path.parent / "m.onnx").as_uri()]


def test_fingerprints_tell_findings_apart_and_stay(report: CheckReport) -> None:
    def prints() -> list[str]:
        run = json.loads(as_sarif({"m.onnx": report, "n.onnx": report}, "1.2.3"))["runs"][0]
        return [each["partialFingerprints"]["primaryLocationLineHash"] for each in run["results"]]

    assert len(set(prints())) == len(prints()) == 8
    assert prints() == prints()


def test_github_ingests_it(report: CheckReport) -> None:
    """What docs.github.com asks for beyond the schema, in "SARIF support for code scanning"."""
    run = sarif_run(report)
    driver = run["tool"]["driver"]
    assert "informationUri" not in driver  # the documentation is not published
    for rule in driver["rules"]:
        assert len(rule["id"]) <= 255
        for field in ("shortDescription", "fullDescription", "help"):
            assert 0 < len(rule[field]["text"]) <= 1024
        assert "helpUri" not in rule
        assert rule["help"]["markdown"].endswith(f"`tensorsplit rule {rule['id']}`")
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
        assert len(rule["properties"]["tags"]) <= 20
    for result in run["results"]:
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert not place["artifactLocation"]["uri"].startswith("/")
        assert place["region"]["startLine"] == 1
        assert run["artifacts"][place["artifactLocation"]["index"]]["location"]["uri"] == "m.onnx"


def test_links_lead_to_the_documentation_where_it_is_published(
    report: CheckReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("tensorsplit.core.errors", "tensorsplit.model.check.findings"):
        monkeypatch.setattr(f"{module}.DOCUMENTATION", "https://docs.test")
    driver = sarif_run(report)["tool"]["driver"]
    assert driver["informationUri"] == "https://docs.test"
    for rule in driver["rules"]:
        assert rule["helpUri"] == f"https://docs.test/errors.html#{rule['id'].lower()}"
        assert rule["help"]["markdown"].endswith(f"({rule['helpUri']})")
    finding = json.loads(as_json({"m.onnx": report}, [], "1.2.3"))["findings"][0]
    assert finding["url"] == f"https://docs.test/errors.html#{finding['code'].lower()}"


def test_several_models_in_one_report(report: CheckReport) -> None:
    clean = CheckReport((), 2)
    text = as_text({"m.onnx": report, "n.onnx": clean})
    assert text.startswith("m.onnx: graph/odd one (onnx.Split-2)\n  warning [TS821] axis: ")
    assert text.endswith("\n\n1 error, 1 warning, 2 notes in 5 split nodes of 2 models\n")
    assert as_text({"m.onnx": clean, "n.onnx": clean}, summary=False) == ""
    content = json.loads(as_json({"n.onnx": clean, "m.onnx": report}, [], "1.2.3"))
    assert (content["model"], content["models"]) == (None, ["n.onnx", "m.onnx"])
    assert {each["model"] for each in content["findings"]} == {"m.onnx"}
    run = json.loads(as_sarif({"n.onnx": clean, "m.onnx": report}, "1.2.3"))["runs"][0]
    places = [each["locations"][0]["physicalLocation"] for each in run["results"]]
    assert {place["artifactLocation"]["index"] for place in places} == {1}


def test_github_shows_the_findings_beside_the_commit(report: CheckReport) -> None:
    first, *_ = as_github({"some, models/50%.onnx": report}).splitlines()
    assert first == (
        "::warning file=some%2C models/50%25.onnx,line=1,title=TS821 negative axis where the text"
        " has none::graph/odd one: onnx.Split-2, axis: the axis is -2; give 0"
        " (tensorsplit rule TS821)"
    )
    levels = [line.split()[0] for line in as_github({"m.onnx": report}).splitlines()]
    assert levels == ["::warning", "::notice", "::error", "::notice"]


def test_the_documentation_is_where_the_project_says() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    assert project["project"].get("urls", {}).get("Documentation", "") == DOCUMENTATION
