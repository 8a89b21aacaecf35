"""Every node test of onnx: through the backend, `check` and `infer_shapes`.

What is refused stands in a table that must match exactly; all else gives what the test expects.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tensorsplit as ts
from tensorsplit import SplitError, backend
from tests.model.build import node_tests, node_tests_at

pytestmark = pytest.mark.thorough

TABLE = Path(__file__).parents[1] / "data" / "node_tests.json"
INFERRED = ("[ShapeInferenceError] Inference error(s): (op_type:MeanVarianceNormalization)",)
"""What onnx's own inference says of test_mvn, as it comes."""


def outcome(tool: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[str, Any]:
    """The code of a refusal, or what a tool returned; every other exception fails the test."""
    with warnings.catch_warnings(action="ignore"):  # the tests divide by zero and overflow
        try:
            return "", tool(*arguments, **options)
        except SplitError as error:
            return error.code, None


def check_refused(
    tool: str, refused: Iterable[tuple[str, str]], opset: int = 0, tried: Iterable[Any] = ()
) -> None:
    """Compare pairs of a code and a test's name with the table of the measured onnx.

    That is for all tests, or for those that were tried.
    """
    table = json.loads(TABLE.read_text())
    if table["onnx"] != onnx.__version__:
        return  # other tests, and another evaluator; what they give is looked at all the same
    names = {case.name for case in tried or node_tests()}
    expected = {
        (row["code"], name)
        for row in table[tool]
        if opset in row.get("opsets", (0,))
        for name in row["tests"].split()
        if name in names
    }
    assert set(refused) == expected


def feeds(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """The inputs and outputs of a case, as arrays or lists of arrays."""
    for inputs, outputs in case.data_sets or ():
        yield [_plain(entry) for entry in inputs], [_plain(entry) for entry in outputs]


def _plain(entry: Any) -> Any:
    return onnx.numpy_helper.to_array(entry) if isinstance(entry, onnx.TensorProto) else entry


def check_outputs(case: Any, model: onnx.ModelProto) -> str:
    """Run a model on what a test feeds; the code of a refusal, "differs", or nothing."""
    for inputs, expected in feeds(case):
        code, got = outcome(backend.run_model, model, inputs)
        if code:
            return code
        try:
            if not case.name.startswith("test_bernoulli"):  # its outputs are one draw of many
                check_similar(case, list(got), expected)
        except AssertionError:
            return "differs"
    return ""


def check_similar(case: Any, got: Any, expected: Any) -> None:
    """Equal up to the tolerances that onnx's runner has for a test."""
    if isinstance(expected, list):
        assert len(got) == len(expected), case.name
        for left, right in zip(got, expected, strict=True):
            check_similar(case, left, right)
        return
    assert (got is None) == (expected is None), case.name
    if expected is None:
        return
    expected = np.asarray(expected)
    assert got.shape == expected.shape, case.name
    if expected.dtype.kind not in "OUST":
        assert got.dtype == expected.dtype, case.name
    if expected.dtype.kind == "V" or expected.dtype.name == "bfloat16":  # ml_dtypes has no isclose
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if expected.dtype.kind not in "fc":
        np.testing.assert_array_equal(got, expected, err_msg=case.name)
    else:
        np.testing.assert_allclose(got, expected, case.rtol, case.atol, err_msg=case.name)


def test_the_backend_gives_what_is_expected() -> None:
    codes = ((check_outputs(case, case.model), case.name) for case in node_tests())
    check_refused("run", (pair for pair in codes if pair[0]))


def test_nothing_is_found_in_a_legal_model() -> None:
    found = [
        (finding.code, case.name)
        for case in node_tests()
        for finding in ts.check(case.model)
        if finding.severity == "error"
    ]
    check_refused("check", found)


def test_inferred_models_are_legal() -> None:
    codes = []
    for case in node_tests():
        code, made = outcome(ts.infer_shapes, case.model)
        codes.append((code, case.name))
        if made is not None:
            check_model(made)
    check_refused("infer_shapes", (pair for pair in codes if pair[0]))


def with_open(case: Any, place: int, axis: int) -> onnx.ModelProto:
    """The model of a case with a dimension of an input that is not known, nor any of outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(case.model)
    made.graph.input[place].type.tensor_type.shape.dim[axis].dim_param = "N"
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    return made


def test_what_is_inferred_of_a_dimension_that_is_not_known_is_so() -> None:
    wrong = []
    for case in node_tests_at(0):
        ranks = [len(entry.type.tensor_type.shape.dim) for entry in case.model.graph.input]
        for place, axis in ((place, axis) for place, n in enumerate(ranks) for axis in range(n)):
            code, made = outcome(ts.infer_shapes, with_open(case, place, axis))
            for _, outputs in feeds(case) if not code else ():
                pairs = zip(made.graph.output, outputs, strict=True)
                given = [each for each in pairs if isinstance(each[1], np.ndarray)]
                wrong += [(case.name, place, axis) for pair in given if not may_be(*pair)]
    assert wrong == []


def may_be(entry: onnx.ValueInfoProto, array: Any) -> bool:
    """Whether an output may have the shape that a test expects of it, as far as is known."""
    kind = entry.type.tensor_type
    dims = [each.dim_value if each.HasField("dim_value") else None for each in kind.shape.dim]
    pairs = zip(dims, array.shape, strict=False)
    is_so = len(dims) == array.ndim and all(dim in (None, size) for dim, size in pairs)
    return is_so or not kind.HasField("shape")


def check_model(model: onnx.ModelProto) -> None:
    """The checker of onnx, with its shape inference."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except onnx.shape_inference.InferenceError as error:
        if not str(error).startswith(INFERRED):
            raise
