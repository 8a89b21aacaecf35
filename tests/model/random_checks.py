"""What holds of every legal model, whatever tool it goes through.

A `Case` is a model with data that is legal and what it gives, and data that it must refuse. Each
check raises `Wrong`, or lets through whatever else a tool raises.
"""

from __future__ import annotations

import faulthandler
import io
import math
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import onnx

import tensorsplit as ts
from tensorsplit import SplitError
from tensorsplit.engines import adapters
from tests.model.build import nodes_of
from tests.model.programs import Graph, Parameter, Program, Refused, Step, declaration
from tests.model.shrinking import constant, with_sizes, without
from tests.oracle import same

TARGETS = ("onnxruntime", "openvino", "portable")
ENGINES = ("onnxruntime", "openvino")
BEFORE_CHANGES = (9, 10, 12, 17)
"""The last opsets at which Slice, sequences and Split are as they were."""

REFUSALS = {"TS101", "TS310", "TS512", "TS513"}
"""What a tool says that can't express a model; `convert` says TS201 of element types too."""
ORDERED = ("Shape", "ShapeOf", "Size", "SequenceLength")
"""The operators that may be calculated without the elements of their inputs."""


LACKING = (
    # OpenVINO's CPU plugin keeps the shape that a Loop carried first where nothing uses what
    # comes out; sequences are carried so, as one tensor that grows
    "'getShape().isCompatible(dims)' failed",
    "Memory descriptor may not be modified in StaticMemory object",
    # it takes the open dimensions of data without elements for 0 after Unsqueeze
    "must match the length of the chosen axis: 0",
    # nor does it load a Slice of constants whose bounds it can calculate, but does not fold
    "Can not create StaticMemory object. The memory desc is undefined",
    # onnxruntime's optimiser loses a value of the graph that an If on a constant reads
    "is not a graph input, initializer, or output of a previous node",
    # it loads no pool of data with 0 channels
    "(ReorderOutput) [ShapeInferenceError] invalid channel count",
    # onnxruntime's interface for types that NumPy lacks gives no sequences
    "Only OrtValues that are Tensors",
)
"""What is said where an engine lacks more than can be seen in a model without splits."""


Feeds = Mapping[str, Any]
"""What is fed, or all values that come of it, by name."""


class Wrong(Exception):  # noqa: N818 - it is the verdict
    """What a model does is not what it should do."""


class Held(Protocol):
    """What is checked: a model or an IR."""

    tolerance: float

    def contents(self) -> bytes:
        """Return what it holds, which no tool may change."""

    @property
    def outputs(self) -> Sequence[str]:
        """The names of its outputs."""


@dataclass
class Case:
    """A model; legal data with the values that it gives, and data that it must refuse."""

    model: onnx.ModelProto
    legal: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]
    illegal: Sequence[Mapping[str, Any]]
    opsets: Sequence[int]
    plain: Sequence[Case] | None = None  # see `plain_cases`
    program: Program | None = None
    is_careful: bool = False  # whether engines run in children
    is_shuffled: bool = False  # whether the nodes are in a wrong order
    tolerance: float = 0
    taken: dict[str, int] = field(default_factory=dict)
    lowered: dict[str, onnx.ModelProto | None] = field(default_factory=dict)
    converted: dict[int, onnx.ModelProto | None] = field(default_factory=dict)

    def convert(self, opset: int) -> onnx.ModelProto | None:
        """Convert the model, once to each opset; None where that is refused."""
        if opset not in self.converted:
            self.converted[opset] = unless_refused(ts.convert, self.model, opset=opset)
        return self.converted[opset]

    @cached_property
    def is_well_formed(self) -> bool:
        """Whether onnx's checker with its shape inference takes the model, its nodes in order."""
        ordered = self.model
        if self.program is not None:
            ordered = replace(self.program, shuffle=None).model()
        return is_well_formed(ordered)

    def lower(self, target: Any) -> onnx.ModelProto | None:
        """Lower the model, once for each target; None where that is refused."""
        if target not in self.lowered:
            self.lowered[target] = unless_refused(ts.lower, self.model, target=target)
        return self.lowered[target]

    def contents(self) -> bytes:
        """Return what the model holds."""
        return bytes(self.model.SerializeToString(deterministic=True))

    @property
    def outputs(self) -> list[str]:
        """The names of the model's outputs."""
        return [each.name for each in self.model.graph.output]


