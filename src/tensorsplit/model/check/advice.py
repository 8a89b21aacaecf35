"""Advice about what a target can't do: lower the model, convert it before, or change it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import onnx_ir as ir

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.check.findings import REWRITE
from tensorsplit.model.features.rounds import has_open_rows, may_have_uneven_rows
from tensorsplit.model.features.split_features import split_length
from tensorsplit.model.graph.calculation import (
    FIRST_WITH_BOUNDS_AS_INPUTS,
    FIRST_WITH_INTEGERS_COMPARED,
    FIRST_WITH_SUMS,
)
from tensorsplit.model.graph.facts import Tensor
from tensorsplit.model.graph.loops import FIRST_SCAN_WITHOUT_BATCHES
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.split_records import is_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import CONVERT, ELSEWHERE, LEFT, Limitation, Profile, must_go

_COMMAND = "tensorsplit "
"""What an advice holds that names a command, which refuses a model as long as it can't do that."""

_LOWER = f"{REWRITE}tensorsplit check MODEL --for {{engine}} --fix"


def before_any(profile: Profile, features: Mapping[str, object]) -> str:
    """Return what has to be done before a model can be lowered; empty for most."""
    names = {entry.feature for entry in profile.about(features)}
    return next((_REFUSED[name] for name in _ENDS if name in names), "")


def before_lowering(ref: NodeRef, facts: Facts) -> str:
    """Return what has to be done before a node can be lowered; empty for most."""
    if ref.op_type == "Loop" and ref.opset < FIRST_WITH_INTEGERS_COMPARED:
        first = FIRST_WITH_INTEGERS_COMPARED
        why = f"as integers can't be compared before opset {first}"
        return f"convert it to opset 13, {why} {CONVERT}"
    if ref.op_type == "Scan" and ref.opset < FIRST_SCAN_WITHOUT_BATCHES:
        return "write it as a Scan of opset 9 or newer, which has no batches"
    if is_split(ref.node):
        is_known_at_all = is_known(split_length(facts.split(ref).plan))
    else:
        is_known_at_all = not may_have_uneven_rows(ref, facts)
    if ref.opset >= FIRST_WITH_BOUNDS_AS_INPUTS or is_known_at_all:
        return ""
    why = f"as lengths can't be computed before opset {FIRST_WITH_BOUNDS_AS_INPUTS}"
    return f"convert it to opset 13, {why} {CONVERT}"


def _has_unknown_ranks(node: ir.Node, facts: Facts) -> bool:
    """Return whether the rank of a tensor that a node reads or gives is not known."""
    ends = [end for end in (*node.inputs, *node.outputs) if end is not None]
    known = map(facts.of, ends)
    return any(fact.shape is None for fact in known if isinstance(fact, Tensor))


_REFUSED = {
    "sequence_input": "have the model take tensors, and make the sequence in it",
    "sequence_output": "have the model give out tensors, for example with ConcatFromSequence",
    "strings_in_loop": "keep the strings out of the loop",
}
"""What to do about features for which lowering refuses a model."""

_ENDS = ("sequence_input", "sequence_output")
"""Features of a model that can't be lowered as long as it has them."""

_ENGINE = "use another engine"

_CHECKED = "lower it for portable, where the model itself checks the lengths, if they may not fit"

_OTHERWISE_LEFT = {
    "overridable_initializer": "take it off the graph's inputs if it is a constant",
    "uneven_rows": "give tensors of one shape in all rounds, for example by a Pad",
    "empty_rows_may_be_0": ELSEWHERE,
    "top_may_be_none": ELSEWHERE,
    "top_of_none": ELSEWHERE,
    "constant_lengths_on_dynamic_axis": _CHECKED,
    "equal_parts_on_dynamic_axis": _CHECKED,
    "rows_may_be_0": "lower the model, where the shapes of what the body gives are known: a Loop"
    " takes its place; else run it in another engine, if data without rows matter",
    "runtime_lengths": "feed no length of 2^31 or more, or give the lengths as a constant",
    "wide_values": "run it in another engine, if these values matter",
}
"""What to do about features that some nodes keep, beside those in `LEFT`, which all keep."""

_LEFT_IN_LAYERS = frozenset(
    {
        *("no_rows", "partly_indexed", "rounds_may_be_0", "rows_may_be_0", "scanned_across"),
        *("strings_in_loop", "strings_sliced"),
    }
)
"""Features of layers that lowering leaves as they are in an IR."""

_NEEDS_RANKS = (_has_unknown_ranks, "give its tensors a known rank")

_LEFT_WHERE: Mapping[str, tuple[Callable[[ir.Node, Facts], bool], str]] = MappingProxyType(
    {
        "softmax_of_rows": _NEEDS_RANKS,
        "strings_gathered": _NEEDS_RANKS,
        "used_result": _NEEDS_RANKS,
        "no_rows": (has_open_rows, LEFT["unranked_in_scan"]),
    }
)
"""Where lowering leaves a feature that it removes elsewhere, and what to do before."""


_LOWERED_FROM: Mapping[str, int] = MappingProxyType(
    {"limited_slice": FIRST_WITH_SUMS, "lost_dimension": FIRST_WITH_SUMS}
)
"""From which opset on lowering removes a feature, by a CumSum of the shape."""


def advice(
    profile: Profile,
    entry: Limitation,
    first: str = "",
    at: tuple[NodeRef, Facts] | None = None,
) -> str:
    """Return the advice for a limitation: lowering only where lowering removes it.

    Args:
        profile: The profile of the target.
        entry: The limitation.
        first: What has to be done before.
        at: The node that has it, with what is known of the model.
    """
    if at is not None and entry.feature in _LEFT_WHERE:
        is_left, wanted = _LEFT_WHERE[entry.feature]
        first = first or (wanted if is_left(at[0].node, at[1]) else "")
    if at is not None and at[0].opset < _LOWERED_FROM.get(entry.feature, 0):
        why = f"as there is no CumSum before opset {_LOWERED_FROM[entry.feature]}"
        first = first or f"convert it to opset 13, {why} {CONVERT}"
    is_about_type = entry.feature == "element_type" and not entry.operators
    is_lowered = entry.feature not in _REFUSED and not is_about_type
    if must_go(entry) and is_lowered:
        lower = _LOWER.format(engine=profile.engine)
        return f"{first}, then {lower}" if first else lower
    if entry.feature == "element_type":
        return "use another element type, or another engine"
    return (_REFUSED | LEFT | _OTHERWISE_LEFT).get(entry.feature, _ENGINE)


def advice_on_layer(profile: Profile, entry: Limitation) -> str:
    """Return the advice for a limitation on a layer of an IR."""
    if entry.feature in _LEFT_IN_LAYERS:
        return _ENGINE
    if must_go(entry):
        return f"rewrite the layer: tensorsplit lower MODEL --for {profile.engine} -o OUT"
    return advice(profile, entry)


def advice_with_lengths(fix: Callable[..., str], profile: Profile, entry: Limitation) -> str:
    """Return the advice for a limitation on a split whose lengths are floats until it runs."""
    found: str = fix(profile, entry)
    if _COMMAND not in found:
        return found
    return f"give the lengths as the attribute, then {found}"
