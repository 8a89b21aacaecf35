"""``python -m tests.model.node_sweep``: onnx's node tests in other forms, run by the engines.

Each test is run as it is, with open dimensions, with constants, in a loop that declares no ranks,
and with its defaults left out and written. Printed is where an engine gives something else than the
test expects, or refuses it, and `check` says nothing; and where `check` finds an error and it runs.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

import tensorsplit as ts
from tensorsplit.engines.process import EngineProcess
from tensorsplit.model.check.checks import TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG
from tensorsplit.model.profiles import TargetName
from tests.model.build import INT64, node_tests, value
from tests.model.test_node_tests import check_similar, feeds

ROUNDS = 2
"""So many rounds a loop has: engines write the body of one round in its place."""

SECONDS = 30.0
"""What a model may take before it counts as one that hangs."""

PER_PROCESS = 70
"""A process runs so many models: what one of them did to its memory does not last."""

_OF_TARGET = {each.code for each in (TARGET_DEPENDS, TARGET_REFUSES, TARGET_WRONG)}


class Engine(NamedTuple):
    """A way to run a model, and the target that `check` knows it by."""

    target: TargetName
    adapter: str
    is_default: bool = True


ENGINES: Mapping[str, Engine] = {
    "openvino": Engine("openvino", "tensorsplit.engines.adapters:run_openvino"),
    "onnxruntime": Engine("onnxruntime", "tensorsplit.engines.adapters:run_onnxruntime"),
    "unoptimized": Engine("onnxruntime", "tests.engines.guarded:run_unoptimized", False),
}
"""OpenVINO, and ONNX Runtime as users run it and without its optimisations."""


@dataclass(frozen=True)
class Form:
    """A node test in some form: the model, what is fed, and what it gives.

    In a loop each result is one of two rows, which are the same.
    """

    name: str
    case: Any
    model: onnx.ModelProto
    fed: Mapping[str, Any]
    expected: list[Any]
    is_in_loop: bool = False


def copy_of(case: Any) -> onnx.ModelProto:
    """The model of a case, to change; what it gives has no shape, as an engine may believe it."""
    made = onnx.ModelProto()
    made.CopyFrom(case.model)
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    return made


def data_of(case: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """What is fed to a case, by name, and what it gives."""
    for inputs, expected in feeds(case):
        yield (
            {each.name: x for each, x in zip(case.model.graph.input, inputs, strict=False)},
            expected,
        )


def open_dimensions(made: onnx.ModelProto) -> onnx.ModelProto:
    """Take the lengths, and the names, of all dimensions of a model's inputs away."""
    for entry in made.graph.input:
        for dim in entry.type.tensor_type.shape.dim:
            dim.Clear()
    return made


def as_it_is(case: Any) -> Iterator[Form]:
    for fed, expected in data_of(case):
        yield Form("as it is", case, case.model, fed, expected)


def opened(case: Any) -> Iterator[Form]:
    for fed, expected in data_of(case):
        yield Form("open", case, open_dimensions(copy_of(case)), fed, expected)


def constants(case: Any, *, is_open: bool = False) -> Iterator[Form]:
    """Each operand in turn as an initializer, the rest fed."""
    for fed, expected in data_of(case):
        for name in fed if len(fed) > 1 else ():
            made = copy_of(case)
            rest = [each for each in made.graph.input if each.name != name]
            del made.graph.input[:]
            made.graph.input.extend(rest)
            made.graph.initializer.append(numpy_helper.from_array(fed[name], name))
            others = {each: fed[each] for each in fed if each != name}
            title = f"{name} constant" + is_open * ", the rest open"
            yield Form(title, case, open_dimensions(made) if is_open else made, others, expected)


def carried(case: Any) -> Iterator[Form]:
    """Each operand in turn carried through a loop that declares no rank of it, in which all is."""
    for fed, expected in data_of(case):
        for name in fed:
            made = copy_of(case)
            graph = made.graph
            entry = next(each for each in graph.input if each.name == name)
            kind = entry.type.tensor_type.elem_type
            going, inside = value("going", onnx.TensorProto.BOOL, []), value(name, kind)
            body = helper.make_graph(
                [*graph.node, helper.make_node("Identity", ["going"], ["goes_on"]),
                 helper.make_node("Identity", [name], ["again"])],
                "body",
                [value("round", INT64, []), going, inside],
                [value("goes_on", onnx.TensorProto.BOOL, []), value("again", kind), *graph.output],
            )  # fmt: skip
            entry.name = f"outer_{name}"
            rows = [f"rows_{each.name}" for each in graph.output]
            loop = helper.make_node("Loop", ["rounds", "", entry.name], ["last", *rows], body=body)
            kinds = [each.type.tensor_type.elem_type for each in graph.output]
            del graph.node[:], graph.output[:]
            graph.node.append(loop)
            graph.output.extend(map(value, rows, kinds))
            graph.initializer.append(helper.make_tensor("rounds", INT64, [], [ROUNDS]))
            others = {entry.name if each == name else each: x for each, x in fed.items()}
            yield Form(f"{name} carried", case, made, others, expected, is_in_loop=True)


