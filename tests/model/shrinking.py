"""Smaller programs: without some steps, outputs or feeds, and the smallest that still fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from onnx import ValueInfoProto

from tests.model.programs import Function, Graph, Program, Refused, Step, declaration

Instead = Callable[[Step, Graph], list[Step]]


def without(
    program: Program, gone: Collection[Step], instead: Instead | None = None
) -> Program | None:
    """Leave out steps: what they gave is fed, or in bodies made in another way, as a constant.

    Returns:
        None if that can't be.
    """
    graph = program.graph
    left_out = {name for step in graph.steps if step in gone for name in step.outputs}
    cut = [name for name in graph.samples if name in left_out]
    declared = {name: declaration(name, graph.samples[name]) for name in cut}
    outputs = [name for name in graph.outputs if name not in left_out]
    change = partial(in_body, gone=gone, instead=instead or constants)
    try:
        functions = {
            name: replace(made, graph=change(made.graph))
            for name, made in program.functions.items()
        }
        steps = [inside(step, change) for step in graph.steps if step not in gone]
    except NoConstant:
        return None
    inputs = [*graph.inputs, *cut]
    declared = {**graph.declared, **declared}
    made = replace(graph, steps=steps, inputs=inputs, outputs=outputs, declared=declared)
    feeds = []
    for fed in program.feeds:
        values = values_of(program, fed) if cut else {}
        if all(name in values for name in cut):
            feeds.append({**fed, **{name: values[name] for name in cut}})
    return replace(program, graph=made, functions=functions, feeds=feeds)


class NoConstant(Exception):  # noqa: N818 - no error
    """A value that no constant can hold: a sequence."""


def values_of(program: Program, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
    """Calculate the values as far as the program goes before a split refuses."""
    try:
        return program.values(feeds)
    except Refused as refused:
        return refused.values
    except Exception:  # noqa: BLE001 - nothing is known of these
        return {}


def in_body(graph: Graph, gone: Collection[Step], instead: Instead) -> Graph:
    """Put others in the place of steps of a body."""
    change = partial(in_body, gone=gone, instead=instead)
    steps: list[Step] = []
    for step in graph.steps:
        steps += instead(step, graph) if step in gone else [inside(step, change)]
    return replace(graph, steps=steps)


def constants(step: Step, graph: Graph) -> list[Step]:
    """Make constants of what a step gave once."""
    values = {name: graph.samples.get(name) for name in step.outputs}
    if any(isinstance(value, list) for value in values.values()):
        raise NoConstant
    return [constant(name, value) for name, value in values.items() if value is not None]


def constant(name: str, value: Any) -> Step:
    """Make a Constant of a value."""
    return Step("Constant", [], [name], {"value": value}, lambda *_: [value])


def inside(step: Step, change: Callable[[Graph], Graph]) -> Step:
    """Change the bodies of a step."""
    attributes = {
        name: change(value) if isinstance(value, Graph) else value
        for name, value in step.attributes.items()
    }
    return replace(step, attributes=attributes) if any(step.bodies()) else step


def pruned(program: Program) -> Program | None:
    """Leave out what no output needs; None if there are no outputs."""
    if not program.graph.outputs or not program.feeds:
        return None
    functions = {
        name: replace(made, graph=pruned_graph(made.graph))
        for name, made in program.functions.items()
    }
    return trimmed(replace(program, graph=pruned_graph(program.graph), functions=functions))


def trimmed(program: Program) -> Program:
    """Leave out the inputs, initializers and functions that no step uses."""
    graph = program.graph
    needed, called = names_of(graph), calls(graph.steps, program.functions)
    inputs = [name for name in graph.inputs if name in needed]
    initializers = {name: value for name, value in graph.initializers.items() if name in needed}
    return replace(
        program,
        graph=replace(graph, inputs=inputs, initializers=initializers),
        functions={name: made for name, made in program.functions.items() if name in called},
        feeds=[{name: fed[name] for name in inputs} for fed in program.feeds],
    )


def pruned_graph(graph: Graph) -> Graph:
    """Leave out the steps, of bodies too, that no output needs."""
    needed, steps = set(graph.outputs), []
    for step in reversed(graph.steps):
        if needed.intersection(step.outputs):
            steps.append(inside(step, pruned_graph))
            needed |= names_of_step(steps[-1])
    return replace(graph, steps=steps[::-1])


def names_of(graph: Graph) -> set[str]:
    """Collect the names that a graph reads, of its own and from outside."""
    return set(graph.outputs).union(*map(names_of_step, graph.steps))


def names_of_step(step: Step) -> set[str]:
    """Collect the names that a step and its bodies read."""
    return set(step.inputs).union(*map(names_of, step.bodies()))


def calls(steps: Iterable[Step], functions: Mapping[str, Function]) -> set[str]:
    """Collect the names of the functions that steps call, through others too."""
    found: set[str] = set()
    for step in every_step(steps):
        if step.op_type in functions:
            found |= {step.op_type} | calls(functions[step.op_type].graph.steps, functions)
    return found


def every_step(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield steps and those of their bodies."""
    for step in steps:
        yield step
        for body in step.bodies():
            yield from every_step(body.steps)


