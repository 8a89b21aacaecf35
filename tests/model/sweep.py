"""``python -m tests.model.sweep``: random nodes of every operator, inferred, checked and run.

What is inferred has to be what a run gives, for two choices of the dimensions with names, and our
engine has to give what onnxruntime gives. Where onnxruntime departs from the text of an operator
(`docs/errata.md`), our engine's result is what counts. What is wrong is printed.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

import tensorsplit as ts
from tensorsplit.model.infer.analysis import analyse
from tests.model.element_cases import sample_chain
from tests.model.operator_cases import CASES, Case, sample

Results = Mapping[str, Any]


def by_onnxruntime(case: Case, model: onnx.ModelProto) -> list[Results | None]:
    """What it gives for each choice of the names; None where it refuses."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    names = case.outputs()
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - no kernel, or not legal; errors have many types
        return [None] * len(case.bindings())

    def run(binding: Mapping[str, int]) -> Results | None:
        try:
            return dict(zip(names, session.run(names, case.feeds(binding)), strict=True))
        except Exception:  # noqa: BLE001 - as above
            return None

    return list(map(run, case.bindings()))


def by_us(case: Case, model: onnx.ModelProto) -> list[Results | ts.SplitError]:
    """What our engine gives; a refusal where it refuses."""

    def run(binding: Mapping[str, int]) -> Results | ts.SplitError:
        try:
            return ts.run(model, case.feeds(binding))
        except ts.SplitError as error:
            return error

    return list(map(run, case.bindings()))


def problems(case: Case, seen: Counter[str]) -> Iterator[str]:
    """Everything that is wrong with a case; counts what was compared with what."""
    model = case.model()
    ours, theirs = by_us(case, model), by_onnxruntime(case, model)
    counts: list[tuple[dict[str, int], Results]] = []
    for binding, mine, other in zip(case.bindings(), ours, theirs, strict=True):
        if other is not None and not departs(case, binding):
            seen["compared"] += 1
            counts.append((binding, other))
            if isinstance(mine, ts.SplitError):
                if mine.code != "TS509":  # there is no implementation, and it says so
                    yield f"run refuses: {mine}"
                continue
            for name in case.outputs():
                yield from differences(name, mine[name], other[name])
        elif not isinstance(mine, ts.SplitError):
            seen["ours alone"] += 1
            counts.append((binding, mine))
    if counts:
        yield from wrong_findings(model)
        yield from wrong_facts(case, model, counts)


def differences(name: str, mine: Any, other: Any) -> Iterator[str]:
    """What two engines disagree about."""
    if not isinstance(mine, np.ndarray) or mine.shape != other.shape:
        yield f"run: {name} has shape {getattr(mine, 'shape', None)}, not {other.shape}"
    elif other.dtype == object:
        if mine.tolist() != other.tolist():
            yield f"run: {name} is {mine.tolist()}, not {other.tolist()}"
    elif mine.dtype != other.dtype:
        yield f"run: {name} has type {mine.dtype}, not {other.dtype}"
    elif not np.allclose(mine, other, rtol=1e-3, atol=1e-4, equal_nan=True):
        yield f"run: {name} is {mine.ravel()[:9]}, not {other.ravel()[:9]}"


def wrong_findings(model: onnx.ModelProto) -> Iterator[str]:
    for finding in ts.check(model):
        if finding.severity == "error":
            yield f"check: {finding.message}"


def wrong_facts(
    case: Case, model: onnx.ModelProto, counts: list[tuple[dict[str, int], Results]]
) -> Iterator[str]:
    """What is inferred and not so: types, ranks, dimensions and elements."""
    read = ir.serde.deserialize_model(model)
    facts = analyse(read)
    values = {v.name: facts.tensor(v) for node in read.graph for v in node.outputs}
    inferred = ts.infer_shapes(model)
    assert isinstance(inferred, onnx.ModelProto)
    written = {entry.name: entry.type for entry in inferred.graph.output}
    for binding, results in counts:
        names = {name: size for name, size in binding.items() if case.declared[name] == "name"}
        for name in case.outputs():
            known, got = values[name], results[name]
            if got is None:
                continue
            kind = written[name].tensor_type.elem_type
            dtype = helper_dtype(kind)
            if dtype is not None and dtype != got.dtype and got.dtype.kind not in "OU":
                yield f"infer: {name} has type {dtype}, not {got.dtype}"
            for what, said, right in (
                ("shape", known.shape, got.shape),
                ("elements", known.values, tuple(got.ravel().tolist())),
            ):
                if said is not None and not holds(said, right, names):
                    yield f"infer: {name} has {what} {said}, not {right} for {names}"


def helper_dtype(kind: int) -> Any:
    return onnx.helper.tensor_dtype_to_np_dtype(kind) if kind else None


def holds(said: tuple[Any, ...], right: tuple[Any, ...], names: Mapping[str, int]) -> bool:
    """Whether dimensions or elements are these numbers, as far as they are known."""
    if len(said) != len(right):
        return False
    found = [value_of(each, names) for each in said]
    return all(a is None or np.isclose(a, b) for a, b in zip(found, right, strict=True))


