"""Which outputs are exact, and which equal up to rounding: one table of operators for all tools.

A split, and every operator that moves elements, gives bits that follow from what it is fed. Of
all others only some are exact: engines add up in other orders, so that sums differ in their
last bits, also where nobody changed the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum

import onnx_ir as ir

from tensorsplit.model.graph.called_in_onnx import operator_of
from tensorsplit.model.graph.facts import Fact, Other
from tensorsplit.model.graph.nodes import Scope, bodies
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.analysis import Facts, analyse
from tensorsplit.model.reading import OnnxModel


def _named(*rows: str) -> frozenset[str]:
    return frozenset(" ".join(rows).split())


MOVES = _named(
    "Constant ConstantOfShape EyeLike Identity Reshape Flatten Squeeze Unsqueeze Transpose Expand",
    "Tile Pad CenterCropPad Concat Slice Gather GatherND GatherElements Scatter ScatterElements",
    "ScatterND TensorScatter Where Compress OneHot Trilu ReverseSequence DepthToSpace SpaceToDepth",
    "SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert ConcatFromSequence",
    "Optional OptionalGetElement",
)
"""Operators, and layers by the names of ONNX, whose outputs hold what their inputs or attributes
hold, bit for bit; beside splits, and those that do what their bodies do."""

UNROUNDED = _named(
    "Shape Size SequenceLength OptionalHasElement Cast CastLike BitCast Not And Or",
    "Xor Equal Less LessOrEqual Greater GreaterOrEqual IsNaN IsInf NonZero ArgMax ArgMin TopK",
    "Unique Neg Abs Sign Floor Ceil Round Relu Clip Max Min MaxPool GlobalMaxPool ReduceMax",
    "ReduceMin Hardmax",
)
"""Operators that calculate, and whose result the standard leaves no room for, but for NaNs and the
sign of zero."""

_ANY_VALUES = _named("Shape Size SequenceLength OptionalHasElement")
"""Operators whose result does not depend on the elements."""

_EXACT_TYPES = ("INT", "UINT", "BOOL", "STRING")


def is_exact(node: ir.Node, facts: Facts) -> bool:
    """Return whether a node has one result, which no engine may round otherwise.

    Operators that are in neither table are exact where they take and give no floats.
    """
    if _moves(node) or operator_of(node) in UNROUNDED:
        return True
    values = (value for value in (*node.inputs, *node.outputs) if value is not None)
    return node.domain == "" and not any(_may_be_floats(facts.of(value)) for value in values)


def _moves(node: ir.Node) -> bool:
    """Return whether a node moves elements; a Scatter that adds them up does not."""
    reduction = node.attributes.get("reduction")
    moves = is_split(node) or operator_of(node) in MOVES
    return moves and (reduction is None or reduction.value in ("none", b"none"))


def _may_be_floats(fact: Fact) -> bool:
    if isinstance(fact, Other):
        kind = fact.type
        while isinstance(kind, (ir.SequenceType, ir.OptionalType)):
            kind = kind.elem_type
        dtype = kind.dtype if isinstance(kind, ir.TensorType) else None
    else:
        dtype = fact.element_type
    return dtype is None or not dtype.name.startswith(_EXACT_TYPES)


def moved_outputs(model: OnnxModel) -> frozenset[str]:
    """Return the outputs of a model that every right engine gives bit for bit.

    Everything that leads to them, back to inputs and initializers, only moves elements; where to
    depends only on what is exact, such as lengths that are calculated from shapes.
    """
    outputs = zip(model.output_names, model.model.graph.outputs, strict=False)
    levels = _Levels(model.model)
    return frozenset(name for name, value in outputs if levels.of(value) is Level.MOVED)


class Level(IntEnum):
    """How much is certain of the elements of a value, from what a model is fed."""

    ROUNDED = 0
    EXACT = 1
    MOVED = 2


class _Levels:
    """The level of every value of a model; floats that are calculated count as rounded."""

    def __init__(self, model: ir.Model) -> None:
        self._functions, self._facts = model.functions, analyse(model)
        self._known: dict[ir.Value, Level] = {}
        self._called: dict[tuple[object, ...], list[Level]] = {}
        self._nodes(model.graph)

    def of(self, value: ir.Value | None) -> Level:
        """Return the level of a value that was met; inputs and initializers are as they are."""
        if value is None:
            return Level.MOVED
        start = Level.MOVED if value.producer() is None else Level.ROUNDED
        return self._known.get(value, start)

    def _nodes(self, scope: Scope) -> None:
        for node in scope:
            found = self._outputs(node, list(map(self.of, node.inputs)))
            self._known.update(zip(node.outputs, found, strict=False))

    def _outputs(self, node: ir.Node, inputs: list[Level]) -> Iterable[Level]:
        least = min(inputs, default=Level.MOVED)
        function = self._functions.get(node.op_identifier())
        inner = [body for _, body in bodies(node)]
        if function is not None:
            return self._call(function, inputs)
        if inner:
            return self._with_bodies(node, inner, inputs)
        if operator_of(node) in _ANY_VALUES:
            return [Level.EXACT] * len(node.outputs)
        if not least or not is_exact(node, self._facts):
            return [Level.ROUNDED] * len(node.outputs)
        floats, others = (Level.MOVED, least) if _moves(node) else (Level.ROUNDED, Level.EXACT)
        are_floats = (_may_be_floats(self._facts.of(value)) for value in node.outputs)
        return [floats if is_float else others for is_float in are_floats]

    def _call(self, function: ir.Function, inputs: list[Level]) -> list[Level]:
        key = (function.identifier(), *inputs)
        if key not in self._called:
            self._called[key] = [Level.ROUNDED] * len(function.outputs)  # if it calls itself
            self._called[key] = self._body(function, inputs)
        return self._called[key]

    def _body(self, body: Scope, inputs: Sequence[Level]) -> list[Level]:
        """Return the levels of the outputs of a body or function."""
        missing = len(body.inputs) - len(inputs)
        self._known.update(zip(body.inputs, [*inputs, *[Level.MOVED] * missing], strict=False))
        self._nodes(body)
        return list(map(self.of, body.outputs))

    def _with_bodies(
        self, node: ir.Node, inner: list[ir.Graph], inputs: list[Level]
    ) -> Iterable[Level]:
        match node.op_type if node.domain == "" else None:
            case "If" if all(inputs):
                branches = [self._body(body, ()) for body in inner]
                return map(min, zip(*branches, strict=False))
            case "SequenceMap" if all(inputs):
                return self._body(inner[0], inputs)
            case "Loop" if all(inputs[:2]):
                return self._rounds(inner[0], inputs[2:], [], heads=2)
            case "Scan":
                inputs = inputs[len(inputs) - len(inner[0].inputs) :]  # Scan-8 has one more
                states = len(inputs) - node.attributes["num_scan_inputs"].value
                return self._rounds(inner[0], inputs[:states], inputs[states:])
        return [Level.ROUNDED] * len(node.outputs)

    def _rounds(
        self, body: ir.Graph, carried: list[Level], scanned: list[Level], *, heads: int = 0
    ) -> list[Level]:
        """Return the levels of the results; those of states hold after any number of rounds."""
        while True:
            ends = self._body(body, [*[Level.MOVED] * heads, *carried, *scanned])
            goes_on, ends = (ends[:1], ends[1:]) if heads else ([], ends)
            after = [*map(min, zip(carried, ends, strict=False))]
            if after == carried[: len(after)]:
                break
            carried = after
        found = [*carried, *ends[len(carried) :]]
        return found if all(goes_on) else [Level.ROUNDED] * len(found)
