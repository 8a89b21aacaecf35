"""Splits behind splits, lowered: the engine imports and runs every model, and refuses what it must.

What the models give is worked out beside them by slicing (`tests.model.split_chains`). ``--seed N``
tries other models, from that seed on.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import onnx
import onnx_ir as ir
import pytest

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.engines.process import EngineProcess
from tensorsplit.model.infer.seen import seen
from tensorsplit.model.profiles import load
from tests.model.split_chains import Chain, split_chain
from tests.oracle import same

ENGINES = ("onnxruntime", "openvino")
BEHIND = {
    "onnxruntime": (),
    "openvino": (
        # A Loop whose outputs nobody uses, or whose rounds are not known to be any
        "object is not initialized",
        "to_shape was called on a dynamic shape",
        "'getShape().isCompatible(dims)' failed",
    ),
}
"""What an engine says of plain tensors, too."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed")
        metafunc.parametrize("seed", range(first, first + 60))


@pytest.fixture
def chain(seed: int) -> Chain:
    """The model of a seed."""
    return split_chain(seed)


@pytest.fixture(scope="module")
def processes() -> Iterator[dict[str, EngineProcess]]:
    """A process for each engine."""
    made = {name: EngineProcess(name, "tests.engines.guarded:run_all") for name in ENGINES}
    yield made
    for process in made.values():
        process.close()


def lowered(chain: Chain, target: Any) -> onnx.ModelProto | None:
    """The model lowered; None where that is refused, by node, which `check` reports too."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return ts.lower(chain.model, target=target)
        except SplitError as error:
            if error.code != "TS513" or not ts.check(chain.model, target=target):
                raise
            return None


@pytest.mark.engine
@pytest.mark.parametrize("engine", ENGINES)
def test_the_engine_runs_what_was_lowered_for_it(
    chain: Chain, engine: Any, processes: dict[str, EngineProcess]
) -> None:
    pytest.importorskip(engine)
    made = lowered(chain, engine)
    if made is None:
        return
    request = [engine, made.SerializeToString(), [fed.feeds for fed in chain.fed], 2]
    for fed, got in zip(chain.fed, processes[engine].call(request), strict=True):
        if fed.expected is None:
            assert isinstance(got, str), "illegal, and not refused"
        elif isinstance(got, str):
            assert any(words in got for words in BEHIND[engine]), got
        else:
            for value, wanted in zip(got, fed.expected, strict=True):
                # OpenVINO loses the shape of empty rows of loops
                assert same(value, wanted) or (value.size == wanted.size == 0)


def test_what_is_reported_is_what_is_rewritten(chain: Chain) -> None:
    """`check` has errors where `lower` changes the model, and none of what that returns."""
    for target in ENGINES:
        made = lowered(chain, target)
        if made is None:
            continue
        is_changed = made.SerializeToString() != chain.model.SerializeToString()
        assert is_changed or not errors_of(chain.model, target)


def errors_of(model: onnx.ModelProto, target: Any) -> list[Any]:
    """What `check` finds for a target that is an error."""
    return [found for found in ts.check(model, target=target) if found.severity == "error"]


@pytest.mark.engine
def test_openvino_knows_all_that_we_take_it_to_know(
    chain: Chain, processes: dict[str, EngineProcess]
) -> None:
    pytest.importorskip("openvino")
    made, view = lowered(chain, "openvino"), load("openvino").view
    if made is None or view is None:
        return
    adapter = "tests.engines.guarded:shapes_in_openvino"
    shapes = processes["openvino"].call([made.SerializeToString()], adapter=adapter)
    model = ir.serde.deserialize_model(made)
    facts = seen(model, view)
    for value in values_of(model):
        taken = facts.tensor(value).shape
        if taken is not None and value.name in shapes:
            pairs = zip(taken, shapes[value.name], strict=True)
            assert all(dim is None or dim == known for dim, known in pairs), value.name


def values_of(model: ir.Model) -> Iterator[ir.Value]:
    """What the nodes of the main graph give."""
    for node in model.graph:
        yield from node.outputs
