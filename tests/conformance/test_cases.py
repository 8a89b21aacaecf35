"""The cases: that they are those of the published results, and right."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.conformance import case as vocabulary
from tensorsplit.conformance import oracle
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.cases import all_cases, find
from tests.conformance.equality import same
from tests.interpreters import printed

CASES = all_cases()
SUITE = Path(vocabulary.__file__).parent


def sample(cases: list[Case], step: int) -> list[Case]:
    """Every so many cases: neighbours in the order of ids are much alike."""
    return cases[::step]


def of(**fields: object) -> list[Case]:
    """The cases with these fields."""
    return [
        case
        for case in CASES
        if all(getattr(case, name) == value for name, value in fields.items())
    ]


def test_patterns_find_cases() -> None:
    assert find([]) == CASES
    some = find(["onnx.Split-1/*", "*/string/*"])
    assert {case.id for case in some} == {
        case.id for case in CASES if case.operator == "onnx.Split-1" or "/string/" in case.id
    }
    assert find(["nothing"]) == ()
    assert find([CASES[7].id]) == (CASES[7],)


def digest(built: Built) -> str:
    """A digest of the files of a case, of what is fed, and of what comes out."""
    text = hashlib.sha256(built.model + built.weights + repr(built.outputs).encode())
    for values in (built.inputs, built.expected or {}, *(built.legal or ())):
        for name, value in values.items():
            for item in value if isinstance(value, list) else [value]:
                bits = item.tolist() if item.dtype.hasobject else item.tobytes()
                text.update(f"{name} {item.dtype} {item.shape} {bits!r}".encode())
    return text.hexdigest()


PUBLISHED = {
    "onnx.Split-1": "3e280962e3a65b99",
    "onnx.Split-2": "dd2f0840e27e9119",
    "onnx.Split-11": "4418edbd5db264fc",
    "onnx.Split-13": "f5a2b84e0ad613fe",
    "onnx.Split-18": "7395c7317a141ca4",
    "onnx.SplitToSequence-11": "0033a65e0b180d4c",
    "onnx.SplitToSequence-24": "69c743b44a23f266",
    "openvino.VariadicSplit-1": "ad5b9ad879f9654b",
    "openvino.Split-1": "2c4254163272c87f",
}
"""Digests of the models, inputs and outputs that the results in docs/conformance.json.gz are of.

What else is said of each case is there, too (`test_rates`).

With anything else under the same id, they would be results of another case: it gets another id, or
all engines are measured again, and the digest here is that of the new cases.
"""


@pytest.mark.parametrize("operator", PUBLISHED)
def test_cases_are_those_whose_results_were_published(operator: str) -> None:
    found = hashlib.sha256()
    for case in of(operator=operator):
        found.update(f"{case.id} {digest(case.build())}".encode())
    assert found.hexdigest().startswith(PUBLISHED[operator])


@pytest.mark.parametrize("sizes", [(1, 1), (3, 1), (-1, 4), ()])
def test_lengths_that_do_not_cover_the_axis_are_a_mistake_in_the_case(
    sizes: tuple[int, ...],
) -> None:
    with pytest.raises(ValueError, match="do not cover 3"):
        oracle.parts(np.ones((3, 4)), 0, sizes)


def test_another_seed_gives_other_data() -> None:
    case = find(["onnx.Split-18/float/static-r2/initializer/graph/many-plain-*"])[0]
    one, other = case.build(0), case.build(1)
    assert one.model == other.model
    assert not np.array_equal(one.inputs["x"], other.inputs["x"])


CHECKS = """
import sys
import onnx
from tensorsplit.conformance.cases import find
found = 0
for case in find(["onnx.*"])[int(sys.argv[1]) :: 2]:
    if case.expects == "parts":
        onnx.checker.check_model(onnx.load_from_string(case.build().model))
        found += 1
print(found)
"""


@pytest.mark.thorough
@pytest.mark.parametrize("half", ["0", "1"])
def test_the_checker_of_onnx_takes_every_legal_model(half: str) -> None:
    """In a process of its own: what checks a model is somebody else's native code."""
    assert int(printed(CHECKS, half)) > 1500


def run_ours(case: Case, folder: Path) -> Any:
    built = case.build()
    if case.model_format == "onnx":
        return ts.run(onnx.load_from_string(built.model), built.inputs), built
    path = folder / "model.xml"
    path.write_bytes(built.model)
    path.with_suffix(".bin").write_bytes(built.weights)
    return ts.run(path, built.inputs), built


@pytest.mark.thorough
@pytest.mark.parametrize("operator", PUBLISHED)
def test_our_engine_gives_the_parts_that_are_expected(operator: str, tmp_path: Path) -> None:
    for case in sample(of(operator=operator, expects="parts"), 3):
        got, built = run_ours(case, tmp_path)
        assert list(got) == list(built.expected), case.id
        for name, want in built.expected.items():
            assert same(got[name], want), (case.id, name)


CODES = {
    "D1": {"TS304"},
    "D3": {"TS303"},
    "D4": {"TS104"},
    "D6": {"TS302"},
    "D10": {"TS307"},
    "D5": {"TS305", "TS303", "TS107"},
    "D7": {"TS301", "TS306"},
    "D18": {"TS202"},
    "D12": {"TS104", "TS107", "TS301", "TS302"},
    "D14": {"TS302", "TS306"},
    "D15": {"TS105", "TS106"},
    "D19": {"TS511"},
    "D20": {"TS301", "TS302"},
    "": {"TS102", "TS103", "TS105", "TS106", "TS107", "TS201", "TS203"},
}


@pytest.mark.parametrize("decision", CODES)
def test_our_engine_refuses_for_the_reason_that_is_meant(decision: str, tmp_path: Path) -> None:
    for case in sample(of(decision=decision, expects="refusal"), 3):
        with pytest.raises(ts.SplitError) as caught:
            run_ours(case, tmp_path)
        assert caught.value.code in CODES[decision], (case.id, str(caught.value))


PARTS_OF_THE_SUITE = [
    *(SUITE / f"{name}.py" for name in ("case", "data", "oracle")),
    *(SUITE / "models").rglob("*.py"),
    *(SUITE / "cases").rglob("*.py"),
]


@pytest.mark.parametrize("path", PARTS_OF_THE_SUITE, ids=lambda path: path.stem)
def test_expectations_come_from_nothing_of_the_implementation(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = [str(node.module)]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            own = name.split(".")[0] != "tensorsplit" or name.startswith("tensorsplit.conformance")
            assert own, name
            assert not name.startswith("tests")


def test_cases_are_plain_and_can_be_sent_to_another_process() -> None:
    import pickle

    case = find(["*/loop.if/*"])[0]
    assert pickle.loads(pickle.dumps(case)) == case
    assert pickle.loads(pickle.dumps(case)).build().model == case.build().model
    assert dataclasses.replace(case, id="other") != case


FED = [case for case in CASES if "/refuse-fed-" in case.id]


@pytest.mark.parametrize("case", sample(FED, 7), ids=lambda case: case.id)
def test_a_model_that_only_its_data_makes_illegal_runs_on_other_data(case: Case) -> None:
    built = case.build()
    assert built.legal is not None
    model = onnx.load_from_string(built.model)
    inputs, expected = built.legal
    found = ts.run(model, inputs)
    assert all(same(found[name], want) for name, want in expected.items())
    with pytest.raises(ts.SplitError, match=r"TS[123]\d\d|TS511"):
        ts.run(model, built.inputs)
