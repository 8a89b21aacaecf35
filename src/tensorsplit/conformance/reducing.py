"""The smallest model that still shows what an engine gets wrong: delta debugging, in processes.

A candidate has some of the model's nodes. What the others calculated becomes an input, fed with
what our own engine calculates; and our own engine gives what has to come out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import onnx

from tensorsplit.arrays.numpy import element_type
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.data import tensor_type
from tensorsplit.conformance.repro import script
from tensorsplit.conformance.runner import Subject, prepare
from tensorsplit.core.errors import USAGE, SplitError, count_of
from tensorsplit.engines import run
from tensorsplit.engines.compare import Tolerance, differences
from tensorsplit.engines.process import Reply
from tensorsplit.model.graph.message import node_lists

_MOST_MEMORY = 1 << 28
_NAMES_AND_NUMBERS = re.compile(r"'[^']*'|\"[^\"]*\"|\S*[\d/{\[]\S*")
_MOST_WORDS = 60


@dataclass(frozen=True)
class Failure:
    """The failure of an engine: which outputs it gets wrong, and how.

    Attributes:
        kind: ``wrong``, ``accepted`` (what is to be refused), ``crash``, ``hang``, or ``refused``
            with its first words.
        detail: What was seen, in words.
    """

    kind: str
    detail: str = field(compare=False)


@dataclass(frozen=True)
class Candidate:
    """A model, its inputs, and the expected outputs; None for a refusal."""

    model: onnx.ModelProto
    inputs: dict[str, Any]
    expected: dict[str, Any] | None

    @property
    def size(self) -> tuple[int, int, int]:
        """How many nodes, inputs and numbers there are; nodes in bodies and functions count."""
        values = filter(lambda value: value is not None, self.inputs.values())
        tensors = chain.from_iterable(v if isinstance(v, list) else [v] for v in values)
        numbers = sum(map(np.size, tensors))
        inner = sum(len(scope.node) for scope in _inner_scopes(self.model))
        return len(self.model.graph.node) + inner, len(self.inputs), numbers


@dataclass(frozen=True)
class Reduced:
    """The smallest model that was found.

    Attributes:
        before: The model that was given.
        after: The smallest one.
        failure: What both show.
        is_finished: Whether nothing more could be left out, or the time was over.
        script: A script that shows it, which needs nothing of this package.
    """

    before: Candidate
    after: Candidate
    failure: Failure
    is_finished: bool
    script: str


def reduced(
    model: onnx.ModelProto,
    inputs: Mapping[str, object],
    engine: str,
    *,
    seconds: float,
    seconds_each: float,
    note: Callable[[str], None] = lambda _: None,
) -> Reduced:
    """Return the smallest model that still shows what an engine gets wrong with a model.

    Args:
        model: The model, with its weights.
        inputs: An array for each input; a list of arrays for a sequence.
        engine: An engine or an adapter, as `tensorsplit.conformance.subjects.load` takes it.
        seconds: How long the whole search may take; what comes of it then is the smallest so far.
        seconds_each: How long the engine may take for one model before it counts as hanging.
        note: Is called when a smaller model was found.

    Raises:
        SplitError: TS601 and TS602 for the engine; TS703 if it gets nothing wrong here.
    """
    trial = _Trial(Subject.engine(engine), seconds_each)
    try:
        return _Reduction(model, dict(inputs), trial, time.monotonic() + seconds, note).result()
    finally:
        trial.close()


class _Trial:
    """An engine in a process of its own, which runs candidates."""

    def __init__(self, subject: Subject, seconds: float) -> None:
        self.subject, self._seconds = subject, seconds
        self._process = subject.process(_MOST_MEMORY)

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def failure(self, candidate: Candidate, *, afresh: bool = False) -> Failure | None:
        """Return the failure of the engine; None if it has none."""
        if afresh:
            self.close()
            self._process = self.subject.process(_MOST_MEMORY)
        source, process = self.subject.source, self._process
        if process.pid is None:
            prepare(process, source)
        names = tuple(output.name for output in candidate.model.graph.output)
        files = (candidate.model.SerializeToString(), b"", candidate.inputs, names)
        return _failure(process.ask((source, *files, 0), self._seconds), candidate)


def _failure(reply: Reply, candidate: Candidate) -> Failure | None:
    """Judge a reply by what has to come out."""
    expected = candidate.expected
    if reply.death is not None:
        return Failure("hang" if reply.has_hung else "crash", f"the process {reply.death}")
    if reply.words is not None:
        words = _NAMES_AND_NUMBERS.sub("", reply.words)
        kind = f"refused: {' '.join(words.split())[:_MOST_WORDS]}"
        return None if expected is None else Failure(kind, reply.words)
    if expected is None:
        return Failure("accepted", "it gives outputs where the model is to be refused")
    if not isinstance(reply.result, Mapping):
        return Failure("wrong", "it returns no outputs")
    found = differences(
        reply.result, expected, engine="it", reference="tensorsplit", tolerance=Tolerance()
    )
    first = next((replace(each, judged="") for each in found if not each.is_allowed), None)
    return None if first is None else Failure("wrong", str(first).removeprefix("it: "))


class _Reduction:
    """The search for a smaller model."""

    def __init__(
        self,
        model: onnx.ModelProto,
        inputs: dict[str, object],
        trial: _Trial,
        end: float,
        note: Callable[[str], None],
    ) -> None:
        self._model, self._inputs = model, inputs
        self._trial, self._end, self._note = trial, end, note
        self._values: dict[str, object] = {}
        self._nodes = list(model.graph.node)
        self._declared = {entry.name: entry for entry in model.graph.input}
        self._calculated = {name for node in self._nodes for name in node.output}

    def result(self) -> Reduced:
        """Search, and confirm what is found in a new process."""
        before = Candidate(self._model, self._inputs, _expected(self._model, self._inputs))
        failure = self._trial.failure(before, afresh=True)
        if failure is None:
            title = self._trial.subject.title
            raise SplitError(
                USAGE,
                f"{title} gives what tensorsplit gives; there is nothing to reduce",
                "give inputs with which the engine is wrong, with --input or --seed",
                parameter="engine",
            )
        self._failure = failure
        self._best = before
        numbers: Sequence[int] = range(len(self._nodes))
        for static in (True, False):
            numbers = self._fewer_nodes(numbers, static=static)
        self._fewer_inside()
        self._smaller_inputs()
        if self._trial.failure(self._best, afresh=True) != failure:
            self._best = before
        is_finished = not self._is_late()
        return Reduced(before, self._best, failure, is_finished, _script(self._best, self._trial))

    def _try(self, candidate: Candidate | None) -> bool:
        """Keep a candidate that is smaller and fails in the same way."""
        if candidate is None or candidate.size >= self._best.size or self._is_late():
            return False
        if self._trial.failure(candidate) != self._failure:
            return False
        self._best = candidate
        nodes, inputs, numbers = candidate.size
        counts = (count_of(nodes, "node"), count_of(inputs, "input"), count_of(numbers, "number"))
        self._note(f"{', '.join(counts)}: {self._failure.kind}")
        return True

    def _is_late(self) -> bool:
        return time.monotonic() >= self._end

    def _fewer_nodes(self, numbers: Sequence[int], *, static: bool) -> Sequence[int]:
        """Leave out many nodes, then fewer, as long as any can be left out; return what is left."""
        kept, count = list(numbers), max(1, len(numbers) // 2)
        self._try(self._with(kept, static=static))
        while count and not self._is_late():
            for start in range(0, len(kept), count):
                fewer = kept[:start] + kept[start + count :]
                if fewer and self._try(self._with(fewer, static=static)):
                    kept = fewer
                    break
            else:
                count //= 2
        return kept

    def _fewer_inside(self) -> None:
        """Leave out nodes in bodies and functions; what they read takes the place of theirs."""
        changed = self._best.expected is not None  # a model that is refused would be, all the more
        while changed and not self._is_late():
            changed = any(self._try(each) for each in _without_inner(self._best))

    def _with(self, numbers: Collection[int], *, static: bool) -> Candidate | None:
        """Return the candidate that has some nodes; None if a value in between is not known."""
        nodes = [self._nodes[number] for number in numbers]
        made = {name for node in nodes for name in node.output if name}
        needed = dict.fromkeys(name for node in nodes for name in _names(node))
        inputs: dict[str, object] = {}
        entries: list[onnx.ValueInfoProto] = []
        for name in needed:
            if name in made:
                continue
            if name in self._inputs:
                inputs[name] = self._inputs[name]
                entries.append(self._declared[name])
            elif name in self._calculated:
                value = self._value(name)
                if value is None:
                    return None
                inputs[name] = value
                entries.append(_declaration(name, value, static=static))
        return _candidate(self._model, nodes, entries, inputs)

    def _value(self, name: str) -> object:
        """Return the value that our own engine calculates for a name; None if it refuses."""
        if name not in self._values:
            nodes = _ancestors(self._nodes, name)
            model = _model(self._model, nodes, list(self._model.graph.input), [name])
            found = _expected(model, self._inputs)
            self._values[name] = None if found is None else found.get(name)
        return self._values[name]

    def _smaller_inputs(self) -> None:
        """Make axes shorter: those of one length together, then each."""
        changed = True
        while changed and not self._is_late():
            changed = any(self._try(each) for each in _shortened(self._best))


def _names(node: onnx.NodeProto) -> Iterator[str]:
    """Yield the names that a node and its bodies read."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for each in body.node:
                yield from _names(each)
            yield from (output.name for output in body.output)


