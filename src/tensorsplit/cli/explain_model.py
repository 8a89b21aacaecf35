"""The cuts of a model, as far as its constants and declared shapes tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import FunctionProto, GraphProto, ValueInfoProto

from tensorsplit.cli.explaining import Explanation
from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError, show
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, plan
from tensorsplit.model.graph.binding import UNKNOWN, Known, bind_node, is_split
from tensorsplit.model.graph.constants import constant_of, initializers
from tensorsplit.model.graph.message import Site, walk
from tensorsplit.model.graph.nodes import domain_name
from tensorsplit.model.graph.reading import OnnxModel, read_model
from tensorsplit.model.graph.tensors import Constant
from tensorsplit.pages.layout import dim_text


@dataclass(slots=True)
class _Facts:
    """What is known of the values of the main graph with its bodies, or of one function."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    fed: set[str] = field(default_factory=set)


def explanations(path: str) -> list[Explanation]:
    """The split nodes of a model, in order, each with its plan where that is known.

    Args:
        path: An ONNX file, or an OpenVINO IR (``.xml``).

    Returns:
        One cut for each split node, in bodies and functions too. Initializers that are also
        inputs count with the values that they have.

    Raises:
        SplitError: TS501 to TS504 for the model; TS101 to TS308 for a split node that is wrong.
    """
    return list(_splits(read_model(path)))


def _splits(model: OnnxModel) -> Iterator[Explanation]:
    known: dict[str, _Facts] = {}
    seen: set[int] = set()
    for site in walk(model.original):
        facts = known.setdefault(site.path.partition("/")[0], _Facts())
        if id(site.graph) not in seen:
            seen.add(id(site.graph))
            _note_graph(site.graph, model.folder, site.path, facts)
        node = site.node
        try:
            if is_split(node):
                yield _cut(site, facts)
            elif (node.op_type, domain_name(node.domain)) == ("Constant", ""):
                facts.constants.update(constant_of(node, model.folder))
        except SplitError as error:
            raise error.located(node=site.path) from None


def _note_graph(
    graph: GraphProto | FunctionProto, folder: Path | None, path: str, facts: _Facts
) -> None:
    if isinstance(graph, GraphProto):
        facts.constants.update(initializers(graph, folder, path))
        facts.fed.update(value.name for value in graph.input)
        _note_shapes((*graph.input, *graph.value_info, *graph.output), facts)
    else:
        _note_shapes(graph.value_info, facts)
    facts.shapes.update((name, value.shape) for name, value in facts.constants.items())


def _note_shapes(values: Iterable[ValueInfoProto], facts: _Facts) -> None:
    for value in values:
        if value.type.tensor_type.HasField("shape"):
            dims = value.type.tensor_type.shape.dim
            facts.shapes[value.name] = tuple(
                max(dim.dim_value, -1) if dim.HasField("dim_value") else dim.dim_param or -1
                for dim in dims
            )


def _cut(site: Site, facts: _Facts) -> Explanation:
    node = site.node
    linked = [entry.name for entry in node.attribute if entry.ref_attr_name]
    if linked:
        note = f"Not drawn: whoever calls the function gives {', '.join(linked)}."
        return Explanation(node.op_type, "", None, None, note, site.path)
    inputs: list[Known] = [UNKNOWN if name else None for name in node.input]
    for place, name in enumerate(node.input[1:], 1):
        if name in facts.constants:
            inputs[place] = facts.constants[name].value
    intent = bind_node(node, site.opsets.get("", 1), inputs)
    data = node.input[0]
    cut = _planned(site.path, intent, facts.shapes.get(data), data)
    defaults = [name for name in node.input[1:] if name in facts.constants and name in facts.fed]
    if defaults:
        note = f"With the default of {', '.join(map(show, defaults))}, which can be fed otherwise."
        cut = replace(cut, note=f"{note} {cut.note}".strip())
    if isinstance(cut.plan, SplitPlan) and not intent.operator.is_sequence:
        facts.shapes.update(zip(node.output, cut.plan.output_shapes, strict=True))
    return cut


def _planned(path: str, intent: Intent, shape: Shape | None, data: str) -> Explanation:
    """The cut of a node, with its plan if everything that it takes is known."""
    made: SplitPlan | UncountedPlan | None = None
    note = ""
    if shape is None:
        note = f"Not drawn: no shape is declared for the data {show(data)}."
    else:
        try:
            made = plan(intent, as_shape(None if dim == -1 else dim for dim in shape))
        except SplitError as error:
            if error.kind is not UNKNOWN_COUNT:
                raise error.located(operator=intent.operator.id, node=path) from None
            note = f"Not drawn: {error.problem}."
    return Explanation(intent.operator.id, _given(intent), intent, made, note, path)


def _given(intent: Intent) -> str:
    """The axis and what tells the lengths, as text."""
    axis = "known at run time" if intent.axis is None else dim_text(intent.axis)
    words = [f"{intent.operator.axis} = {axis}"]
    if intent.source is None:
        words += [f"{intent.outputs} outputs"] if not intent.operator.is_sequence else []
    elif intent.given is None:
        words.append(f"{intent.source} known at run time")
    else:
        shown = ", ".join(map(dim_text, intent.given[:12]))
        more = ", ..." if len(intent.given) > 12 else ""
        words.append(f"{intent.source} = {shown}{more}")
    return ", ".join(words)