def data_of(program: Program) -> tuple[list[tuple[Feeds, Feeds]], list[Feeds]]:
    """Calculate what the program gives for each of its feeds, and which it must refuse."""
    legal: list[tuple[Feeds, Feeds]] = []
    illegal: list[Feeds] = []
    for feeds in program.feeds:
        try:
            legal.append((feeds, program.values(feeds)))
        except Refused as refused:
            if refused.step in live(program, program.graph, program.graph.outputs):
                illegal.append(feeds)
        except Exception:  # noqa: BLE001 - what another operator refuses is open
            continue
    return legal, illegal


def case_of(program: Program, seed: int = 0, *, is_careful: bool = False) -> Case:
    """Make the case of a program, with its data."""
    legal, illegal = data_of(program)
    random = np.random.default_rng(seed)
    opsets = [int(random.integers(7, 28)), int(random.choice(BEFORE_CHANGES))]
    return Case(
        *(program.model(), legal, illegal, opsets),
        program=program,
        is_careful=is_careful,
        is_shuffled=program.shuffle is not None,
    )


def plain_cases(program: Program, *, is_careful: bool = False) -> list[Case]:
    """Make cases that say whether an engine takes a program but for its splits and sequences.

    What these give is fed, with open dimensions and with known ones; what they take comes out. A
    split in a body has constant lengths.
    """
    program = replace(program, shuffle=None)
    graph, gone = program.graph, splitting(program)
    cut = [step for step in graph.steps if step in gone]
    ends = [name for step in cut for name in (*step.inputs, *step.outputs)]
    tensors = {name for name, value in graph.samples.items() if isinstance(value, np.ndarray)}
    copies = {name: f"{name}_copy" for name in ends if name in tensors}
    steps = [Step("Identity", [n], [c], {}, lambda v, *_: [v[0]]) for n, c in copies.items()]
    declared = {copy: declaration(copy, graph.samples[name]) for name, copy in copies.items()}
    shown = replace(
        graph,
        steps=[*graph.steps, *steps],
        outputs=[*graph.outputs, *copies.values()],
        declared={**graph.declared, **declared},
    )
    rest = without(replace(program, graph=shown), gone, partial(explicit, opset=program.opset))
    if rest is None:
        return []
    names = [n for n in rest.graph.inputs if not isinstance(graph.samples[n], list)]
    rest = replace(
        rest,
        graph=replace(rest.graph, inputs=names),
        feeds=[{name: fed[name] for name in names} for fed in rest.feeds],
    )
    fixed = with_sizes(replace(rest, feeds=rest.feeds[:1]))
    return [case_of(each, is_careful=is_careful) for each in (rest, fixed) if each is not None]


def explicit(step: Step, graph: Graph, opset: int) -> list[Step]:
    """Give a split of a body the lengths that it had once, as constants; what others gave too."""
    if step.op_type != "Split":
        values = {name: graph.samples.get(name) for name in step.outputs}
        return [constant(n, value) for n, value in values.items() if isinstance(value, np.ndarray)]
    axis = step.attributes.get("axis", 0)
    axis = axis.value if isinstance(axis, Parameter) else axis
    lengths = [graph.samples[name].shape[axis] for name in step.outputs]
    kept = {name: value for name, value in step.attributes.items() if name != "num_outputs"}
    if opset < 13:
        return [replace(step, attributes={**kept, "split": lengths})]
    name = f"{step.outputs[0]}_lengths"
    inputs = [step.inputs[0], name]
    return [constant(name, np.array(lengths)), replace(step, inputs=inputs, attributes=kept)]