def _inner_scopes(model: onnx.ModelProto) -> list[onnx.GraphProto | onnx.FunctionProto]:
    """Return functions, and bodies wherever they are, each before those in it."""
    return [listed.graph for listed in node_lists(model)[1:]]


def _without_inner(candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield candidates with fewer nodes in a body or function: many fewer first."""
    for place, scope in enumerate(_inner_scopes(candidate.model)):
        count = len(scope.node)
        while count:
            for start in range(0, len(scope.node), count):
                model = onnx.ModelProto()
                model.CopyFrom(candidate.model)
                inner = _inner_scopes(model)[place]
                if _leave_out(inner, range(start, min(start + count, len(scope.node)))):
                    yield Candidate(model, candidate.inputs, _expected(model, candidate.inputs))
            count //= 2


def _leave_out(scope: onnx.GraphProto | onnx.FunctionProto, numbers: Collection[int]) -> bool:
    """Leave nodes out of a body or function; return whether nothing needs what is gone.

    What a node gave is what it read first, also where the scope gives it.
    """
    instead: dict[str, str | None] = {}
    for number in numbers:
        source = next(filter(None, scope.node[number].input), None)
        source = instead.get(source, source) if source else None
        instead.update((name, source) for name in scope.node[number].output if name)
    kept = [node for number, node in enumerate(scope.node) if number not in numbers]
    if any(name in instead and instead[name] is None for node in kept for name in _names(node)):
        return False
    for node in kept:
        _rename(node, instead)
    given = [entry if isinstance(entry, str) else entry.name for entry in scope.output]
    for name in filter(instead.__contains__, given):
        source = instead[name]
        if source is None:
            return False
        maker = next((node for node in kept if source in node.output), None)
        if maker is None or source in given:
            kept.append(onnx.helper.make_node("Identity", [source], [name]))
            continue
        maker.output[:] = [name if each == source else each for each in maker.output]
        for node in kept:
            _rename(node, {source: name})
        instead.update((each, name) for each, other in instead.items() if other == source)
    del scope.node[:]
    scope.node.extend(kept)
    return True


def _rename(node: onnx.NodeProto, instead: Mapping[str, str | None]) -> None:
    """Replace the values that a node and its bodies read."""
    node.input[:] = [instead.get(name) or name for name in node.input]
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            for each in body.node:
                _rename(each, instead)


def _ancestors(nodes: Sequence[onnx.NodeProto], name: str) -> list[onnx.NodeProto]:
    """Return the nodes that a name needs, in their order."""
    needed, kept = {name}, []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_names(node))
    return kept[::-1]


def _model(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str],
) -> onnx.ModelProto:
    """Return a model of some of the nodes; outputs have the types that the model declares."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    used = {name for node in nodes for name in _names(node)} | set(outputs)
    known = {entry.name: entry for entry in (*model.graph.output, *model.graph.value_info)}
    kept = [each for each in model.graph.initializer if each.name in used]
    graph = onnx.GraphProto(name=model.graph.name, node=nodes, input=inputs, initializer=kept)
    graph.sparse_initializer.extend(
        each for each in model.graph.sparse_initializer if each.values.name in used
    )
    graph.output.extend(known.get(name, onnx.ValueInfoProto(name=name)) for name in outputs)
    made.graph.CopyFrom(graph)
    if not any(node.domain for node in nodes):
        del made.functions[:]
    return made


def _candidate(
    model: onnx.ModelProto,
    nodes: Sequence[onnx.NodeProto],
    entries: Sequence[onnx.ValueInfoProto],
    inputs: dict[str, object],
) -> Candidate:
    """Return a candidate: its outputs are what no other of its nodes uses."""
    used = {name for node in nodes for name in _names(node)}
    outputs = [name for node in nodes for name in node.output if name and name not in used]
    made = _model(model, nodes, entries, outputs)
    expected = _expected(made, inputs)
    if expected is not None:
        declared = [_declaration(name, expected[name], static=False) for name in outputs]
        del made.graph.output[:]
        made.graph.output.extend(declared)
    return Candidate(made, inputs, expected)


def _expected(model: onnx.ModelProto, inputs: dict[str, object]) -> dict[str, object] | None:
    """Return the outputs of our own engine; None if it refuses."""
    try:
        return run(model, inputs, engine="tensorsplit")
    except SplitError:
        return None


def _declaration(name: str, value: Any, *, static: bool) -> onnx.ValueInfoProto:
    """Declare a value: with its sizes, or with its rank alone."""
    if isinstance(value, list):
        number = _type_number(value[0]) if value else onnx.TensorProto.FLOAT
        return onnx.helper.make_tensor_sequence_value_info(name, number, None)
    shape = list(np.shape(value)) if static else [None] * np.ndim(value)
    return onnx.helper.make_tensor_value_info(name, _type_number(value), shape)


def _type_number(value: object) -> int:
    """Return the number that ONNX has for an element type."""
    return tensor_type(element_type(np.asarray(value)))


def _shortened(candidate: Candidate) -> Iterator[Candidate]:
    """Yield candidates with shorter axes: all those of one length, then each alone."""
    arrays = {
        name: np.asarray(x) for name, x in candidate.inputs.items() if not isinstance(x, list)
    }
    places = [(name, axis) for name, array in arrays.items() for axis in range(array.ndim)]
    lengths = {arrays[name].shape[axis] for name, axis in places}
    groups = [[p for p in places if arrays[p[0]].shape[p[1]] == length] for length in lengths]
    for group in (*groups, *([place] for place in places)):
        name, axis = group[0]
        length = arrays[name].shape[axis]
        for shorter in sorted({1, 2, length // 2, length - 1}):
            if 0 < shorter < length:
                yield _cut(candidate, group, shorter)


def _cut(candidate: Candidate, places: Sequence[tuple[str, int]], length: int) -> Candidate:
    """Return a candidate in which some axes have another length."""
    model, inputs = onnx.ModelProto(), dict(candidate.inputs)
    model.CopyFrom(candidate.model)
    for name, axis in places:
        array = np.asarray(inputs[name])
        inputs[name] = np.ascontiguousarray(array[(slice(None),) * axis + (slice(length),)])
        for entry in model.graph.input:
            dims = entry.type.tensor_type.shape.dim
            if entry.name == name and len(dims) > axis and dims[axis].HasField("dim_value"):
                dims[axis].dim_value = length
    return Candidate(model, inputs, _expected(model, inputs))


def _script(candidate: Candidate, trial: _Trial) -> str:
    """Return a script that shows what the engine does with a candidate."""
    model = candidate.model
    names = tuple(output.name for output in model.graph.output)
    built = Built(model.SerializeToString(), b"", candidate.inputs, names, candidate.expected)
    operator = " ".join(dict.fromkeys(node.op_type for node in model.graph.node))
    case = Case(
        id=f"reduced/{model.graph.name or 'model'}",
        operator=operator,
        element_type="",
        shape_class="static",
        rank=0,
        spelling="",
        place="graph",
        use="",
        rule="what tensorsplit makes of the model",
        decision="",
        expects="",
        opset=0,  # what only tools convert from
        model_format="onnx",
        recipe=lambda _: built,
    )
    return script(case, trial.subject.source)
