"""Layers of an IR other than splits that the target was measured to calculate wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.core.records.openvino import ELEMENT_TYPES
from tensorsplit.model.features.body_features import results_to_settle, unread_rows
from tensorsplit.model.features.integers import SMALL
from tensorsplit.model.features.misread import MOST_REPEATED, chosen_conditions
from tensorsplit.model.features.recurrences import recurrences_of
from tensorsplit.model.features.shared_memory import overwriting_layers, shared_layer_states
from tensorsplit.model.graph.axes import in_range
from tensorsplit.model.graph.calculation import FLOATS
from tensorsplit.model.graph.held_tensors import constant
from tensorsplit.model.graph.nodes import NodeRef, bodies
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.lower.state import refusal
from tensorsplit.model.openvino_ir import LAYER_PATH
from tensorsplit.model.openvino_ir.editing import EditedGraph, End, LayerMaker
from tensorsplit.model.openvino_ir.layer_types import (
    PRECISIONS,
    RESULT,
    DeclaredTensor,
    absolute,
    converted,
    copy_of,
    exact_quotient,
    limit_of_range,
    negative,
    negative_float,
    of_hidden_lengths,
    repeated,
    truth,
    turned,
    with_nothing,
    without_difference,
)

Change: TypeAlias = Callable[["_ChangedLayer"], None]
Graphs: TypeAlias = Mapping[ir.Graph | ir.Function | None, EditedGraph]

_NAMES = {known.upper(): name for name, known in ELEMENT_TYPES.items()}
"""OpenVINO's name of each element type, by that of ONNX."""


def _precision_of(kind: ir.DataType | None) -> str:
    """Return how ports name an element type; empty if it is not known."""
    return "" if kind is None else PRECISIONS[_NAMES[kind.name]]


class LayerChange(NamedTuple):
    """The change of layers with a feature, and the result in words."""

    change: Change
    became: str


class _ChangedLayer:
    """A layer that is changed, its sources, and a maker of new layers beside it.

    Args:
        ref: The layer.
        graphs: What is edited of its graph, and of others.
        facts: What is known of the model.
    """

    def __init__(self, ref: NodeRef, graphs: Graphs, facts: Facts) -> None:
        self.ref, self.node, self.graphs, self.facts = ref, ref.node, graphs, facts
        graph = self.graph = graphs[ref.node.graph]
        self.layer = graph.layers[ref.path]
        self.make = LayerMaker(graph, self.layer.name or self.layer.type)

    @property
    def sources(self) -> list[End]:
        """The ports that feed its inputs."""
        return [self.graph.source(self.layer, place) for place in range(len(self.layer.inputs))]

    @property
    def precision(self) -> str:
        """How the port that it gives names its element type."""
        (port,) = self.layer.outputs.values()
        return port.precision

    def given_types(self) -> list[ir.DataType | None]:
        """Return the element types of its inputs."""
        return [self.facts.tensor(held).element_type for held in self.node.inputs]

    def replace(self, end: End) -> None:
        """Replace the layer's output by that of another layer."""
        self.graph.stand_in(self.layer, [end])


def change_layer(change: Change, ref: NodeRef, graphs: Graphs, facts: Facts) -> None:
    """Change a layer, as its feature asks for."""
    change(_ChangedLayer(ref, graphs, facts))


def _turn_at_rank_4(old: _ChangedLayer) -> None:
    """Feed the recurrent layers that read a Transpose by another one, of rank 4, of the same."""
    separate = old.make.layer(turned(old.precision), old.sources[:1])
    for reader in recurrences_of(old.node):
        old.graph.feed(old.graph.layers[str(reader.metadata_props[LAYER_PATH])], 0, separate)


def _negate(old: _ChangedLayer) -> None:
    """Feed an Abs by the negative of what it read."""
    old.graph.feed(old.layer, 0, old.make.layer(negative(old.precision), old.sources))