def splitting(program: Program) -> set[Step]:
    """Find the steps without which a program splits nothing and has no sequences."""

    def found(graph: Graph) -> Iterable[Step]:
        lists = {name for name, value in graph.samples.items() if isinstance(value, list)}
        for step in graph.steps:
            if step.op_type == "Split" or lists.intersection((*step.inputs, *step.outputs)):
                yield step
            else:
                for body in bodies(program, step):
                    yield from found(body)

    return set(found(program.graph))


def bodies(program: Program, step: Step) -> list[Graph]:
    """Collect the bodies of a step, that of the function that it calls too."""
    called = program.functions.get(step.op_type)
    return [*step.bodies(), *([called.graph] if called else [])]


def live(program: Program, graph: Graph, wanted: Iterable[str]) -> set[Step]:
    """Find the steps whose elements the wanted outputs need; an engine may leave out the others."""
    needed, found = set(wanted), set()
    for step in reversed(graph.steps):
        places = [index for index, name in enumerate(step.outputs) if name in needed]
        if not places:
            continue
        found.add(step)
        is_closed = bool(step.domain and any(step.bodies()))  # a layer: what bodies read is listed
        if step.op_type not in ORDERED and not is_closed:
            needed.update(step.inputs)
        first = int(step.op_type == "Loop" and not step.domain)  # a condition
        for body in bodies(program, step):
            ends = [*body.outputs[:first], *(body.outputs[first + index] for index in places)]
            inner = live(program, body, ends)
            found |= inner
            read = set(ends).union(*(each.inputs for each in inner))
            if is_closed:
                own = len(step.inputs) - len(body.inputs)
                read = {a for a, b in zip(step.inputs[own:], body.inputs, strict=True) if b in read}
                read.update(step.inputs[:own])
            needed |= read
    return found


# Comparing


def is_same(got: Any, want: Any, tolerance: float = 0) -> bool:
    """Whether tensors or sequences hold the same, in every bit but the sign of a zero."""
    if isinstance(want, list):
        pairs = zip(got, want, strict=False)
        return len(got) == len(want) and all(is_same(*pair, tolerance) for pair in pairs)
    if same(got, want):
        return True
    if got.dtype != want.dtype or got.shape != want.shape:
        return False
    if tolerance and not got.dtype.hasobject:
        return np.allclose(got, want, rtol=tolerance, atol=tolerance)
    return bool((got == want).all())


def compare(got: Mapping[str, Any], values: Mapping[str, Any], case: Held) -> None:
    """Raise Wrong unless the outputs are the values."""
    for name in case.outputs:  # the rows of a loop without rounds have no known shape
        if values[name] is not None and not is_same(got[name], values[name], case.tolerance):
            raise Wrong(f"values: {name} is {show(got[name])}, not {show(values[name])}")


def as_declared(got: Any, wanted: Any) -> Any:
    """A tensor without elements in the shape that it should have.

    OpenVINO takes dimensions that are not declared for 0 there (docs/errata.md).
    """
    is_tensor = isinstance(got, np.ndarray) and isinstance(wanted, np.ndarray)
    if is_tensor and got.size == wanted.size == 0 and got.ndim == wanted.ndim:
        return got.reshape(wanted.shape)
    return got


def show(value: Any) -> str:
    """A value in a line."""
    if isinstance(value, list):
        return f"[{', '.join(map(show, value[:4]))}]"
    return f"{value.dtype}{list(value.shape)} {np.array2string(value.reshape(-1)[:6])}"


def is_refusal(error: SplitError) -> bool:
    """Whether a tool says that a model can't be expressed, and not that it failed itself."""
    return error.code in REFUSALS and "please report it" not in str(error)


