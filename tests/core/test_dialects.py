"""What dialects say: lengths worked out by hand from documents, and those of NumPy and torch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit.core.operands import Operand, check_operand
from tensorsplit.core.records import dialects, operators
from tensorsplit.core.records.names import DialectName
from tests.refusals import refused


@pytest.mark.parametrize(
    ("name", "shape", "operands", "sizes"),
    [
        ("tensorflow.split", (5, 30), {"num_or_size_splits": 3, "axis": 1}, (10, 10, 10)),
        ("tensorflow.split", (5, 30), {"num_or_size_splits": [4, 15, 11], "axis": 1}, (4, 15, 11)),
        ("tensorflow.split", (30,), {"num_or_size_splits": [4, -1, 11]}, (4, 15, 11)),
        ("litert.split", (6,), {"num_splits": 2, "split_dim": -1}, (3, 3)),
        ("litert.split_v", (7,), {"size_splits": [2, -1], "split_dim": 0}, (2, 5)),
        ("webnn.split", (2, 6), {"splits": [1, 2, 3], "axis": 1}, (1, 2, 3)),
        ("webnn.split", (24,), {"splits": 3}, (8, 8, 8)),
        ("coreml.split", (3, 9), {"split_sizes": [4, 5], "axis": -1}, (4, 5)),
        ("coreml.split", (3, 9), {"num_splits": 3, "axis": 1}, (3, 3, 3)),
        ("mpsgraph.split", (4,), {"splitSizes": [1, 3], "axis": 0}, (1, 3)),
        ("nnapi.SPLIT", (4,), {"num_outputs": 2, "axis": 0}, (2, 2)),
        ("directml.SPLIT", (1, 1, 6, 2), {"OutputTensors": [2, 1, 3], "Axis": 2}, (2, 1, 3)),
        ("qnn.Split", (1, 7), {"split_index": [3, 5], "axis": 1}, (3, 2, 2)),
        ("ncnn.Slice", (8,), {"slices": [-233, -233, -233]}, (2, 3, 3)),
        ("ncnn.Slice", (9,), {"slices": [2, -233, -233]}, (2, 3, 4)),
        ("ncnn.Slice", (9,), {"slices": [2, 3, -233]}, (2, 3, 4)),
        ("mnn.Slice", (30,), {"slicePoints": [4, -1, 11]}, (4, 15, 11)),
        ("tosa.SLICE", (7,), {"size": [3, 4], "axis": 0}, (3, 4)),
        ("stablehlo.slice", (7,), {"limit_indices": [3, 5, 7], "axis": 0}, (3, 2, 2)),
        ("onednn.submemory_desc", (7, 2), {"dims": [3, 4], "axis": 0}, (3, 4)),
        ("numpy.split", (7,), {"indices_or_sections": []}, (7,)),
        ("torch.split", (0,), {"split_size_or_sections": 0}, (0,)),
    ],
)
def test_the_lengths_of_a_dialect(
    name: DialectName, shape: tuple[int, ...], operands: dict[str, Any], sizes: tuple[int, ...]
) -> None:
    assert ts.plan(name, shape, **operands).sizes == sizes


@pytest.mark.parametrize(
    ("code", "name", "shape", "operands"),
    [
        ("TS303", "tensorflow.split", (7,), {"num_or_size_splits": 3}),
        ("TS303", "mnn.Slice", (7,), {"slicePoints": 3}),
        ("TS301", "webnn.split", (6,), {"splits": [6, 0]}),
        ("TS301", "directml.SPLIT", (6,), {"OutputTensors": [0, 6], "Axis": 0}),
        ("TS301", "ncnn.Slice", (2,), {"slices": [-233, -233, -233]}),
        ("TS301", "ncnn.Slice", (7,), {"slices": [-1, 8]}),
        ("TS302", "ncnn.Slice", (7,), {"slices": [2, 2]}),
        ("TS302", "stablehlo.slice", (7,), {"limit_indices": [3, 5], "axis": 0}),
        ("TS301", "stablehlo.slice", (7,), {"limit_indices": [5, 3, 7], "axis": 0}),
        ("TS301", "qnn.Split", (7,), {"split_index": [3, 9]}),
        ("TS301", "numpy.split", (7,), {"indices_or_sections": [5, 2]}),
        ("TS301", "jax.numpy.split", (7,), {"indices_or_sections": [-2]}),
        ("TS306", "litert.split_v", (7,), {"size_splits": [-1, -1], "split_dim": 0}),
        ("TS307", "torch.split", (7,), {"split_size_or_sections": 0}),
        ("TS307", "torch.split", (0,), {"split_size_or_sections": -1}),
        ("TS107", "torch.chunk", (7,), {"chunks": 0}),
        ("TS104", "coreml.split", (4,), {"num_splits": 2, "split_sizes": [2, 2], "axis": 0}),
        ("TS102", "litert.split", (4,), {"num_splits": 2}),
        ("TS102", "torch.chunk", (7,), {}),
        ("TS104", "coreml.split", (4,), {"axis": 0}),
        ("TS203", "webnn.split", (6, 6), {"splits": 2, "axis": -1}),
        ("TS203", "directml.SPLIT", (6,), {"OutputTensors": [6], "Axis": -1}),
    ],
)
def test_a_dialect_refuses(
    code: str, name: DialectName, shape: tuple[int, ...], operands: dict[str, Any]
) -> None:
    with refused(code, name):
        ts.plan(name, shape, **operands)


def inferred(name: DialectName, **operands: Any) -> Any:
    """The shapes of parts of a dimension that is a name."""
    return ts.infer(name, ("N",), **operands)


def test_a_dimension_that_is_a_name() -> None:
    first, second = inferred("numpy.array_split", indices_or_sections=2)
    for dim in range(9):
        values = [int(shape[0].evaluate({"N": dim})) for shape in (first, second)]
        assert values == [dim - dim // 2, dim // 2]
    sequence = inferred("torch.chunk", chunks=3)
    assert isinstance(sequence, ts.SequenceShape)
    assert sequence.count is None
    starts = inferred("numpy.split", indices_or_sections=[9])
    assert starts == [(None,), (None,)]  # it may be shorter than 9
    strict = inferred("jax.numpy.split", indices_or_sections=[2])
    assert [str(shape[0]) for shape in strict] == ["2", "N - 2"]


@pytest.mark.parametrize(
    ("name", "needs"),
    [
        ("torch.chunk", {"chunks": "required", "dim": "default 0"}),
        ("coreml.split", {"num_splits": "optional", "split_sizes": "optional", "axis": "required"}),
    ],
)
def test_the_only_operand_that_gives_lengths_is_required(
    name: DialectName, needs: dict[str, str]
) -> None:
    given = {each.name: each.need for each in dialects[name].attributes}
    assert given == needs


def test_dialects_are_not_of_the_family() -> None:
    assert not set(dialects) & set(operators)
    assert not any(record.is_dialect for record in operators.values())
    for record in dialects.values():
        assert record.source.startswith("https://")
        assert record.id == f"{record.vendor}.{record.name}"
    with refused("TS703", "torch.chunk"):
        ts.plan("torch.chunk", (7,), opset=18)


def test_a_difference_between_a_dialect_and_an_operator() -> None:
    changes = {change.name: (change.before, change.after) for change in _changes()}
    assert changes["5 into 4"] == ("2, 2, 1", "refused")
    assert changes["dim"] == ("INT, default 0", None)
    assert "7 into 3" not in changes
    assert not {change.aspect for change in _changes()} & {"type", "fact", "output"}


def _changes() -> tuple[Any, ...]:
    return ts.diff("torch.chunk", "onnx.Split-18").changes


FROM_THE_FRONT = (
    *("directml.SPLIT", "onednn.submemory_desc", "qnn.Split"),
    *("stablehlo.slice", "tosa.SLICE", "webnn.split"),
)
"""Their axes are unsigned, or places of lists; all others count from the back below 0."""


@pytest.mark.parametrize("name", dialects)
def test_an_axis_below_0_is_counted_from_the_back_or_refused(name: str) -> None:
    assert dialects[name].axis_from_back == (name not in FROM_THE_FRONT)
    says = "refused" if name in FROM_THE_FRONT else "counts from the back"
    assert dialects[name].notes["negative axis"] == says


def outcome(split: Callable[..., Any], *given: Any) -> tuple[int, ...] | str:
    """The lengths of the parts; `refused` also where data would be lost or repeated."""
    whole = list(range(1, given[0] + 1))
    try:
        parts = [part.tolist() for part in split(*given)]
    except (ValueError, RuntimeError, ZeroDivisionError):
        return "refused"
    in_order = [item for part in parts for item in part] == whole
    return tuple(map(len, parts)) if in_order else "refused"


def ours(name: Any, operand: str, dim: int, given: Any) -> tuple[int, ...] | str:
    try:
        sizes: tuple[int, ...] = ts.plan(name, (dim,), **{operand: given}).sizes
    except ts.SplitError:
        return "refused"
    return sizes


LISTS = [list(each) for count in range(4) for each in product((-1, 0, 1, 2, 3, 5), repeat=count)]
NUMBERS = [*range(-1, 9)]


@pytest.mark.parametrize("function", ["split", "array_split"])
@pytest.mark.parametrize("dim", range(7))
def test_the_lengths_are_those_of_numpy(function: str, dim: int) -> None:
    split = getattr(np, function)
    name = f"numpy.{function}"
    for given in (*NUMBERS, *LISTS):
        found = outcome(lambda dim, each: split(np.arange(1, dim + 1), each), dim, given)
        assert ours(name, "indices_or_sections", dim, given) == found, given


@pytest.mark.parametrize(
    ("function", "operand", "takes_lists"),
    [
        ("split", "split_size_or_sections", True),
        ("chunk", "chunks", False),
        ("tensor_split", "indices_or_sections", True),
    ],
)
@pytest.mark.parametrize("dim", range(7))
def test_the_lengths_are_those_of_torch(
    function: str, operand: str, takes_lists: bool, dim: int
) -> None:
    torch = pytest.importorskip("torch")
    split = getattr(torch, function)
    for given in (*NUMBERS, *(LISTS if takes_lists else ())):
        found = outcome(lambda dim, each: split(torch.arange(1, dim + 1), each), dim, given)
        found = found or "refused"  # no parts at all are no split here
        assert ours(f"torch.{function}", operand, dim, given) == found, given


SEVERAL = sorted({name for record in operators.values() for name in record.operands})


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("version", operators)
def test_an_operand_is_of_the_kind_that_the_version_has(version: str, name: str) -> None:
    record = operators[version]
    kinds = {
        "attribute": {each.name for each in record.attributes},
        "input": {each.name for each in record.inputs},
    }
    for kind, names in kinds.items():
        operand = Operand(None, None, None, kind)
        if name in names:
            check_operand(record, name, kind, operand)
            continue
        other = next((each for each in kinds if name in kinds[each]), None)
        with pytest.raises(ts.SplitError) as caught:
            check_operand(record, name, kind, operand)
        assert caught.value.code == "TS103"
        assert (caught.value.fix == f"give it as {other}") is (other is not None)
        if other is None:  # then it is said which versions of this operator have it
            for each in operators.values():
                has_it = bool(each.attribute(name) or each.input(name))
                is_alike = (each.vendor, each.name) == (record.vendor, record.name)
                assert (f"{each.id} (" in caught.value.fix) is (has_it and is_alike)
