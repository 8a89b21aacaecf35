"""``python -m tests.fuzz.loops``: random Loops and Scans that OpenVINO runs in shared memory.

Their bodies calculate by elements, in views, in parts and in what they join, from what they carry,
rows, and tensors from around. Each is run by ONNX Runtime, by us, and by OpenVINO before and after
it is lowered. It fails if OpenVINO gives something else than ONNX Runtime where `check` found
nothing, if it does so after lowering, or if we do.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import tensorsplit as ts
from tests.model.openvino_ir.engine import run_all_in_openvino

SHAPE = [2, 3, 6]
ROUNDS = 4
BATCH = 25
"""So many models are run by one process of OpenVINO."""

TOLERANCE = 2e-3
MOST = 1e4
"""What gives larger numbers says nothing: a difference of rounding may grow."""

LISTS = {"last": [-1], "none": [0], "half": [3], "all": [6], "flat": [2, 18], "back": SHAPE}
LENGTHS = {"halves": [3, 3], "parts": [2, 4], "each": [1, 1, 1]}
SCALE = np.linspace(0.5, 1.5, SHAPE[-1], dtype=np.float32)
CONSTANTS: dict[str, Any] = LISTS | LENGTHS | {"rounds": ROUNDS, "scale": SCALE}
CONSTANTS["epsilon"] = np.float32(1e-3)


class Case(NamedTuple):
    """A model, what is fed to it, and what it gives."""

    model: onnx.ModelProto
    feeds: dict[str, Any]
    wanted: list[Any]


class Body:
    """The nodes of a body, and the tensors of one shape that they read and give."""

    def __init__(self, random: Random, given: Sequence[str], around: Sequence[str]) -> None:
        self.random, self.nodes = random, list[onnx.NodeProto]()
        self.pool, self.made = [*around, *given], list[str]()
        steps = [self._one, self._one, self._two, self._two, self._softmax, self._norm, self._row]
        steps += [self._turned, self._rotated, self._joined, self._view, self._view, self._gated]
        for _ in range(random.randint(2, 6)):
            step, data, before = (
                random.choice([*steps, self._slices]),
                self.take(),
                random.getstate(),
            )
            self.made.append(step(data))
            if random.random() < 0.2:  # the same nodes again, which engines make one of
                random.setstate(before)
                self.made.append(step(data))
            self.pool += [name for name in self.made if name not in self.pool]

    def op(self, op_type: str, inputs: Sequence[str], count: int = 1, **attributes: Any) -> Any:
        """Add a node; return its output, or the list of them."""
        outputs = [f"v{len(self.nodes)}_{k}" for k in range(count)]
        self.nodes.append(helper.make_node(op_type, inputs, outputs, **attributes))
        return outputs[0] if count == 1 else outputs

    def take(self) -> str:
        """Return a tensor; those made last are likely."""
        return self.random.choice(self.pool[-6:] if self.random.random() < 0.7 else self.pool)

    def any_of(self, *names: str) -> str:
        return self.random.choice(names)

    def _one(self, x: str) -> str:
        return str(self.op(self.any_of("Relu", "Neg", "Exp", "Abs", "Tanh", "Identity"), [x]))

    def _two(self, x: str) -> str:
        return str(self.op(self.any_of("Add", "Mul", "Sub", "Max"), [x, self.take()]))

    def _row(self, x: str) -> str:
        whole = self.random.random() < 0.5
        if whole:
            return str(self.op("LayerNormalization", [x, "scale"], axis=-1))
        return str(self.op("Softmax", [x], axis=self.random.choice([-1, 1, 0])))

    def _softmax(self, x: str) -> str:
        powers = self.op("Exp", [self.op("Sub", [x, self.op("ReduceMax", [x, "last"])])])
        return str(self.op("Div", [powers, self.op("ReduceSum", [powers, "last"])]))

    def _norm(self, x: str) -> str:
        spread = self.op("Sub", [x, self.op("ReduceMean", [x, "last"])])
        square = self.op("ReduceMean", [self.op("Mul", [spread, spread]), "last"])
        root = self.op("Sqrt", [self.op("Add", [square, "epsilon"])])
        return str(self.op("Mul", [self.op("Div", [spread, root]), "scale"]))

    def _turned(self, x: str) -> str:
        lengths, axis = self.random.choice([("halves", 2), ("parts", 2), ("each", 1)])
        parts = self.op("Split", [x, lengths], len(LENGTHS[lengths]), axis=axis)
        if self.random.random() < 0.2:  # in order: engines take the two nodes out
            return str(self.op("Concat", parts, axis=axis))
        return str(self.op("Concat", self.random.sample(parts, len(parts)), axis=axis))

    def _rotated(self, x: str) -> str:
        first, second = self.op("Split", [x, "halves"], 2, axis=2)
        turned = self.op("Concat", [self.op("Neg", [second]), first], axis=2)
        kept = self.op("Mul", [x, self.take()])
        return str(self.op("Add", [kept, self.op("Mul", [turned, self.take()])]))

    def _slices(self, x: str) -> str:
        first = self.op("Slice", [x, "none", "half", "last"])
        second = self.op("Slice", [x, "half", "all", "last"])
        return str(self.op("Concat", [second, first], axis=-1))

    def _joined(self, x: str) -> str:
        whole = self.op("Concat", [x, self.take()], axis=0)
        changed = self.op(self.any_of("Neg", "Softmax", "Exp", "Identity"), [whole])
        return str(self.random.choice(self.op("Split", [changed], 2, axis=0, num_outputs=2)))

    def _view(self, x: str) -> str:
        changed = self.any_of("Neg", "Softmax", "Exp", "Relu")
        if self.random.random() < 0.4:
            turned = self.op(changed, [self.op("Transpose", [x], perm=[0, 2, 1])])
            return str(self.op("Transpose", [turned], perm=[0, 2, 1]))
        flat = self.op(changed, [self.op("Reshape", [x, "flat"])])
        return str(self.op("Reshape", [flat, "back"]))

    def _gated(self, x: str) -> str:
        return str(self.op("Mul", [x, self.op("Sigmoid", [x])]))

    def ends(self) -> list[str]:
        """Return two states and a row that the body gives, each another value of its own."""
        first, row = self.random.choice(self.made), self.random.choice([*self.made, self.made[-1]])
        second = self.random.choice([*self.made, "s", "t"])
        if self.random.random() < 0.5:
            first = self.op("Tanh", [first])
        found = list[str]()
        for name in (first, second, row):
            is_own = name in self.made and name not in found
            found.append(name if is_own else self.op("Identity", [name]))
        return found


def random_loop(seed: int) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Make a model of one Loop or Scan, and what is fed to it."""
    random = Random(seed)
    is_scan = random.random() < 0.35
    around = [] if is_scan else ["x", "w"]  # OpenVINO reads no Scan that captures anything
    body = Body(random, ["s", "t", *["row"] * is_scan], around)
    carried, outputs = body.ends(), ["first", "second", "rows"]
    given, made = ([_float(name) for name in names] for names in (["s", "t"], carried))
    if is_scan:
        node = _scan(body, [*given, _float("row")], made, outputs)
    else:
        node = _loop(body, given, made, outputs)
    inputs = [_float("x"), _float("y"), _float("w", [ROUNDS, *SHAPE] if is_scan else SHAPE)]
    graph = helper.make_graph(
        [node],
        "loops",
        inputs,
        [_float("first"), _float("second"), _float("rows", [None, *SHAPE])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in CONSTANTS.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    numbers = np.random.default_rng(seed)
    shapes = {
        each.name: [dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in inputs
    }
    return model, {
        name: numbers.uniform(-1, 1, shape).astype(np.float32) for name, shape in shapes.items()
    }


def _float(name: str, shape: Sequence[int | None] = SHAPE) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def _scan(body: Body, given: list[Any], made: list[Any], outputs: list[str]) -> onnx.NodeProto:
    inner = helper.make_graph(body.nodes, "body", given, made)
    return helper.make_node("Scan", ["x", "y", "w"], outputs, body=inner, num_scan_inputs=1)


def _loop(body: Body, given: list[Any], made: list[Any], outputs: list[str]) -> onnx.NodeProto:
    number, go, on = (
        helper.make_tensor_value_info(name, kind, [])
        for name, kind in (
            ("i", TensorProto.INT64),
            ("go", TensorProto.BOOL),
            ("on", TensorProto.BOOL),
        )
    )
    nodes = [*body.nodes, helper.make_node("Identity", ["go"], ["on"])]
    inner = helper.make_graph(nodes, "body", [number, go, *given], [on, *made])
    return helper.make_node("Loop", ["rounds", "", "x", "y"], outputs, body=inner)


def case_of(seed: int) -> Case | None:
    """Make the case of a seed; None if its numbers are too large."""
    model, feeds = random_loop(seed)
    wanted = [*ts.run(model, feeds, engine="onnxruntime").values()]
    is_small = all(np.isfinite(each).all() and np.abs(each).max() < MOST for each in wanted)
    return Case(model, feeds, wanted) if is_small else None


def is_right(got: Sequence[Any], case: Case) -> bool:
    """Return whether a run gave what ONNX Runtime gives."""
    return all(
        one.shape == other.shape and np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE)
        for one, other in zip(got, case.wanted, strict=True)
    )


def found(model: onnx.ModelProto) -> bool:
    """Return whether `check` warns of a model."""
    return any(each.severity != "note" for each in ts.check(model, target="openvino"))


def check_batch(seeds: Sequence[int], counts: Counter[str]) -> dict[int, str]:
    """Run the models of seeds; return what fails."""
    cases = {seed: made for seed in seeds if (made := case_of(seed)) is not None}
    failed = dict[int, str]()
    with tempfile.TemporaryDirectory() as folder:
        waiting = []
        for seed, case in cases.items():
            counts["models"] += 1
            if not is_right([*ts.run(case.model, case.feeds).values()], case):
                failed[seed] = "run gives something else than ONNX Runtime"
            lowered = ts.lower(case.model, target="openvino")
            if found(lowered) or ts.lower(lowered, target="openvino") != lowered:
                failed[seed] = "the lowered model is not known again"
            for kind, model in (("as it is", case.model), ("lowered", lowered)):
                path = Path(folder, f"{seed}-{kind[:3]}.onnx")
                onnx.save(model, path)
                waiting.append((seed, kind, path, model))
        runs = [(path, [_in_order(model, cases[seed])]) for seed, _, path, model in waiting]
        for (seed, kind, _, model), ((got,),) in zip(
            waiting, ((each,) for each in run_all_in_openvino(runs)), strict=True
        ):
            good = not isinstance(got, str) and is_right(got, cases[seed])
            is_found = kind == "as it is" and found(model)
            counts[f"{kind}: {'right' if good else 'wrong'}{', with a warning' * is_found}"] += 1
            if not good and not is_found:
                failed[seed] = (
                    f"OpenVINO gives something else for the model {kind}, and check is silent"
                )
    return failed


def _in_order(model: onnx.ModelProto, case: Case) -> list[Any]:
    """Return what is fed, in the order of the inputs that OpenVINO keeps: those that are read."""
    (node,) = [each for each in model.graph.node if each.op_type in ("Loop", "Scan")]
    (inner,) = [each.g for each in node.attribute if each.name == "body"]
    read = {*node.input, *(name for each in inner.node for name in each.input)}
    return [case.feeds[each.name] for each in model.graph.input if each.name in read]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.loops", description=__doc__)
    parser.add_argument("--models", type=int, default=300, help="how many")
    parser.add_argument("--seed", type=int, help="the first seed; by default a new one")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long")
    options = parser.parse_args(arguments)
    first = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    print(f"random loops from --seed {first}", flush=True)
    warnings.simplefilter("ignore")
    started, counts, failed = time.monotonic(), Counter[str](), dict[int, str]()
    for start in range(first, first + options.models, BATCH):
        if time.monotonic() - started > options.seconds:
            break
        found_here = check_batch(range(start, min(start + BATCH, first + options.models)), counts)
        for seed, why in found_here.items():
            print(f"seed {seed}: {why}", flush=True)
        failed |= found_here
    print(f"{counts['models']} models in {time.monotonic() - started:.0f} s, {len(failed)} failed")
    print(", ".join(f"{name}: {count}" for name, count in sorted(counts.items())))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