def _cast_negative(old: _ChangedLayer) -> None:
    """Convert to boolean the negative of a part, where the target has no such Convert of it."""
    kind = old.given_types()[0]
    made = negative(_precision_of(kind)) if kind in FLOATS else negative_float()
    old.graph.feed(old.layer, 0, old.make.layer(made, old.sources[:1]))


def _leave_out(old: _ChangedLayer) -> None:
    """Replace a layer's output by its input, which is the same."""
    old.replace(old.sources[0])


def _take_larger(old: _ChangedLayer) -> None:
    """Replace an Abs by the larger one of a number and its negative."""
    old.replace(old.make.layer(absolute(old.precision), old.sources))


def _compare_difference(old: _ChangedLayer) -> None:
    """Compare the difference of two numbers with 0."""
    _check_broadcast(old)
    precision = _precision_of(old.given_types()[0])
    old.replace(old.make.layer(without_difference(precision), old.sources))


def _check_broadcast(old: _ChangedLayer, *, may_be_none: bool = True) -> None:
    """Refuse a layer whose operands are broadcast otherwise than NumPy does it."""
    found = old.layer.attributes.get("auto_broadcast", "numpy").lower()
    if found != "numpy" and not (may_be_none and found == "none"):
        raise refusal("its operands are not broadcast as NumPy does", "broadcast them before")


def _leave_no_rest(old: _ChangedLayer) -> None:
    """Divide a number less what the quotient leaves; integers of 8 bits as those of 32.

    The quotient is rounded toward zero, as the target rounds all others, whatever the layer wants.
    """
    _check_broadcast(old)
    (kind, _), ends = old.given_types(), old.sources
    is_small, precision = kind in SMALL, old.precision
    if is_small:
        ends = [old.make.layer(converted("i32"), [end]) for end in ends]
        precision = "I32"
    made = old.make.layer(exact_quotient(precision), ends)
    if is_small and kind is not None:
        made = old.make.layer(converted(_NAMES[kind.name]), [made])
    old.replace(made)


def _limit_range(old: _ChangedLayer) -> None:
    """Give a Range its start as its limit, where the target would go the other way."""
    kinds = set(old.given_types())
    if len(kinds) > 1:
        if not kinds <= {ir.DataType.INT32, ir.DataType.INT64}:
            problem, fix = "its numbers are of several types", "convert them to one before"
            raise refusal(problem, fix)
        for place, end in enumerate(old.sources):
            old.graph.feed(old.layer, place, old.make.layer(converted("i64"), [end]))
    kind = ir.DataType.INT64 if len(kinds) > 1 else kinds.pop()
    precision = _precision_of(kind)
    old.graph.feed(old.layer, 1, old.make.layer(limit_of_range(precision), old.sources))


def _give_nothing(old: _ChangedLayer) -> None:
    """Replace a Gather that gives no elements by a constant without elements."""
    data, indices, axis = (old.facts.tensor(held) for held in old.node.inputs)
    made, taken = old.facts.tensor(old.node.outputs[0]), constant(old.node.inputs[1])
    assert data.shape is not None and made.shape is not None  # noqa: PT018, S101 - see the feature
    length = data.shape[axis.constant[0]] if axis.constant else None
    is_right = taken is not None and is_known(length) and in_range(taken, length)
    if indices.shape != (0,) and not is_right:
        problem = "it takes what has no elements by indices that may be out of range"
        raise refusal(problem, "use constant indices, or another engine")
    assert made.element_type is not None  # noqa: S101 - see the feature
    shape = ",".join(map(str, made.shape))
    kind = DeclaredTensor(_NAMES[made.element_type.name], shape, old.precision)
    name = old.layer.name or old.layer.type
    old.replace(old.graph.add_empty(kind, name))