def unless_refused(tool: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Use a tool; return None where it says that it can't express the model."""
    try:
        return quietly(tool, *arguments, **options)
    except SplitError as error:
        if not is_refusal(error) and (tool is not ts.convert or error.code != "TS201"):
            raise
        return None


def quietly(tool: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Use a tool without its warnings."""
    with warnings.catch_warnings(action="ignore"):
        return tool(*arguments, **options)


def is_well_formed(model: onnx.ModelProto) -> bool:
    """Whether onnx's checker with its shape inference takes a model, and need not be wrong.

    It takes a default for a constant (D20).
    """
    if {entry.name for entry in model.graph.input} & {
        each.name for each in model.graph.initializer
    }:
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


# The checks


def check_check(case: Case, model: onnx.ModelProto | None = None, target: Any = None) -> None:
    """A model that runs has no errors, if its nodes are in order."""
    findings = ts.check(model or case.model, target=target)
    errors = [str(each) for each in findings if each.severity == "error"]
    if model is None and case.is_shuffled:
        errors = [text for text in errors if "is read before it is produced; " not in text]
    if errors:
        raise Wrong(f"finding: {errors[0]}")


def check_run(case: Case, model: onnx.ModelProto | None = None) -> None:
    """Our own engine gives the values, and refuses what is illegal, if it has the operators."""
    try:
        with ts.session(model or case.model, engine="tensorsplit") as session:
            for feeds, values in case.legal:
                compare(session.run(feeds), values, case)
            for feeds in case.illegal:
                check_refused(session, feeds)
    except SplitError as error:
        if error.code != "TS509":
            raise


def check_refused(session: ts.Session, feeds: Mapping[str, Any]) -> None:
    """What is illegal is refused with a reason."""
    try:
        session.run(feeds)
    except SplitError as error:
        if "report" in str(error):
            raise
    else:
        raise Wrong(NOT_REFUSED)


def check_infer(case: Case) -> None:
    """What is inferred is so for all legal data."""
    inferred = ts.infer_shapes(case.model)
    for feeds, values in case.legal:
        names: dict[str, int] = {}
        for entry in case.model.graph.input:
            bind(entry, feeds.get(entry.name, values[entry.name]), names)
        graph = inferred.graph
        for entry in (*graph.input, *graph.output, *graph.value_info):
            if values.get(entry.name) is not None:
                check_declared(entry, values[entry.name], names)
    onnx.checker.check_model(inferred)  # without onnx's own inference, which is wrong at times
    check_check(case, inferred)
    check_run(case, inferred)


def bind(entry: onnx.ValueInfoProto, value: Any, names: dict[str, int]) -> None:
    """Note what the names of the dimensions stand for."""
    if isinstance(value, np.ndarray):
        for dim, size in zip(entry.type.tensor_type.shape.dim, value.shape, strict=True):
            if dim.dim_param:
                names[dim.dim_param] = size


FUNCTIONS = {"floor": math.floor, "ceiling": math.ceil, "Max": max, "Min": min, "Abs": abs}
FUNCTIONS |= {"max": max, "min": min, "Mod": lambda a, b: a % b}


def check_declared(entry: onnx.ValueInfoProto, value: Any, names: dict[str, int]) -> None:
    """A type, a rank and dimensions are those of a value."""
    if isinstance(value, list):
        return
    kind = entry.type.tensor_type
    if onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type) != value.dtype:
        raise Wrong(f"inferred type: {entry.name}")
    if not kind.HasField("shape"):
        return
    if len(kind.shape.dim) != value.ndim:
        raise Wrong(f"inferred rank: of {entry.name} is {len(kind.shape.dim)}, not {value.ndim}")
    for dim, size in zip(kind.shape.dim, value.shape, strict=True):
        number: Any = dim.dim_value if dim.HasField("dim_value") else None
        if dim.dim_param.isidentifier():
            number = names.setdefault(dim.dim_param, size)
        elif dim.dim_param:
            with suppress(NameError, SyntaxError):
                number = eval(dim.dim_param, {**FUNCTIONS, **names})
        if number is not None and number != size:
            shown = dim.dim_param or dim.dim_value
            raise Wrong(f"inferred dimension: of {entry.name} is {shown} = {number}, not {size}")


def check_rewritten(case: Case, made: onnx.ModelProto) -> None:
    """A rewritten model is well-formed if the original was, has no errors, and does the same."""
    if case.is_well_formed:
        onnx.checker.check_model(made, full_check=True)
    check_check(case, made)
    check_run(case, made)


def check_convert(case: Case) -> None:
    """At other opsets it does the same, where it can be expressed there."""
    for opset in case.opsets:
        made = case.convert(opset)
        if made is not None:
            check_rewritten(case, made)


def check_lower(case: Case, target: Any) -> None:
    """For a target it does the same, is what the target takes, and stays as it is."""
    made = case.lower(target)
    if made is None:
        return
    check_rewritten(case, made)
    check_check(case, made, target)
    if quietly(ts.lower, made, target=target).SerializeToString() != made.SerializeToString():
        raise Wrong("lowered twice: something changed again")
    opset = case.opsets[0]
    if case.convert(opset) is not None:
        check_run(case, quietly(ts.convert, made, opset=opset))


def check_engine(case: Case, engine: Any) -> None:
    """The engine gives the values of the lowered model, if it can run the rest without splits."""
    made = case.lower(engine)
    if made is None:
        return
    try:
        run_outside(case, made, engine)
    except Exception as error:
        if case.plain is None:
            assert case.program is not None
            case.plain = plain_cases(case.program, is_careful=case.is_careful)
        known = any(text in str(error) for text in (*LACKING, *quoted(made, engine)))
        if (
            not known
            and not is_of_the_rest(error, case.model)
            and all(can_run(plain, engine) for plain in case.plain)
        ):
            raise Wrong(f"{engine}: {error}") from error
        return
    case.taken[engine] = 1


def is_of_the_rest(error: Exception, model: onnx.ModelProto) -> bool:
    """Whether an engine lacks an operator of the model as it was; plain ones leave some out."""
    lacks = re.search(r"find an implementation for (\w+)\(", str(error))
    scopes: tuple[Any, ...] = (model.graph, *model.functions)
    used = {node.op_type for scope in scopes for node in nodes_of(scope)}
    return lacks is not None and lacks[1] in used


def quoted(model: onnx.ModelProto, engine: Any) -> Iterable[str]:
    """The messages of the engine that `check` says a model may still meet, of some data."""
    for finding in ts.check(model, target=engine):
        yield from re.findall(r': "([^"]+)"', finding.message)
        if "SIGSEGV" in finding.message:
            yield ENDED
        if "lengths that do not fit are not refused" in finding.message:  # before opset 11
            yield NOT_REFUSED


ENDED = "the process ended with signal"
NOT_REFUSED = "illegal data was not refused"
MOST_SECONDS = 60
"""Of one run in a child; an engine that takes longer is ended by SIGALRM."""


def in_a_child(function: Callable[..., None], *arguments: Any) -> None:
    """Call a function in a copy of this process, whose end by a signal raises Wrong here."""
    receiver, sender = os.pipe()
    child = os.fork()
    if not child:
        faulthandler.disable()
        signal.alarm(MOST_SECONDS)
        with suppress(Exception):
            try:
                function(*arguments)
            except Exception as error:  # noqa: BLE001 - passed on
                os.write(sender, str(error).encode()[:4000])
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        message = pipe.read().decode(errors="replace")
    _, status = os.waitpid(child, 0)
    if status or message:
        raise Wrong(message if not status else f"{ENDED} {status}")


def run_outside(case: Case, made: onnx.ModelProto, engine: Any, *, is_plain: bool = False) -> None:
    """Run a model in an engine that sees it as it is, on legal and illegal data.

    A plain one has to give tensors without elements in their shape.
    """
    if case.is_careful:
        in_a_child(
            partial(run_outside, is_plain=is_plain), replace(case, is_careful=False), made, engine
        )
        return
    load = adapters.load_openvino if engine == "openvino" else adapters.load_onnxruntime
    if engine == "openvino":  # which would keep the defaults (D20)
        made = without_defaults(made)
    with TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):  # what it raises as well
        place = Path(folder, "model.onnx")  # as users have it: OpenVINO reads bytes otherwise
        place.write_bytes(made.SerializeToString())
        run = load(str(place), b"")
    for feeds, values in case.legal:
        got = run(feeds, case.outputs)
        if engine == "openvino" and not is_plain:
            got = {name: as_declared(held, values[name]) for name, held in got.items()}
        compare(got, values, case)
    for feeds in case.illegal:
        try:
            run(feeds, case.outputs)
        except Exception:  # noqa: BLE001 - each engine has exceptions of its own
            continue
        raise Wrong(NOT_REFUSED)


def without_defaults(model: onnx.ModelProto) -> onnx.ModelProto:
    """Leave out the defaults of inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    names = {entry.name for entry in made.graph.input}
    kept = [each for each in made.graph.initializer if each.name not in names]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


def can_run(plain: Case, engine: Any) -> bool:
    """Whether an engine runs a model without splits, as declared, on all its data."""
    try:
        run_outside(plain, plain.model, engine, is_plain=True)
    except Exception:  # noqa: BLE001 - as above
        return False
    return True


def checks(
    engines: Sequence[str] = ENGINES, targets: Sequence[str] = TARGETS
) -> dict[str, Callable[[Case], None]]:
    """All checks by name; an engine only runs what is lowered for one of the targets."""
    made: dict[str, Callable[[Case], None]] = {
        "run": check_run,
        "check": check_check,
        "infer": check_infer,
        "convert": check_convert,
    }
    if "onnxruntime" in engines:
        made["values"] = check_onnxruntime
    made |= {f"lower {target}": partial(check_lower, target=target) for target in targets}
    run = (engine for engine in engines if engine in targets)
    return made | {f"run {engine}": partial(check_engine, engine=engine) for engine in run}


CHANGES_VALUES = (
    *("which has another number of parts", "is obeyed", "values below 0 become 0"),
    "rounded by the second scale alone",
)
"""What check says of models of which onnxruntime gives other values."""


def check_onnxruntime(case: Case) -> None:
    """The original gives these values in onnxruntime too, if that runs it: they are right.

    It slices nothing from data without elements, which keeps its shape, takes Splits of one tensor
    without lengths for one node, obeys a condition that has no meaning, and gathers only the first
    string of each row; and so on.
    """
    if any(node.op_type == "Gather" for node in nodes_of(case.model.graph)) and any(
        isinstance(value, np.ndarray) and value.dtype.hasobject
        for feeds, values in case.legal
        for value in (*feeds.values(), *values.values())
    ):
        return
    found = "".join(finding.message for finding in ts.check(case.model, target="onnxruntime"))
    if any(text in found for text in CHANGES_VALUES):
        return
    for feeds, values in case.legal:
        if any(isinstance(each, np.ndarray) and not each.size for each in values.values()):
            continue
        one = replace(case, legal=[(feeds, values)], illegal=[])
        try:
            run_outside(one, case.model, "onnxruntime")
        except Wrong as error:
            if "values" in str(error):
                raise
        except Exception:  # noqa: BLE001 - it can't run it
            return


def failure(check: Callable[[Any], None], case: Held) -> Exception | None:
    """What a check raises of a case; it must leave the model as it is."""
    before = case.contents()
    try:
        check(case)
        if case.contents() != before:
            raise Wrong("the model that was given is no longer the same")
    except Exception as error:  # noqa: BLE001 - all of them are failures
        return error
    return None


def kind_of(error: Exception) -> str:
    """What failed, without names and numbers, to find the same failure in a smaller model."""
    text = f"{getattr(error, 'code', type(error).__name__)} {error}"
    return re.sub(r"graph\S*|'[^']*'|\bv?\d+\b|\[.*?\]|\(.*?\)|0x\w+", "", text)[:90]
