"""Random legal models through every tool: each gives what slicing gives, or refuses.

``--seed N`` tries other models, from that seed on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container
from typing import Any

import onnx
import pytest

import tensorsplit as ts
from tensorsplit import SplitError
from tests.model.random_models import RandomModel, random_model
from tests.oracle import same

TARGETS = ("onnxruntime", "openvino", "portable")
OPSETS = (7, 10, 11, 13, 18, 24)
ENGINES = ("onnxruntime", "openvino")
LACKING = {
    "openvino": (
        "Model wasn't fully converted",  # it has no such operator
        "shape.rank().is_dynamic()",  # it asks for a rank that nobody knows
        # Plain tensors do the same: what a Loop carries is taken to keep its shape where nothing
        # uses what comes out, or where there are no rounds
        "'getShape().isCompatible(dims)' failed",
        "of type Loop object is not initialized",
        # Rows of a Scan, or of a Loop's further outputs, without elements
        "to_shape was called on a dynamic shape",
        "of type TensorIterator",
        "Zero count of iteration not supported",
    ),
    "onnxruntime": (),
}
"""What an engine says of models that it can't run, whatever they split."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each seed."""
    if "seed" in metafunc.fixturenames:
        first = metafunc.config.getoption("seed")
        metafunc.parametrize("seed", range(first, first + 80))


@pytest.fixture
def random(seed: int) -> RandomModel:
    """The model of a seed."""
    return random_model(seed)


def is_same(got: Any, want: Any) -> bool:
    """Whether tensors or sequences are the same in every bit."""
    if not isinstance(want, list):
        return same(got, want)
    return isinstance(got, list) and len(got) == len(want) and all(map(is_same, got, want))


def check_run(random: RandomModel, model: onnx.ModelProto, engine: str = "numpy") -> None:
    """The model gives what is expected."""
    got = ts.run(model, random.feeds, engine=engine)
    wrong = [name for name, value in random.expected.items() if not is_same(got[name], value)]
    if engine == "openvino":  # it loses the shape of empty rows of a Scan, and of empty constants
        wrong = [name for name in wrong if random.expected[name].size or got[name].size > 1]
    assert not wrong


def check_rewritten(random: RandomModel, model: onnx.ModelProto) -> None:
    """The model gives the same, and onnx takes it if it took the original.

    onnx infers wrong shapes inside functions where lengths have a default that is not what is fed.
    """
    if is_taken(random.model):
        onnx.checker.check_model(model, full_check=True)
    check_run(random, model)


def is_taken(model: onnx.ModelProto) -> bool:
    """Whether onnx's checker with its shape inference takes a model."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.shape_inference.InferenceError:
        return False
    return True


REFUSALS = {"TS101", "TS310", "TS512", "TS513"}
"""What a tool says that can't express a model."""


def unless_refused(
    tool: Callable[..., Any], *arguments: Any, allowed: Container[str] = REFUSALS, **options: Any
) -> Any:
    """What a tool makes of a model; None where it says that it can't."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return tool(*arguments, **options)
    except SplitError as error:
        if error.code not in allowed:
            raise
        return None


def test_it_is_right_as_it_stands(random: RandomModel) -> None:
    before = random.model.SerializeToString(deterministic=True)
    assert [f for f in ts.check(random.model) if f.severity == "error"] == []
    check_run(random, random.model)
    inferred = ts.infer_shapes(random.model)
    assert isinstance(inferred, onnx.ModelProto)
    check_rewritten(random, inferred)
    assert random.model.SerializeToString(deterministic=True) == before


def test_it_gives_the_same_at_other_opsets(random: RandomModel) -> None:
    before = random.model.SerializeToString(deterministic=True)
    for opset in OPSETS:
        allowed = REFUSALS - {"TS310"} if opset > 9 else REFUSALS  # Slice has its bounds as inputs
        made = unless_refused(ts.convert, random.model, opset=opset, allowed=allowed)
        if made is not None:
            check_rewritten(random, made)
        assert made is not None or opset < 13
    assert random.model.SerializeToString(deterministic=True) == before


def test_it_gives_the_same_lowered(random: RandomModel) -> None:
    before = random.model.SerializeToString(deterministic=True)
    for target in TARGETS:
        made = unless_refused(ts.lower, random.model, target=target)
        if made is not None:
            check_rewritten(random, made)
        assert made is not None or target != "onnxruntime"
    assert random.model.SerializeToString(deterministic=True) == before


@pytest.mark.engine
@pytest.mark.parametrize("engine", ENGINES)
def test_the_engine_gives_the_same(random: RandomModel, engine: str) -> None:
    pytest.importorskip(engine)
    made = unless_refused(ts.lower, random.model, target=engine)
    if made is None:
        return
    try:
        check_run(random, made, engine)
    except SplitError as error:
        if not any(words in str(error) for words in LACKING[engine]):
            raise
