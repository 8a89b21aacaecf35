"""The cases: what they cover, that they stay the same, and that they are what they say."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit.conformance import case as vocabulary
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.cases import all_cases, find, onnx_parts
from tensorsplit.conformance.cases.wordings import WORDINGS
from tests import oracle
from tests.conformance.equality import same
from tests.interpreters import printed
from tests.refusals import refused

CASES = all_cases()
LEGAL = [case for case in CASES if case.expects == "parts"]
REFUSALS = [case for case in CASES if case.expects == "refusal"]
SUITE = Path(vocabulary.__file__).parent
ANY = ("float4e2m1", "float8e4m3fn", "float8e5m2", "float8e8m0", "int4", "uint2", "uint4")
ALLOWED = {
    **oracle.ALLOWED,
    "openvino.VariadicSplit-1": ("float", "string", "bool", "bfloat16", "uint64", *ANY),
    "openvino.Split-1": ("float", "string", "bool", "bfloat16", "uint64", *ANY),
}
ONNX = tuple(oracle.ALLOWED)
SEQUENCES = tuple(operator for operator in ONNX if "Sequence" in operator)


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


def test_the_parts_of_every_case_cover_its_axis() -> None:
    for case in LEGAL:
        assert case.cut is not None
        assert sum(case.cut.sizes) == case.cut.shape[case.cut.axis], case.id


def test_what_is_said_of_a_stated_split_is_what_its_sizes_are() -> None:
    """A count of parts, the length of each chunk but the last, each length, or lengths of 1."""
    stated = {
        (each.name, split) for said in WORDINGS.values() for each in said for split in each.splits
    }
    stated |= {(name, split) for name, splits in onnx_parts._USED.items() for split in splits}
    for name, split in stated:
        assert sum(split.sizes) == split.dim, split
        if split.said is None:
            assert set(split.sizes) <= {1}, split
        elif isinstance(split.said, tuple):
            pairs = zip(split.said, split.sizes, strict=True)
            assert all(said in (-1, size) for said, size in pairs), split
        elif not name.startswith("chunks"):
            assert len(split.sizes) == split.said, split
        else:
            *before, last = split.sizes or (0,)
            assert set(before) <= {split.said}, split
            assert last <= split.said, split


def test_ids_are_unique_sorted_and_file_safe() -> None:
    ids = [case.id for case in CASES]
    assert ids == sorted(set(ids))
    for name in ids:
        assert re.fullmatch(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)+", name)
        assert "__" not in name
        assert len(name) < 200


@pytest.mark.parametrize("case", sample(list(CASES), 97), ids=lambda case: case.id)
def test_an_id_begins_with_what_the_case_is_about(case: Case) -> None:
    operator, element_type, shape, spelling, place, *_ = case.id.split("/")
    assert (operator, element_type, spelling) == (case.operator, case.element_type, case.spelling)
    assert shape == f"{case.shape_class}-r{case.rank}"
    assert place.partition(".")[0] == case.place


@pytest.mark.parametrize("name", ["shape_class", "spelling", "place", "use"])
def test_fields_hold_only_the_words_of_the_vocabulary_and_all_of_them(name: str) -> None:
    words = {"shape_class": "SHAPE_CLASSES", "spelling": "FORMS"}.get(name, f"{name}s".upper())
    assert {getattr(case, name) for case in CASES} == set(getattr(vocabulary, words))


@pytest.mark.parametrize("operator", ALLOWED)
def test_every_operator_version_is_there_with_each_of_its_element_types(operator: str) -> None:
    for element_type in ALLOWED[operator]:
        assert of(operator=operator, element_type=element_type, expects="parts"), element_type
    refused = {case.element_type for case in of(operator=operator, expects="refusal")}
    if operator.startswith("onnx"):
        legal = {case.element_type for case in of(operator=operator, expects="parts")}
        assert legal == set(ALLOWED[operator])
        assert refused - legal <= {"bfloat16", "int32", "int64", "string"}


@pytest.mark.parametrize("operator", ALLOWED)
def test_every_axis_of_every_rank_is_cut(operator: str) -> None:
    cuts = {
        (len(case.cut.shape), case.cut.axis)
        for case in of(operator=operator, expects="parts")
        if case.cut is not None
    }
    assert cuts >= {(rank, axis) for rank in range(1, 7) for axis in range(-rank, rank)}


def forms(operator: str) -> set[str]:
    by_input = {"initializer", "constant", "runtime", "overridable"}
    return {
        "onnx.Split-1": {"attribute", "absent", *by_input},
        "onnx.Split-2": {"attribute", "absent"},
        "onnx.Split-11": {"attribute", "absent"},
        "onnx.Split-13": {"absent", *by_input},
        "onnx.Split-18": {"attribute", *by_input},
    }.get(operator, {"absent", *by_input})


@pytest.mark.parametrize("operator", ONNX)
def test_every_form_is_in_every_place_for_every_class_of_shapes(operator: str) -> None:
    there = {
        (case.spelling, case.place, case.shape_class)
        for case in of(operator=operator, expects="parts")
    }
    places = [place for place in vocabulary.PLACES if operator != ONNX[0] or place != "scan"]
    wanted = set(product(forms(operator), places, vocabulary.SHAPE_CLASSES))
    assert there == wanted


@pytest.mark.parametrize("operator", ONNX)
def test_every_element_type_is_in_every_place(operator: str) -> None:
    there = {(case.element_type, case.place) for case in of(operator=operator, expects="parts")}
    for element_type, place in product(ALLOWED[operator], vocabulary.PLACES):
        if (place == "scan" and operator == ONNX[0]) or element_type == "bfloat16":
            continue  # no Scan at opset 1; no sequence operator and few bodies take bfloat16
        assert (element_type, place) in there


@pytest.mark.parametrize("operator", SEQUENCES)
def test_every_use_of_a_sequence_is_there_with_every_kind_of_lengths(operator: str) -> None:
    names = {case.id.split("/")[-1] for case in of(operator=operator)}
    assert any("runtime" in name and "-at" in name for name in names)
    for use in vocabulary.USES[1:]:
        cases = of(operator=operator, use=use, expects="parts")
        for kind in ("lengths", "chunks", "ones"):
            assert any(f"use-{kind}" in case.id for case in cases), (use, kind)


def test_split_nodes_are_in_bodies_inside_of_bodies() -> None:
    nested = {case.id.split("/")[4] for case in LEGAL if case.model_format == "onnx"}
    assert {"if.loop", "loop.if", "scan.if", "function.if", "loop.function"} <= nested


@pytest.mark.parametrize("number", range(1, 21))
def test_every_decision_has_cases(number: int) -> None:
    cases = of(decision=f"D{number}")
    legal = {"D2", "D8", "D9", "D11", "D13", "D16", "D17"}
    expected = {"parts"} if f"D{number}" in legal else {"refusal"}
    assert {case.expects for case in cases} >= expected
    if f"D{number}" in legal:
        assert {case.expects for case in cases} == {"parts"}
    if number == 16:  # of 64 bits
        assert {case.element_type for case in cases} == {"int64", "uint64", "double"}


def refuses(pattern: str) -> bool:
    return any(case.expects == "refusal" for case in find([pattern]))


@pytest.mark.parametrize(
    "pattern",
    [
        "onnx.Split-18/*/attribute/graph/refuse-5into4-*",
        "onnx.Split-18/*/attribute/graph/refuse-3into7-*",
        "onnx.Split-11/*/refuse-7into3-*",
        "onnx.Split-18/*/refuse-both-3.3-*",
        "onnx.Split-18/*/refuse-neither-2outputs-*",
        "onnx.Split-18/*/static-*/graph/refuse-count2-3outputs-*",
        "onnx.Split-18/*/static-*/graph/refuse-count4-3outputs-*",
        "onnx.Split-13/*/initializer/graph/refuse-sum-2.3-*",
        "onnx.Split-18/*/refuse-negative-m1.7-*",
        "onnx.Split-18/*/initializer/graph/refuse-negative-m1.400000000-*",
        "openvino.Var*/static-*/refuse-int64-m1.7",
        "openvino.Var*/static-*/refuse-int64-m1.400000000",
        "openvino.Var*/refuse-int64-4294967297.5",
        "openvino.Var*/refuse-axis-half",
        "openvino.Var*/refuse-lengths-float",
        "onnx.SplitToSequence-11/*/initializer/graph/*/refuse-chunk-0-*",
        "onnx.SplitToSequence-24/*/SequenceAt/refuse-at2-runtime-*",
        "onnx.Split-13/*/overridable/*/refuse-overridable-fed-sum-*",
        "onnx.Split-1/*/refuse-attribute-and-input-*",
        "onnx.Split-1/*/refuse-float-nan-*",
        "onnx.Split-18/*-r0/*/refuse-rank0-*",
    ],
)
def test_what_engines_were_seen_to_do_wrong_is_asked(pattern: str) -> None:
    assert refuses(pattern)


def test_patterns_find_cases() -> None:
    assert find([]) == CASES
    some = find(["onnx.Split-1/*", "*/string/*"])
    assert {case.id for case in some} == {
        case.id for case in CASES if case.operator == "onnx.Split-1" or "/string/" in case.id
    }
    assert find(["nothing"]) == ()
    assert find([CASES[7].id]) == (CASES[7],)


def test_rules_say_what_is_tested_and_where_the_standard_says_it() -> None:
    for case in CASES:
        vendor, name = case.operator.split(".")
        page = {"onnx": "ONNX", "openvino": "OpenVINO"}[vendor]
        assert re.match(rf"{page} {re.escape(name)}: .+ \(.+\)$", case.rule), case.rule


def digest(built: Built) -> str:
    """A digest of the files of a case, of what is fed, and of what comes out."""
    text = hashlib.sha256(built.model + built.weights + repr(built.outputs).encode())
    for values in (built.inputs, built.expected or {}, *(built.legal or ())):
        for name, value in values.items():
            for item in value if isinstance(value, list) else [value]:
                text.update(f"{name} {item.dtype} {item.tolist()!r}".encode())
    return text.hexdigest()


PUBLISHED = {
    "onnx.Split-1": "fdfd652598596c7c",
    "onnx.Split-2": "b0244f603955b64d",
    "onnx.Split-11": "cfe8768ba7ca087b",
    "onnx.Split-13": "c2d53d234dcccef4",
    "onnx.Split-18": "6a73cea4a8ac1fdc",
    "onnx.SplitToSequence-11": "011cf998705112ee",
    "onnx.SplitToSequence-24": "ae57ff883cf1831e",
    "openvino.VariadicSplit-1": "a981982c5e2e49ce",
    "openvino.Split-1": "d5ed4ab1fd87b74f",
}
"""Digests of the models, inputs and outputs that the results in docs/conformance.json.gz are of.

