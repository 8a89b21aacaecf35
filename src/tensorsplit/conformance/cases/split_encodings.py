"""The contents of cases: operator versions, splits in full, their encodings, sentences.

That parts have the lengths given here is stated from the pages of the standards, never computed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tensorsplit.conformance.models.onnx_model import CaseOperand, Fields

_T = TypeVar("_T")


def sample(key: str, options: Sequence[_T]) -> _T:
    """Sample one of the options, always the same for a key, whatever other cases there are.

    Sampled fields are part of the id as far as they matter, so that an id that goes with a change
    of the options never becomes another case under the same name.
    """
    return options[zlib.crc32(key.encode()) % len(options)]


def lengths_text(lengths: Sequence[object]) -> str:
    """Return lengths as a part of an id; many equal ones are counted."""
    text = ".".join(f"{length}".replace("-", "m") for length in lengths)
    return text if len(text) <= 16 else f"{len(lengths)}parts"


OPSETS = {
    "onnx.Split-1": (1,),
    "onnx.Split-2": (2, 9, 10),
    "onnx.Split-11": (11, 12),
    "onnx.Split-13": (13, 15, 17),
    "onnx.Split-18": (18, 19, 21, 24),
    "onnx.SplitToSequence-11": (11, 13, 17, 18, 21, 23),
    "onnx.SplitToSequence-24": (24, 25),
}
"""Opsets in which each operator version is in force, of those that engines of 2026 read."""

SPLITS = tuple(operator for operator in OPSETS if operator.startswith("onnx.Split-"))
SEQUENCES = tuple(operator for operator in OPSETS if operator not in SPLITS)
ATTRIBUTE_SPLITS, INPUT_SPLITS = SPLITS[:3], SPLITS[3:]

COMMON = ("float", "int64", "int32", "double", "float16", "bool", "uint8", "int8")
COMMON_IN_SEQUENCES = ("float", "int64", "int32", "double")
"""Types that engines have; all others are in the cases that are about types."""


@dataclass(frozen=True, slots=True, repr=False)
class Stated:
    """A split of a dimension; `requested` is lengths, a count, the length of a chunk, or None."""

    dim: int
    requested: Any
    sizes: tuple[int, ...]

    def __repr__(self) -> str:
        """Return the key that sampling uses: it stays as it is, so that cases keep their ids."""
        return f"Stated(dim={self.dim!r}, said={self.requested!r}, sizes={self.sizes!r})"


def _lengths(*sizes: int) -> Stated:
    return Stated(sum(sizes), sizes, sizes)


# Even, uneven, a single part, empty parts at every end, many parts, parts of nothing
LENGTHS = (
    *(_lengths(2, 4), _lengths(3, 3), _lengths(5), _lengths(4, 1), _lengths(1, 2, 3)),
    *(_lengths(0, 5), _lengths(5, 0), _lengths(3, 0, 2), _lengths(1, 1, 1, 1)),
    *(_lengths(1, 2, 1, 3, 1, 2, 1, 1), _lengths(*[1, 2] * 10)),
    *(_lengths(0), _lengths(0, 0), _lengths(0, 0, 0)),
)

# A count that divides the dimension
_COUNT_OF_NOTHING = (Stated(0, 1, (0,)), Stated(0, 2, (0, 0)), Stated(0, 5, (0, 0, 0, 0, 0)))
EQUAL = (
    *(Stated(6, 2, (3, 3)), Stated(6, 3, (2, 2, 2)), Stated(5, 1, (5,))),
    *(Stated(4, 4, (1, 1, 1, 1)), Stated(1, 1, (1,)), Stated(34, 17, (2,) * 17)),
    *_COUNT_OF_NOTHING,
)
# A count that leaves less for the last part, and one that leaves nothing
_LAST_SMALLER = (
    *(Stated(7, 3, (3, 3, 1)), Stated(5, 2, (3, 2)), Stated(7, 4, (2, 2, 2, 1))),
    *(Stated(8, 3, (3, 3, 2)), Stated(33, 17, (2,) * 16 + (1,))),
)
_LAST_EMPTY = (Stated(6, 4, (2, 2, 2, 0)), Stated(1, 2, (1, 0)), Stated(9, 4, (3, 3, 3, 0)))

# The length of every chunk but the last one; a dimension of 0 has no chunk
_CHUNKS = (
    *(Stated(6, 2, (2, 2, 2)), Stated(5, 2, (2, 2, 1)), Stated(7, 4, (4, 3)), Stated(3, 7, (3,))),
    *(Stated(5, 5, (5,)), Stated(4, 1, (1, 1, 1, 1)), Stated(35, 2, (2,) * 17 + (1,))),
    *(Stated(0, 1, ()), Stated(0, 3, ())),
)

# Nothing requested: parts of length 1
_ONES = (
    *(Stated(3, None, (1, 1, 1)), Stated(5, None, (1, 1, 1, 1, 1))),
    *(Stated(1, None, (1,)), Stated(20, None, (1,) * 20), Stated(0, None, ())),
)

# OpenVINO's lengths with a -1 that stands for what is left
REMAINDERS = (
    *(Stated(6, (-1, 2), (4, 2)), Stated(6, (2, -1), (2, 4)), Stated(7, (2, -1, 3), (2, 2, 3))),
    *(Stated(6, (6, -1), (6, 0)), Stated(6, (-1, 6), (0, 6)), Stated(5, (-1,), (5,))),
    Stated(9, (1, -1, 1, 1, 1), (1, 5, 1, 1, 1)),
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """One way in which a node gives the lengths of some splits.

    `operand` is the element type of the second input, ``T`` for that of the data, empty without
    one; `attribute` the attribute that gives the lengths instead. `blank` is a second input without
    a name.
    """

    name: str
    form: str
    splits: tuple[Stated, ...]
    rules: tuple[str, ...]
    decision: str = ""
    operand: str = ""
    attribute: str = ""
    is_overridden: bool = False
    keepdims: int | None = None
    blank: bool = False

    def encoded(self, split: Stated, element_type: str) -> Fields:
        """Return the fields of a `SplitModel` for a split, but for its places and shapes."""
        attributes = {self.attribute: split.requested} if self.attribute else {}
        if self.keepdims is not None:
            attributes["keepdims"] = self.keepdims
        operand = None
        if self.operand:
            kind = element_type if self.operand == "T" else self.operand
            default = _another(split) if self.is_overridden else None
            operand = CaseOperand(split.requested, self.form, kind, default)
        return {
            "attributes": attributes,
            "operand": operand,
            "blank": self.blank,
            "sizes": split.sizes,
            "keepdims": self.keepdims != 0 or bool(self.operand),
        }

    def text(self, split: Stated) -> str:
        """Return a split as a part of an id."""
        requested = split.requested if isinstance(split.requested, tuple) else (split.requested,)
        text = "" if split.requested is None else f"-{lengths_text(requested)}"
        return f"{self.name}{text}of{split.dim}"

    def sampled(self, key: str, *, of_nothing: bool = False) -> Stated:
        """Sample one of the splits, of a dimension of 0 or another, the same for a key."""
        return sample(
            f"cut {key}", [split for split in self.splits if (not split.dim) == of_nothing]
        )


def _another(split: Stated) -> object:
    """Return another legal value, to be held first, before the right one is fed."""
    if not isinstance(split.requested, tuple):
        return split.requested + 1
    turned = split.requested[::-1]
    if turned != split.requested:
        return turned
    return (*split.requested[:-2], split.requested[-2] + split.requested[-1], 0)


def _by_input(
    name: str, splits: tuple[Stated, ...], rule: str, **rest: Any
) -> tuple[Encoding, ...]:
    """Return the same split with each kind of input; an overridable one is kept, and overridden."""
    rest = {"operand": "int64", **rest}
    several = tuple(
        s for s in splits if s.dim and (not isinstance(s.requested, tuple) or len(s.requested) > 1)
    )
    default = {**rest, "decision": rest.get("decision", "D20")}
    rules = (rule, "initializer")
    return (
        *(
            Encoding(name, form, splits, (rule,), **rest)
            for form in ("initializer", "constant", "runtime")
        ),
        Encoding(name, "overridable", splits, rules, **default),
        Encoding(f"{name}-fed", "overridable", several, rules, is_overridden=True, **default),
    )


_ATTRIBUTE = Encoding("lengths", "attribute", LENGTHS, ("lengths-attribute",), attribute="split")
_EQUAL = Encoding("equal", "absent", EQUAL, ("equal",))
_LENGTHS = _by_input("lengths", LENGTHS, "lengths")
_SMALLER = (*EQUAL, *_LAST_SMALLER)
_COUNT = Encoding("count", "attribute", _SMALLER, ("count",), attribute="num_outputs")
_JUST_ONES = Encoding("ones", "absent", _ONES, ("ones",))
_IGNORED: Fields = {"rule": "keepdims-ignored", "keepdims": 0, "decision": "D8"}
_SEQUENCE = (
    *_LENGTHS,
    *_by_input("lengths-i32", LENGTHS, "lengths", operand="int32")[::2],
    *_by_input("chunks", _CHUNKS, "chunks"),
    *_by_input("chunks-i32", _CHUNKS, "chunks", operand="int32")[::2],
    _by_input("lengths-keepdims0", LENGTHS, **_IGNORED)[0],
    _by_input("chunks-keepdims0", _CHUNKS, **_IGNORED)[0],
    _JUST_ONES,
    replace(_JUST_ONES, name="ones-keepdims1", rules=("keepdims",), keepdims=1),
    replace(_JUST_ONES, name="ones-keepdims0", rules=("keepdims",), keepdims=0),
    replace(_JUST_ONES, name="ones-blank", blank=True),
)

ENCODINGS = {
    "onnx.Split-1": (
        *(_ATTRIBUTE, _EQUAL),
        *_by_input("lengths", LENGTHS, "floats", operand="T", decision="D12"),
    ),
    "onnx.Split-2": (_ATTRIBUTE, _EQUAL),
    "onnx.Split-11": (_ATTRIBUTE, _EQUAL),
    "onnx.Split-13": (*_LENGTHS, _EQUAL, replace(_EQUAL, name="equal-blank", blank=True)),
    "onnx.Split-18": (
        *_LENGTHS,
        _COUNT,
        replace(_COUNT, name="count-last-empty", splits=(*_LAST_EMPTY, *_COUNT_OF_NOTHING)),
        replace(_COUNT, name="count-blank", blank=True),
    ),
    "onnx.SplitToSequence-11": _SEQUENCE,
    "onnx.SplitToSequence-24": _SEQUENCE,
}
"""The encodings of each ONNX operator version."""

_SENTENCES = """
types | Type Constraints: T | the data has one of the listed types
axis | Attributes: axis | the data is cut along `axis`
axis-range | Attributes: axis | the axis is one of the data's
negative-axis | Attributes: axis | a negative axis counts from the back
default-axis | Attributes: axis | without the attribute the axis is 0
rank | Attributes: axis | the axis is one of the data's, so that a scalar has none
lengths | Inputs: split | each part has the length that `split` lists for it
lengths-attribute | Attributes: split | each part has the length that `split` lists for it
lengths-type | Inputs: split | the lengths are a 1-D tensor of int64
lengths-or-chunk | Inputs: split, Type Constraints: I | \
`split` is a scalar or 1-D, of int32 or int64
floats | Inputs: split | the lengths may come in an input of the data's own type
sum | Inputs: split | the lengths add up to the dimension
not-negative | Inputs: split | no length is negative
equal | Summary | without lengths there are equal parts, one for each output
count | Attributes: num_outputs | there are that many parts, of which the last may be smaller
one-of-two | Summary | exactly one of `split` and `num_outputs` is given
outputs | Outputs | there are as many outputs as parts
signature | Inputs, Attributes | the version has no other operands than the listed
chunks | Summary | a scalar is the length of every chunk but maybe the last one
chunk-positive | Summary | the length of a chunk is positive
ones | Summary | without lengths each part has length 1
keepdims | Attributes: keepdims | without lengths, 0 drops the axis
keepdims-ignored | Attributes: keepdims | `keepdims` is ignored if lengths are given
num_splits | Attributes: num_splits | \
there are that many equal parts, so that it divides the dimension
split_lengths | Inputs: split_lengths | each part has the length listed for it
remainder | Inputs: split_lengths | one length may be -1, which is what is left
axis-input | Inputs: axis | an integer in [-rank, rank-1]
any-type | Types | the data may be of any type
initializer | ONNX IR, Graphs: initializers | \
an initializer that is an input as well is a default, which a fed value replaces
subgraph | ONNX IR, Names in a graph | a body sees the names around it
function | ONNX IR, Functions | a function's body stands for its call
position | ONNX SequenceAt, SequenceErase and SequenceInsert: position | in range
output | Outputs | the parts are a sequence, in order
SequenceAt | ONNX SequenceAt: position | positions count the parts, from the back if negative
SequenceLength | ONNX SequenceLength: Outputs | the number of parts
SequenceInsert | ONNX SequenceInsert: position | a tensor goes in front of a part, or to the end
SequenceErase | ONNX SequenceErase: position | one part goes, without one the last
ConcatFromSequence | ONNX ConcatFromSequence: Summary | \
the parts joined again, on the axis or a new one
Loop | ONNX Loop: Summary | a body may take a part of an outer sequence in each turn
SequenceMap | ONNX SequenceMap: Summary | a graph on each part, in order
"""
"""The sentences of the standards: a short name, where each stands, and what, in our words."""

_WORDS = {
    key: (where, sentence)
    for key, where, sentence in (line.split(" | ") for line in _SENTENCES.strip().splitlines())
}

_ELSEWHERE = {
    (operator, key): where
    for operators, key, where in (
        (SPLITS[:2], "negative-axis", "left open by the page; docs/errata.md, D13"),
        (SPLITS[:2], "not-negative", "left open by the page; docs/errata.md, D7"),
        (SPLITS[2:3], "not-negative", "Attributes: split"),
        (ATTRIBUTE_SPLITS, "sum", "Attributes: split, the lengths of the outputs"),
        (SEQUENCES, "sum", "Summary"),
        (("openvino.VariadicSplit-1", "openvino.Split-1"), "rank", "Inputs: axis"),
    )
    for operator in operators
}
"""Where a sentence stands on the page of a version, if not where it stands on the others'."""


def rule(operator: str, *keys: str) -> str:
    """Return the tested rule, and its place in the standard; `keys` are short names."""
    vendor, _, name = operator.partition(".")
    page = {"onnx": "ONNX", "openvino": "OpenVINO"}[vendor]
    sentences = [
        f"{_WORDS[key][1]} ({_ELSEWHERE.get((operator, key), _WORDS[key][0])})" for key in keys
    ]
    return f"{page} {name}: {'; '.join(sentences)}"
