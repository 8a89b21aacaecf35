"""An opset that is newer than the records: what the installed onnx says of it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper

import tensorsplit as ts
from tensorsplit.core.records import NEWEST_OPSET
from tensorsplit.model.graph.opsets import schema_of
from tests.refusals import refused

NEXT = NEWEST_OPSET + 1
X = np.random.default_rng(29).standard_normal(7).astype("f4")


def model() -> onnx.ModelProto:
    """Split 7 into 3 at the next opset."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [7])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "abc"]
    node = helper.make_node("Split", ["x"], list("abc"), num_outputs=3)
    graph = helper.make_graph([node], "g", [x], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", NEXT)], ir_version=10)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed onnx that knows the next opset, in which no operator of the family changed."""
    monkeypatch.setattr(defs, "onnx_opset_version", lambda: NEXT)
    schema_of.cache_clear()
    yield
    schema_of.cache_clear()


@pytest.fixture
def changed(newer: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, but with a Split-29."""
    schema = defs.OpSchema("Split", "", NEXT)
    known: Callable[..., defs.OpSchema] = defs.get_schema

    def planted(name: str, version: int = NEXT, domain: str = "") -> defs.OpSchema:
        is_new = (name, domain) == ("Split", "") and version >= NEXT
        return schema if is_new else known(name, version, domain)

    monkeypatch.setattr(defs, "get_schema", planted)


@pytest.mark.filterwarnings("error::tensorsplit.SplitWarning")
def test_of_the_newest_opset_that_is_known_nothing_is_said() -> None:
    at_newest = model()
    at_newest.opset_import[0].version = NEWEST_OPSET
    assert [part.size for part in ts.run(at_newest, {"x": X}).values()] == [3, 3, 1]


@pytest.mark.usefixtures("newer")
def test_an_operator_that_did_not_change_means_what_it_meant() -> None:
    with pytest.warns(ts.SplitWarning, match=rf"onnx.Split-18 is taken at opset {NEXT}"):
        found = ts.run(model(), {"x": X})
    for part, expected in zip(found.values(), (X[:3], X[3:6], X[6:]), strict=True):
        assert part.tobytes() == expected.tobytes()


@pytest.mark.usefixtures("newer")
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_check_warns_of_the_opset() -> None:
    (finding,) = ts.check(model())
    assert (finding.code, finding.severity) == ("TS101", "warning")
    assert finding.operator == "onnx.Split-18"
    assert f"opset {NEXT} is newer" in finding.message


@pytest.mark.usefixtures("changed")
def test_an_operator_that_changed_is_refused() -> None:
    with refused("TS101", f"opset {NEXT} is newer than what is known of onnx.Split"):
        ts.run(model(), {"x": X})
    assert [finding.severity for finding in ts.check(model())] == ["error"]


def test_an_opset_that_the_installed_onnx_does_not_know_is_refused() -> None:
    with refused(
        "TS101", f"opset {NEXT} is newer than the installed onnx; install one that knows it"
    ):
        ts.run(model(), {"x": X})


@pytest.mark.usefixtures("newer")
@pytest.mark.filterwarnings("ignore::tensorsplit.SplitWarning")
def test_a_model_is_converted_to_the_opset_and_back() -> None:
    before = ts.convert(model(), 18)
    assert [entry.version for entry in before.opset_import] == [18]
    after = ts.convert(before, NEXT)
    assert [entry.version for entry in after.opset_import] == [NEXT]
    assert after.graph.node[0] == before.graph.node[0] == model().graph.node[0]
    older = ts.convert(after, 13)
    for part, expected in zip(
        ts.run(older, {"x": X}).values(), (X[:3], X[3:6], X[6:]), strict=True
    ):
        assert part.tobytes() == expected.tobytes()
    with refused("TS101", f"from 1 to {NEXT}"):
        ts.convert(model(), NEXT + 1)


@pytest.mark.usefixtures("changed")
def test_a_split_that_changed_is_not_converted() -> None:
    for opset in (13, 18):
        with refused("TS101", f"opset {NEXT} is newer than what is known of onnx.Split"):
            ts.convert(model(), opset)


@pytest.mark.usefixtures("newer")
def test_another_operator_that_changed_is_not_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    known: Callable[..., defs.OpSchema] = defs.get_schema
    schema = defs.OpSchema("Relu", "", NEXT)

    def planted(name: str, version: int = NEXT, domain: str = "") -> defs.OpSchema:
        is_new = (name, domain) == ("Relu", "") and version >= NEXT
        return schema if is_new else known(name, version, domain)

    monkeypatch.setattr(defs, "get_schema", planted)
    made = model()
    made.graph.node[0].CopyFrom(helper.make_node("Relu", ["x"], ["a"]))
    del made.graph.output[1:]
    made.opset_import[0].version = 18
    with refused("TS512", f"it changed at opset {NEXT}"):
        ts.convert(made, NEXT)
