"""The cuts of a model, as far as its constants and declared shapes tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import onnx_ir as ir

from tensorsplit.cli.explaining import Explanation
from tensorsplit.core.dimensions import Shape, as_shape
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError, show
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, plan
from tensorsplit.model.graph.binding import UNKNOWN, Known, bind
from tensorsplit.model.graph.nodes import NodeRef, constant, is_split, is_vendor_split, walk
from tensorsplit.model.graph.reading import OnnxModel, read_model
from tensorsplit.model.graph.tensors import read_tensor
from tensorsplit.pages.layout import dim_text


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
    shapes: dict[ir.Value, Shape] = {}
    for site in walk(model.model):
        if is_split(site.node) or is_vendor_split(site.node):
            try:
                yield _cut(site, shapes)
            except SplitError as error:
                raise error.located(node=site.path) from None


def _shape(value: ir.Value, shapes: Mapping[ir.Value, Shape]) -> Shape | None:
    if value in shapes:
        return shapes[value]
    held = value.const_value
    if held is not None or value.shape is None:
        return None if held is None else tuple(held.shape.numpy())
    return tuple(max(dim, -1) if isinstance(dim, int) else dim.value or -1 for dim in value.shape)


def _cut(site: NodeRef, shapes: dict[ir.Value, Shape]) -> Explanation:
    node = site.node
    linked = [name for name, entry in node.attributes.items() if entry.is_ref()]
    if linked:
        note = f"Not drawn: whoever calls the function gives {', '.join(linked)}."
        return Explanation(node.op_type, "", None, None, note, site.path)
    inputs: list[Known] = [None if value is None else UNKNOWN for value in node.inputs]
    defaults = []
    for place, value in enumerate(node.inputs[1:], 1):
        if value is None:
            continue
        if value.is_graph_input() and value.const_value is not None:
            inputs[place] = read_tensor(value.const_value)
            defaults.append(value.name)
        else:
            known = constant(value)
            inputs[place] = UNKNOWN if known is None else known
    intent = bind(node, site.opsets.get("", 1), inputs)
    data = node.inputs[0]
    if data is None:
        return _planned(site.path, intent, None, "")
    cut = _planned(site.path, intent, _shape(data, shapes), data.name or "")
    if defaults:
        note = f"With the default of {', '.join(map(show, defaults))}, which can be fed otherwise."
        cut = replace(cut, note=f"{note} {cut.note}".strip())
    if isinstance(cut.plan, SplitPlan) and not intent.operator.is_sequence:
        shapes.update(zip(node.outputs, cut.plan.output_shapes, strict=True))
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
