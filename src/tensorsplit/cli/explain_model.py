"""The splits of a model, as far as the analysis knows them before the model runs."""

from __future__ import annotations

from tensorsplit.cli.explaining import ExplainedSplit
from tensorsplit.core.errors import UNKNOWN_COUNT, SplitError, show
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent, plan
from tensorsplit.model.graph.binding import bind
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.nodes import NodeRef, is_split, walk
from tensorsplit.model.graph.reading import read_model
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.pages.layout import dim_text


def explanations(path: str) -> list[ExplainedSplit]:
    """The split nodes of a model, in order, each with its plan where that is known.

    Args:
        path: An ONNX file, or an OpenVINO IR (``.xml``).

    Returns:
        One explanation for each split node, in bodies and functions too. Initializers that are
        also inputs count with the values that they have.

    Raises:
        SplitError: TS501 to TS504 for the model; TS101 to TS308 for a split node that is wrong
            and may run.
    """
    model = read_model(path).model
    facts = analyse(model, {}, strict=True)
    refs = (ref for ref in walk(model) if is_split(ref.node))
    return [_explanation(ref, facts) for ref in refs]


def _explanation(ref: NodeRef, facts: Facts) -> ExplainedSplit:
    node = ref.node
    linked = [name for name, attribute in node.attributes.items() if attribute.is_ref()]
    if linked:
        note = f"Not drawn: each call of the function gives {', '.join(linked)}."
        return ExplainedSplit(node.op_type, "", None, None, note, ref.path)
    try:
        intent = bind(node, ref.opset, [facts.of(value) for value in node.inputs])
        made, note = _planned(intent, ref, facts)
    except SplitError as error:
        note = f"Not drawn: it never runs, and is wrong: {error.problem}."
        if not facts.never_runs(ref.path):
            raise error.located(node=ref.path) from None
        return ExplainedSplit(node.op_type, "", None, None, note, ref.path)
    defaults = [
        show(value.name)
        for value in node.inputs[1:]
        if value is not None and value.is_graph_input() and value.is_initializer()
    ]
    if defaults:
        default = f"With the default of {', '.join(defaults)}, which can be fed otherwise."
        note = f"{default} {note}".strip()
    return ExplainedSplit(intent.operator.id, _given(intent), intent, made, note, ref.path)


def _planned(
    intent: Intent, ref: NodeRef, facts: Facts
) -> tuple[SplitPlan | UncountedPlan | None, str]:
    """The plan, or why there is none."""
    data = ref.node.inputs[0]
    fact = facts.of(data)
    if not isinstance(fact, Tensor) or fact.shape is None:
        name = show(data.name if data is not None else "")
        return None, f"Not drawn: the shape of the data {name} is not known."
    try:
        return plan(intent, fact.shape), ""
    except SplitError as error:
        if error.kind is not UNKNOWN_COUNT:
            raise error.located(operator=intent.operator.id) from None
        return None, f"Not drawn: {error.problem}."


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