def with_defaults(case: Any, *, are_written: bool) -> Iterator[Form]:
    """All attributes that have the value of their default left out, or all such written."""
    made = copy_of(case)
    versions = {each.domain: each.version for each in made.opset_import}
    for node in made.graph.node:
        if not defs.has(node.op_type, node.domain):
            return
        schema = defs.get_schema(node.op_type, versions[node.domain], node.domain)
        given = {each.name: each for each in node.attribute}
        usual = {
            name: each.default_value
            for name, each in schema.attributes.items()
            if each.default_value.name
        }
        kept = [each for name, each in given.items() if each != usual.get(name)]
        del node.attribute[:]
        node.attribute.extend(kept)
        if are_written:
            names = {each.name for each in kept}
            node.attribute.extend(each for name, each in usual.items() if name not in names)
    if made.graph.node != case.model.graph.node:
        for fed, expected in data_of(case):
            yield Form(
                f"defaults {'written' if are_written else 'left out'}", case, made, fed, expected
            )


WAYS: Mapping[str, Callable[[Any], Iterable[Form]]] = {
    "as-it-is": as_it_is,
    "open": opened,
    "constants": constants,
    "open-constants": lambda case: constants(case, is_open=True),
    "carried": carried,
    "left-out": lambda case: with_defaults(case, are_written=False),
    "written": lambda case: with_defaults(case, are_written=True),
}
"""The forms that a test is run in."""


class Sweep:
    """Runs forms of node tests in an engine, in a process that is renewed now and then."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self._count = engine, 0
        self._process = EngineProcess(engine.target, engine.adapter)

    def result(self, form: Form) -> tuple[str, str]:
        """Whether an engine gives what is expected, and what it says or gives otherwise."""
        self._count += 1
        if self._count % PER_PROCESS == 0:
            self._process.close()
        names = [each.name for each in form.model.graph.output]
        request = [form.model.SerializeToString(), b"", dict(form.fed), names]
        reply = self._process.ask(request, SECONDS)
        if reply.death is not None:
            return "crashed", str(reply.death)
        if reply.words is not None:
            return "refused", reply.words
        got = [reply.result[name] for name in names]
        try:
            for rows in zip(*got, strict=True) if form.is_in_loop else [got]:
                given = [each if isinstance(each, list) else np.asarray(each) for each in rows]
                check_similar(_tolerant(form.case), given, form.expected)
        except (AssertionError, IndexError) as error:
            return "wrong", str(error)
        return "equal", ""

    def close(self) -> None:
        self._process.close()

    def judged(self, form: Form) -> tuple[str, str]:
        """What an engine gives, beside what `check` says of it: the kind, and the details."""
        result, detail = self.result(form)
        found = ts.check(form.model, target=self.engine.target)
        said = {each.message: each.severity for each in found if each.code in _OF_TARGET}
        if result == "equal" and self.engine.is_default and "error" in said.values():
            result = "false error"
        elif result != "equal":
            result += ", reported" if said else ", silent"
        return result, " | ".join([" ".join(detail.split())[:300], *said])


ROUNDED: Mapping[str, float] = {
    "test_attention.*bf16": 2**-5,
    "test_attention.*fp16": 2**-8,
    "test_(dft|stft)": 2**-9,
}
"""Patterns of tests that round several times to few bits, or whose sums are 0, and how far."""


def _tolerant(case: Any) -> Any:
    """A case, with room for several roundings of bfloat16, and of sums that are 0."""
    least = max((room for each, room in ROUNDED.items() if re.match(each, case.name)), default=0)
    return replace(case, rtol=max(case.rtol, least), atol=max(case.atol, least / 8))


def legal_tests(names: str) -> list[Any]:
    """The node tests that engines can be compared on: of tensors, and not of random numbers."""
    return [
        case
        for case in node_tests()
        if re.search(names, case.name)
        and not re.match("test_(bernoulli|training_dropout)", case.name)
        and all(
            each.type.HasField("tensor_type")
            for each in (*case.model.graph.input, *case.model.graph.output)
        )
    ]


KNOWN: Mapping[str, str] = {
    "resize_downsample_scales_[a-z]+_align_corners": "engines take the whole length of the result",
    "openvino, test_nonmaxsuppression_iou_threshold_boundary": "an overlap of exactly the limit",
    "openvino, test_reduce_(max|min)_empty_set": "the largest and lowest float of nothing",
    "onnxruntime, test_reduce_(max|min)_empty_set_bool": "no kernel of bool without elements",
    "onnxruntime, test_attention.*qk_matmul": "the lowest float, of keys that are masked",
}
"""What is silent as `docs/errata.md` says: patterns of the lines that are not printed, and why."""


def sweep(
    engine: str, ways: Iterable[str], names: str = "", *, shows_all: bool = False
) -> Iterator[str]:
    """Run tests in some forms; yields a line for each that is silent or a false error."""
    seen, runs = Counter[str](), Sweep(ENGINES[engine])
    for case in legal_tests(names):
        for form in (form for way in ways for form in WAYS[way](case)):
            kind, detail = runs.judged(form)
            seen[kind] += 1
            line = f"{kind}: {engine}, {case.name}, {form.name}: {detail}"
            is_bad = kind.endswith("silent") or kind == "false error"
            if shows_all or (is_bad and not any(re.search(each, line) for each in KNOWN)):
                yield line
    runs.close()
    print(engine, *(f"{kind} {count}" for kind, count in sorted(seen.items())), sep=", ")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="?", default="", help="a pattern of names of tests")
    parser.add_argument("--engine", action="append", choices=ENGINES)
    parser.add_argument("--way", action="append", choices=WAYS)
    parser.add_argument("--all", action="store_true", help="print what is equal or reported, too")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    count = 0
    for engine in given.engine or ENGINES:
        for line in sweep(engine, given.way or WAYS, given.names, shows_all=given.all):
            print(line, flush=True)
            count += 1
    return int(bool(count))


if __name__ == "__main__":
    raise SystemExit(main())
