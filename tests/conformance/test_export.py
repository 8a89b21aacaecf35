"""Cases as files: any runner of ONNX's backend tests takes them."""

from __future__ import annotations

import json
import unittest
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.base import Backend
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnx.reference import ReferenceEvaluator

import tensorsplit as ts
from tensorsplit import backend
from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases import find
from tensorsplit.conformance.export import directory, export
from tensorsplit.storage.outputs import Outputs
from tests.conformance.equality import same
from tests.refusals import refused

CHOSEN = (
    "onnx.Split-1/float/static-r2/attribute/graph/many-plain-*",
    "onnx.Split-2/complex64/*/graph/many-extreme-*",
    "onnx.Split-13/bfloat16/*/graph/uneven-plain-*",
    "onnx.Split-13/string/*/graph/uneven-plain-*",
    "onnx.Split-13/*/overridable/if/lengths-*",
    "onnx.Split-18/float/*/scan.if/*",
    "onnx.SplitToSequence-11/*/output/use-*",
    "onnx.SplitToSequence-24/*/SequenceErase/use-*",
    "onnx.SplitToSequence-24/*/SequenceInsert/use-lengths-*",
)
LEGAL = [case for case in find(CHOSEN) if case.expects == "parts"]
REFUSED = find(["*/refuse-5into4-*", "*/refuse-at2-runtime-*"])
IR = find(["openvino.*/uint4/*", "openvino.*/string/*", "openvino.*/refuse-int64-2.3"])


class QuietRunner(Runner):
    """ONNX's own runner with no tests but those added to it."""

    def __init__(self, tested: Any) -> None:
        self.backend = tested
        self._test_items = defaultdict(dict)
        self._test_kwargs = {}
        self._include_patterns = self._exclude_patterns = self._xfail_patterns = set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("conformance") / "a"
    export([*LEGAL, *REFUSED, *IR], target, Outputs(), seed=2)
    return target


def manifest(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return content


class ReferenceBackend(Backend):
    """ONNX's own reference implementation as a backend."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_: Any) -> Any:
        session = ReferenceEvaluator(model)

        class Prepared:
            def run(self, inputs: list[Any]) -> list[Any]:
                names = session.input_names[: len(inputs)]
                return list(session.run(None, dict(zip(names, inputs, strict=True))))

        return Prepared()

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def known_to_reference(case: Case) -> bool:
    """The reference has no Split-1, and puts a tensor that goes to the end in front of the last."""
    return case.operator != "onnx.Split-1" and case.use != "SequenceInsert"


def is_comparable(case: Case) -> bool:
    """The runner can't compare sequences of scalars: it asks for their length."""
    return case.cut is not None and (case.cut.keepdims or case.rank > 1)


@pytest.mark.parametrize(
    ("tested", "known"), [(backend, lambda _: True), (ReferenceBackend, known_to_reference)]
)
def test_the_runner_of_onnx_takes_what_is_written(folder: Path, tested: Any, known: Any) -> None:
    wanted = {directory(case) for case in LEGAL if is_comparable(case) and known(case)}
    runner = QuietRunner(tested)
    for test in load_model_tests(str(folder), "parts"):
        assert (test.rtol, test.atol) == (0, 0)
        if f"parts/{test.name}" in wanted:
            runner._add_model_test(test, "Split")
    items = runner._test_items["SplitModel"]
    on_cpu = [item for name, item in items.items() if name.endswith("_cpu")]
    assert len(on_cpu) == len(wanted) > 50
    for item in on_cpu:
        item.func(unittest.TestCase())


def test_the_runner_would_notice_other_outputs(folder: Path, tmp_path: Path) -> None:
    case = next(case for case in LEGAL if case.operator == "onnx.Split-1")
    export([case], tmp_path / "out", Outputs())
    place = tmp_path / "out" / directory(case) / "test_data_set_0"
    (place / "output_0.pb").write_bytes((place / "output_2.pb").read_bytes())
    runner = QuietRunner(backend)
    for test in load_model_tests(str(tmp_path / "out"), "parts"):
        runner._add_model_test(test, "Split")
    (item,) = [i for name, i in runner._test_items["SplitModel"].items() if name.endswith("_cpu")]
    with pytest.raises(AssertionError):
        item.func(unittest.TestCase())


def read(path: Path, kind: onnx.TypeProto) -> Any:
    if kind.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(path.read_bytes()))
    return onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))