def _keep_data(old: _ChangedLayer) -> None:
    """Let layers of a body overwrite copies of the data that each round is given again."""
    for reader, place in overwriting_layers(old.node, old.facts):
        graph = old.graphs[reader.graph]
        layer = graph.layers[str(reader.metadata_props[LAYER_PATH])]
        data = reader.inputs[place]
        assert data is not None  # noqa: S101 - it is read there
        precision = _precision_of(old.facts.tensor(data).element_type)
        made = LayerMaker(graph, layer.name or layer.type)
        copied = made.layer(copy_of(precision), [graph.source(layer, place)])
        graph.feed(layer, place, copied)


def _copy_states(old: _ChangedLayer) -> None:
    """Let the body of a loop give copies of its states in another memory."""
    _, body = next(iter(bodies(old.node)))
    graph = old.graphs[body]
    results = [layer for layer in graph.layers.values() if layer.type == "Result"]
    make = LayerMaker(graph, old.layer.name or old.layer.type)
    for place in shared_layer_states(old.node, old.facts):
        element_type = old.facts.tensor(body.outputs[place]).element_type
        if element_type in (None, ir.DataType.BOOL, ir.DataType.STRING):
            problem = (
                "it carries a row, or what it carries elsewhere, of an unknown type or no number"
            )
            raise refusal(problem, "carry numbers")
        source = graph.source(results[place], 0)
        graph.feed(results[place], 0, make.layer(copy_of(_precision_of(element_type)), [source]))


def _read_rows(old: _ChangedLayer) -> None:
    """Let the body of a TensorIterator give a row, which goes nowhere: rows are counted then."""
    _, body = next(iter(bodies(old.node)))
    graph = old.graphs[body]
    first, *_ = unread_rows(old.node, old.facts)
    row = [layer for layer in graph.layers.values() if layer.type == "Parameter"][first]
    graph.add_with_outputs(RESULT, [End(row.id, *row.outputs)], row.name or row.type, 0)


def _settle(old: _ChangedLayer) -> None:
    """Pass on the results of an If through a Loop of one round."""
    ports = list(old.layer.outputs.items())
    for made in results_to_settle(old.ref, old.facts):
        number, port = ports[old.node.outputs.index(made)]
        fact, name = old.facts.tensor(made), old.layer.name or old.layer.type
        assert fact.element_type is not None and fact.shape is not None  # noqa: PT018, S101 - see the feature
        shape = ",".join(str(dim) if is_known(dim) else "?" for dim in fact.shape)
        kind = DeclaredTensor(_NAMES[fact.element_type.name], shape, port.precision)
        end = old.graph.add_round(End(old.layer.id, number), kind, name)
        old.graph.feed_readers(old.layer, number, end)


def _hide_limit(old: _ChangedLayer) -> None:
    """Reshape sliced data to their own shape, so that the target knows no length at import."""
    data = old.facts.tensor(old.node.inputs[0])
    known = tuple(dim if is_known(dim) else 0 for dim in data.shape or ())
    hidden = of_hidden_lengths(_precision_of(data.element_type), known)
    old.graph.feed(old.layer, 0, old.make.layer(hidden, old.sources[:1]))


def _hide_shape(old: _ChangedLayer) -> None:
    """Reshape data without elements to their own shape, where the target would lose a dimension."""
    precision = _precision_of(old.facts.tensor(old.node.inputs[0]).element_type)
    same = old.make.layer(of_hidden_lengths(precision, ()), old.sources[:1])
    old.graph.feed(old.layer, 0, same)


def _calculate_start(old: _ChangedLayer) -> None:
    """Add its axes less themselves to the start of a Slice, which the target can't know then."""
    start, *_, axes = (old.make.layer(converted("i64"), [end]) for end in old.sources[1:])
    old.graph.feed(old.layer, 1, old.make.layer(with_nothing(), [start, axes]))


def _keep_separate(old: _ChangedLayer) -> None:
    """Feed a layer the larger of what it reads and itself, which the target makes no one of."""
    old.graph.feed(old.layer, 0, old.make.layer(copy_of(old.precision), old.sources[:1]))


