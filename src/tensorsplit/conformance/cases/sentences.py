"""The sentences of the standards that cases test: in our words, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_WORDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "types": ("Type Constraints: T", "the data has one of the listed types"),
        "axis": ("Attributes: axis", "the data is cut along `axis`"),
        "axis-range": ("Attributes: axis", "the axis is one of the data's"),
        "negative-axis": ("Attributes: axis", "a negative axis counts from the back"),
        "default-axis": ("Attributes: axis", "without the attribute the axis is 0"),
        "rank": ("Attributes: axis", "the axis is one of the data's, so that a scalar has none"),
        "lengths": ("Inputs: split", "each part has the length that `split` lists for it"),
        "lengths-attribute": (
            "Attributes: split",
            "each part has the length that `split` lists for it",
        ),
        "lengths-type": ("Inputs: split", "the lengths are a 1-D tensor of int64"),
        "lengths-or-chunk": (
            "Inputs: split, Type Constraints: I",
            "`split` is a scalar or 1-D, of int32 or int64",
        ),
        "floats": ("Inputs: split", "the lengths may come in an input of the data's own type"),
        "sum": ("Inputs: split", "the lengths add up to the dimension"),
        "not-negative": ("Inputs: split", "no length is negative"),
        "equal": ("Summary", "without lengths there are equal parts, one for each output"),
        "count": (
            "Attributes: num_outputs",
            "there are that many parts, of which the last may be smaller",
        ),
        "one-of-two": ("Summary", "exactly one of `split` and `num_outputs` is given"),
        "outputs": ("Outputs", "there are as many outputs as parts"),
        "signature": ("Inputs, Attributes", "the version has no other operands than the listed"),
        "chunks": ("Summary", "a scalar is the length of every chunk but maybe the last one"),
        "chunk-positive": ("Summary", "the length of a chunk is positive"),
        "ones": ("Summary", "without lengths each part has length 1"),
        "keepdims": ("Attributes: keepdims", "without lengths, 0 drops the axis"),
        "keepdims-ignored": ("Attributes: keepdims", "`keepdims` is ignored if lengths are given"),
        "num_splits": (
            "Attributes: num_splits",
            "there are that many equal parts, so that it divides the dimension",
        ),
        "split_lengths": ("Inputs: split_lengths", "each part has the length listed for it"),
        "remainder": ("Inputs: split_lengths", "one length may be -1, which is what is left"),
        "axis-input": ("Inputs: axis", "an integer in [-rank, rank-1]"),
        "any-type": ("Types", "the data may be of any type"),
        "initializer": (
            "ONNX IR, Graphs: initializers",
            "an initializer that is an input as well is a default, which a fed value replaces",
        ),
        "subgraph": ("ONNX IR, Names in a graph", "a body sees the names around it"),
        "function": ("ONNX IR, Functions", "a function's body stands for its call"),
        "position": ("ONNX SequenceAt, SequenceErase and SequenceInsert: position", "in range"),
        "output": ("Outputs", "the parts are a sequence, in order"),
        "SequenceAt": (
            "ONNX SequenceAt: position",
            "positions count the parts, from the back if negative",
        ),
        "SequenceLength": ("ONNX SequenceLength: Outputs", "the number of parts"),
        "SequenceInsert": (
            "ONNX SequenceInsert: position",
            "a tensor goes in front of a part, or to the end",
        ),
        "SequenceErase": ("ONNX SequenceErase: position", "one part goes, without one the last"),
        "ConcatFromSequence": (
            "ONNX ConcatFromSequence: Summary",
            "the parts joined again, on the axis or a new one",
        ),
        "Loop": ("ONNX Loop: Summary", "a body may take a part of an outer sequence in each turn"),
        "SequenceMap": ("ONNX SequenceMap: Summary", "a graph on each part, in order"),
    }
)

_ELSEWHERE: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("onnx.Split-1", "negative-axis"): "left open by the page; docs/errata.md, D13",
        ("onnx.Split-2", "negative-axis"): "left open by the page; docs/errata.md, D13",
        ("onnx.Split-1", "not-negative"): "left open by the page; docs/errata.md, D7",
        ("onnx.Split-2", "not-negative"): "left open by the page; docs/errata.md, D7",
        ("onnx.Split-11", "not-negative"): "Attributes: split",
        ("onnx.Split-1", "sum"): "Attributes: split, the lengths of the outputs",
        ("onnx.Split-2", "sum"): "Attributes: split, the lengths of the outputs",
        ("onnx.Split-11", "sum"): "Attributes: split, the lengths of the outputs",
        ("onnx.SplitToSequence-11", "sum"): "Summary",
        ("onnx.SplitToSequence-24", "sum"): "Summary",
        ("openvino.VariadicSplit-1", "rank"): "Inputs: axis",
        ("openvino.Split-1", "rank"): "Inputs: axis",
    }
)
"""Where a sentence stands on the page of a version, if not where it stands on the others'."""


def rule(operator: str, *keys: str) -> str:
    """What is tested, in our words, and where the standard says it.

    Args:
        operator: The operator version, which names the page.
        keys: The sentences, by short names.
    """
    vendor, _, name = operator.partition(".")
    page = {"onnx": "ONNX", "openvino": "OpenVINO"}[vendor]
    said = [f"{_WORDS[key][1]} ({_ELSEWHERE.get((operator, key), _WORDS[key][0])})" for key in keys]
    return f"{page} {name}: {'; '.join(said)}"