With anything else under the same id, they would be results of another case: it gets another id, or
all engines are measured again, and the digest here is that of the new cases.
"""


@pytest.mark.parametrize("operator", ALLOWED)
def test_cases_are_those_whose_results_were_published(operator: str) -> None:
    found = hashlib.sha256()
    for case in of(operator=operator):
        found.update(f"{case.id} {digest(case.build())}".encode())
    assert found.hexdigest().startswith(PUBLISHED[operator])


def test_another_seed_gives_other_data() -> None:
    case = find(["onnx.Split-18/float/static-r2/initializer/graph/many-plain-*"])[0]
    one, other = case.build(0), case.build(1)
    assert one.model == other.model
    assert not np.array_equal(one.inputs["x"], other.inputs["x"])


def arrays(values: dict[str, Any]) -> Iterator[Any]:
    for value in values.values():
        yield from value if isinstance(value, list) else [value]


@pytest.mark.parametrize("operator", ALLOWED)
def test_parts_that_change_places_would_show(operator: str) -> None:
    for case in sample(of(operator=operator, expects="parts"), 6):
        if case.element_type in ("bool", "uint2", "uint4", "int4", "float4e2m1"):
            continue
        expected = case.build().expected
        assert expected is not None
        parts = [part for part in arrays(expected) if part.size]
        if case.use == "SequenceAt":  # which asks for some of them twice
            continue
        seen = Counter((part.shape, repr(part.tolist())) for part in parts)
        assert not seen or max(seen.values()) == 1, case.id


@pytest.mark.parametrize("operator", ALLOWED)
def test_what_is_fed_is_what_is_cut(operator: str) -> None:
    """In the main graph; the parts joined again are the data."""
    for case in sample(of(operator=operator, place="graph", expects="parts"), 5):
        built = case.build()
        if case.use not in ("", "output") or case.cut is None or "constant-" in case.id:
            continue
        if "also-halves" in case.id:  # whose parts are joined the other way round
            continue
        assert built.inputs["x"].shape == case.cut.shape
        assert built.expected is not None
        if case.cut.keepdims and case.cut.sizes and "unnamed" not in case.id:
            joined = np.concatenate(list(arrays(built.expected)), axis=case.cut.axis)
            assert same(joined, built.inputs["x"]), case.id


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
@pytest.mark.parametrize("operator", ALLOWED)
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


def test_only_what_is_fed_is_wrong_where_it_replaces_a_default() -> None:
    """Else an engine that does not read it would refuse the case as well."""
    cases = [case for case in of(decision="D20", expects="refusal") if "-fed-" in case.id]
    assert cases
    for case in cases:
        built = case.build()
        model = onnx.load_from_string(built.model)
        defaults = {held.name for held in model.graph.initializer}
        fed = {name: value for name, value in built.inputs.items() if name not in defaults}
        assert fed.keys() < built.inputs.keys()
        ts.run(model, fed)


def test_each_insertion_of_the_suite_is_at_a_position_beyond_the_end(tmp_path: Path) -> None:
    """At the end itself, the count, the standard allows one."""
    cases = of(use="SequenceInsert", decision="D19", expects="refusal")
    assert cases
    for case in cases:
        with refused("TS511"):
            run_ours(case, tmp_path)


def test_every_refusal_belongs_to_a_reason() -> None:
    assert {case.decision for case in REFUSALS} == set(CODES)
    assert all(case.build().expected is None for case in sample(REFUSALS, 50))
    assert all(case.cut is None for case in REFUSALS)


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


@pytest.mark.parametrize("operator", ONNX)
def test_every_version_has_models_that_only_their_data_makes_illegal(operator: str) -> None:
    there = [case for case in FED if case.operator == operator]
    assert {case.place for case in there} >= {"graph", "if", "loop", "function"}
    assert len({case.decision for case in there}) >= 2
    assert all(case.expects == "refusal" and case.decision for case in there)


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