def _choose_constants(old: _ChangedLayer) -> None:
    """Replace a condition by a choice: true where it holds, false elsewhere."""
    _check_broadcast(old, may_be_none=False)  # the constants have no axes
    for place in chosen_conditions(old.node, old.facts):
        old.graph.feed(old.layer, place, old.make.layer(truth(of=place == 1), []))


def _keep_result_separate(old: _ChangedLayer) -> None:
    """Feed the readers of a layer the larger of its result and itself, as in `_keep_separate`."""
    number = next(iter(old.layer.outputs))
    kept = old.make.layer(copy_of(old.precision), [End(old.layer.id, number)])
    old.graph.feed_readers(old.layer, number, kept)


def _keep_in_between(old: _ChangedLayer) -> None:
    """Keep what an attention reads first separate, and its result."""
    _keep_separate(old)
    _keep_result_separate(old)


def _repeat_in_turn(old: _ChangedLayer) -> None:
    """Repeat a few axes at a time, which the target does rightly."""
    data, counts = old.sources
    counts = old.make.layer(converted("i64"), [counts])
    rank = len(old.facts.tensor(old.node.inputs[0]).shape or ())
    for first in range(0, rank, MOST_REPEATED):
        count = min(MOST_REPEATED, rank - first)
        kind = repeated(old.precision, first, count, rank)
        data = old.make.layer(kind, [data, counts])
    old.replace(data)


_QUOTIENT = LayerChange(_leave_no_rest, "Divide of what leaves no rest")

OTHER_LAYERS: Mapping[str, LayerChange] = MappingProxyType(
    {
        "turned_beside_recurrence": LayerChange(
            _turn_at_rank_4, "Transpose with one more axis, for recurrent layers"
        ),
        "part_to_bool": LayerChange(_cast_negative, "Convert of the negative"),
        "later_part_to_bool": LayerChange(_cast_negative, "Convert of the negative"),
        "unmoved": LayerChange(_leave_out, "what it reads"),
        "abs_of_joined": LayerChange(_negate, "Abs of the negative"),
        "abs_of_shapes": LayerChange(_take_larger, "Maximum of it and its negative"),
        "equal_below_0": LayerChange(_compare_difference, "Equal of the difference and 0"),
        "small_quotient": _QUOTIENT,
        "fused_quotient": _QUOTIENT,
        "takes_nothing": LayerChange(_give_nothing, "a constant without elements"),
        "taken_from_nothing": LayerChange(_give_nothing, "a constant without elements"),
        "used_result": LayerChange(_settle, "the same, with a Loop that passes on what it gives"),
        "limited_slice": LayerChange(_hide_limit, "the same, of data whose length is hidden"),
        "lost_dimension": LayerChange(_hide_shape, "the same, of data whose shape is hidden"),
        "shares_states": LayerChange(_copy_states, "the same, with copies of what it carries"),
        "unread_rows": LayerChange(_read_rows, "the same, with a Result for its rows"),
        "overwritten": LayerChange(_keep_data, "the same, with copies of what it would overwrite"),
        "unseen_axes": LayerChange(_calculate_start, "the same, with a start that is calculated"),
        "chosen_condition": LayerChange(
            _choose_constants, "the same, with constants in the place of its condition"
        ),
        "rotation": LayerChange(
            _keep_separate, "the same, of the larger of what it reads and itself"
        ),
        "joined_groups": LayerChange(
            _keep_result_separate, "the same, and the larger of its result and itself"
        ),
        "overwritten_queries": LayerChange(
            _keep_in_between,
            "the same, between a Max of what it reads and a Max of its result",
        ),
        "many_repeated": LayerChange(_repeat_in_turn, "Tiles of two axes each"),
        "empty_range": LayerChange(
            _limit_range, "the same, with its start as its limit if it is empty"
        ),
    }
)
"""Layers other than splits, by what the target can't do."""