def test_what_is_read_back_is_what_was_built(folder: Path) -> None:
    for case in LEGAL:
        built = case.build(2)
        place = folder / directory(case)
        assert (place / "model.onnx").read_bytes() == built.model
        model = onnx.load(place / "model.onnx")
        data = place / "test_data_set_0"
        for kind, infos, values in (
            ("input", model.graph.input, built.inputs),
            ("output", model.graph.output, built.expected or {}),
        ):
            assert len(list(data.glob(f"{kind}_*.pb"))) == len(values)
            for number, (info, (name, value)) in enumerate(
                zip(infos, values.items(), strict=False)
            ):
                assert info.name == name
                got = read(data / f"{kind}_{number}.pb", info.type)
                assert same(got, value), case.id


def test_an_empty_sequence_is_written_as_one(folder: Path) -> None:
    cases = [case for case in LEGAL if case.use == "output" and case.cut and not case.cut.sizes]
    assert cases
    for case in cases:
        path = folder / directory(case) / "test_data_set_0" / "output_0.pb"
        sequence = onnx.SequenceProto.FromString(path.read_bytes())
        assert sequence.elem_type == onnx.SequenceProto.TENSOR
        assert not sequence.tensor_values


def test_refusals_have_no_outputs_and_are_marked(folder: Path) -> None:
    marked = {e["id"]: e for e in manifest(folder)["cases"] if e["expects"] == "refusal"}
    assert REFUSED
    for case in REFUSED:
        entry = marked[case.id]
        assert entry["outputs"] is None
        assert entry["directory"].startswith("refusal/")
        data = folder / entry["directory"] / "test_data_set_0"
        assert (data / "input_0.pb").is_file()
        assert not list(data.glob("output_*"))


def test_the_manifest_leads_from_ids_to_folders_and_back(folder: Path) -> None:
    content = manifest(folder)
    assert content["seed"] == 2
    assert content["version"] == ts.__version__
    by_folder = {entry["directory"]: entry for entry in content["cases"]}
    for case in (*LEGAL, *REFUSED, *IR):
        entry = by_folder[directory(case)]
        assert (folder / entry["directory"]).is_dir()
        kind, _, name = entry["directory"].partition("/test_")
        assert name.replace("__", "/") == entry["id"] == case.id
        assert kind in ("parts", "refusal", "ir")
        assert entry["rule"] == case.rule
        assert entry["decision"] == case.decision
        assert (entry["operator"], entry["opset"]) == (case.operator, case.opset)


def test_an_openvino_ir_is_written_with_its_weights(folder: Path) -> None:
    assert IR
    for case in IR:
        place = folder / directory(case)
        x = onnx.load_tensor(str(place / "test_data_set_0" / "input_0.pb"))
        feeds = {x.name: onnx.numpy_helper.to_array(x)}
        if case.expects == "refusal":
            if case.spelling == "constant":
                with pytest.raises(ts.SplitError):
                    ts.run(place / "model.xml", feeds)
            continue
        outputs = ts.run(place / "model.xml", feeds)
        for number, got in enumerate(outputs.values()):
            path = place / "test_data_set_0" / f"output_{number}.pb"
            assert same(got, onnx.numpy_helper.to_array(onnx.load_tensor(str(path))))


def test_cases_are_not_mixed_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with refused("TS702", "not empty"):
        export(LEGAL[:1], tmp_path, Outputs())
    assert [entry.name for entry in tmp_path.iterdir()] == ["mine.txt"]
    with refused("TS702", "not a folder"):
        export(LEGAL[:1], tmp_path / "mine.txt", Outputs())


def test_cases_replace_others_only_where_that_is_allowed(tmp_path: Path) -> None:
    target = tmp_path / "cases"
    export(LEGAL[:1], target, Outputs())
    with refused("TS702", "not empty"):
        export(LEGAL[1:2], target, Outputs())
    assert [entry["id"] for entry in manifest(target)["cases"]] == [LEGAL[0].id]
    export(LEGAL[1:2], target, Outputs(overwrite=True))
    assert [entry["id"] for entry in manifest(target)["cases"]] == [LEGAL[1].id]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    target = tmp_path / "there"
    target.mkdir()
    told: list[int] = []
    export(LEGAL[:2], target, Outputs(), progress=told.append)
    assert told == [1, 1]
    assert len(manifest(target)["cases"]) == 2
    assert np.all([(target / directory(case)).is_dir() for case in LEGAL[:2]])


def test_nothing_is_left_if_it_is_interrupted(tmp_path: Path) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(LEGAL[:2], tmp_path / "out", Outputs(), progress=interrupt)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with refused("TS702"):
        export(LEGAL[:1], tmp_path / "file" / "out", Outputs())