def all_steps(program: Program) -> list[Step]:
    """List the steps of the graph, of functions and of bodies."""
    bodies = [made.graph.steps for made in program.functions.values()]
    return [step for each in (program.graph.steps, *bodies) for step in every_step(each)]


def smaller(program: Program) -> Iterator[Program | None]:
    """Yield programs with less, those with much less first."""
    graph = program.graph
    for fed in program.feeds if len(program.feeds) > 1 else ():
        yield replace(program, feeds=[fed])
    ends = [name for step in graph.steps for name in step.outputs if name in graph.samples]
    for name in dict.fromkeys([*graph.outputs, *ends]):
        declared = {**graph.declared, name: declaration(name, graph.samples[name])}
        yield pruned(replace(program, graph=replace(graph, outputs=[name], declared=declared)))
    yield from (pruned(each) for each in with_fewer_steps(program) if each is not None)
    yield with_sizes(program)


def with_fewer_steps(program: Program) -> Iterator[Program | None]:
    """Yield programs without many steps, then without each."""
    steps = [step for step in all_steps(program) if step.op_type != "Constant"]
    count = len(steps)
    while count:
        for start in range(0, len(steps), count):
            yield without(program, set(steps[start : start + count]))
        count //= 2


def with_sizes(program: Program) -> Program | None:
    """Declare the sizes of the inputs where all feeds agree on them."""
    declared: dict[str, ValueInfoProto] = {}
    for name in program.graph.inputs:
        shapes = {getattr(fed[name], "shape", None) for fed in program.feeds}
        if len(shapes) == 1 and shapes != {None}:
            value = program.feeds[0][name]
            declared[name] = declaration(name, value, value.shape)
    graph = program.graph
    if all(graph.declared[name] == made for name, made in declared.items()):
        return None
    return replace(program, graph=replace(graph, declared={**graph.declared, **declared}))


def size(program: Program) -> tuple[int, int]:
    """Count the steps of a program, and what else it consists of."""
    graph = program.graph
    shapes = [graph.declared[name].type.tensor_type.shape.dim for name in graph.inputs]
    opened = [dim for shape in shapes for dim in shape if not dim.HasField("dim_value")]
    costs = [1 if step.op_type == "Constant" else 2 for step in all_steps(program)]
    ends = len(graph.outputs) + len(graph.inputs)
    return sum(costs), ends + len(program.feeds) + len(opened)


def shrunk(program: Program, fails: Callable[[Program], bool], seconds: float = 30) -> Program:
    """Find a program with which as little as possible can be left out, that still fails."""
    until = time.monotonic() + seconds
    while True:
        for each in smaller(program):
            if time.monotonic() > until:
                return program
            if each is not None and size(each) < size(program) and fails(each):
                program = each
                break
        else:
            return program