def value_of(dim: Any, names: Mapping[str, int]) -> Any:
    """The number that an expression is; None if that is not known."""
    if dim is None or isinstance(dim, (int, float)):
        return dim
    if isinstance(dim, str):
        return names.get(dim)
    expression: Any = dim._expr if isinstance(dim, ir.SymbolicDim) else dim
    symbols = expression.free_symbols
    if not {symbol.name for symbol in symbols} <= names.keys():
        return None
    return float(expression.subs({symbol: names[symbol.name] for symbol in symbols}))


def departs(case: Case, binding: Mapping[str, int]) -> bool:
    """Whether onnxruntime does not follow the text of a node's operator."""
    return any(
        node.op_type in operators and rule(Given(case, node, binding))
        for node in case.nodes
        for operators, rule in DEPARTURES
    )


class Given:
    """A node with what goes into it."""

    def __init__(self, case: Case, node: onnx.NodeProto, binding: Mapping[str, int]) -> None:
        self.case, self.node, self.binding = case, node, binding

    def attribute(self, name: str, default: Any = None) -> Any:
        for entry in self.node.attribute:
            if entry.name == name:
                value = onnx.helper.get_attribute_value(entry)
                return value.decode() if isinstance(value, bytes) else value
        return default

    def shape(self, index: int) -> list[int]:
        operand = self.case.inputs.get(self.node.input[index])
        if operand is None:  # what another node gives
            return []
        return [self.binding[dim] if isinstance(dim, str) else dim for dim in operand.shape]

    def elements(self, index: int) -> tuple[Any, ...]:
        name = self.node.input[index] if index < len(self.node.input) else ""
        operand = self.case.inputs.get(name)
        return (operand.elements or ()) if operand is not None else ()

    @property
    def is_same(self) -> bool:
        return str(self.attribute("auto_pad", "NOTSET")).startswith("SAME")


def _far_backwards(given: Given) -> bool:
    ends, steps = given.elements(2), given.elements(4)
    limit = (1 << 31) - 1
    return any(
        step < 0 and (isinstance(end, str) or end >= limit)
        for end, step in zip(ends, steps, strict=False)
    )


def _forgets_padding(given: Given) -> bool:
    is_dilated = {*given.attribute("dilations", ())} - {1}
    return given.is_same and bool(is_dilated)


def _goes_beyond(given: Given) -> bool:
    """A last window that may start beyond the data, or that VALID does not have."""
    beyond = given.case.opset < 22 or given.attribute("auto_pad", "NOTSET") == "VALID"
    return bool(given.attribute("ceil_mode", 0)) and beyond


def _has_short_kernel(given: Given) -> bool:
    count = len(given.shape(1)) - 2
    dilations = given.attribute("dilations", [1] * count)
    reaches = [(k - 1) * by + 1 for k, by in zip(given.shape(1)[2:], dilations, strict=True)]
    pairs = zip(reaches, given.attribute("strides", [1] * count), strict=True)
    return given.is_same and any(reach < stride for reach, stride in pairs)


_POOLS = ("AveragePool", "LpPool", "MaxPool")
DEPARTURES: tuple[tuple[tuple[str, ...], Callable[[Given], bool]], ...] = (
    (("Slice",), _far_backwards),
    (_POOLS, _forgets_padding),
    (_POOLS, _goes_beyond),
    (("ConvTranspose",), _has_short_kernel),
    # of nothing, no rest follows: any number times 0 is 0
    (("Reshape",), lambda given: 0 in given.shape(0) and -1 in given.elements(1)),
    (("MeanVarianceNormalization",), lambda given: True),
    # cubic interpolation beyond the border: the text does not say how
    (("GridSample",), lambda given: "cubic" in str(given.attribute("mode", ""))),
    # the text divides 0 by 0 where one element is left
    (("Resize",), lambda g: g.attribute("coordinate_transformation_mode") == "align_corners"),
    (("Resize",), lambda g: g.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"),
)
"""Where onnxruntime departs from the text, or the text leaves it open."""


def sweep(operators: list[str], first: int, cases: int, chains: int) -> list[str]:
    """Run the cases of some seeds; returns what is wrong, and that an operator never ran."""
    onnxruntime.set_default_logger_severity(4)
    warnings.simplefilter("ignore")
    found: list[str] = []
    for op_type in operators:
        seen: Counter[str] = Counter()
        for seed in range(first, first + cases):
            case = sample(op_type, seed)
            title = f"{op_type} at opset {case.opset}, seed {seed}"
            found += [f"{title}: {problem}" for problem in problems(case, seen)]
        if not seen:
            found.append(f"{op_type} never ran")
    for seed in range(first, first + chains):
        case = sample_chain(seed)
        found += [f"chain, seed {seed}: {problem}" for problem in problems(case, Counter())]
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("operators", nargs="*", default=sorted(CASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--chains", type=int, default=1000)
    given = parser.parse_args()
    found = sweep(given.operators or sorted(CASES), given.seed, given.cases, given.chains)
    print(*found, sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
