"""The ways in which each operator version can say the lengths."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from tensorsplit.conformance.cases import stated
from tensorsplit.conformance.cases.making import draw, spell_lengths
from tensorsplit.conformance.cases.stated import Stated
from tensorsplit.conformance.models.onnx_model import Operand


@dataclass(frozen=True, slots=True)
class Wording:
    """One way to say the lengths.

    Attributes:
        name: What is said, for the id.
        spelling: Where it is said.
        cuts: What it may say.
        of_nothing: What it may say of a dimension of 0.
        rules: The sentences of the standard, by their short names.
        decision: The decision that it depends on.
        operand: The element type of the second input; empty for lengths that are none.
        attribute: The attribute that holds what is said.
        is_overridden: Whether a value is fed that differs from the initializer's.
        keepdims: The attribute of SplitToSequence.
        blank: Whether the node has a second input without a name.
    """

    name: str
    spelling: str
    cuts: tuple[Stated, ...]
    of_nothing: tuple[Stated, ...]
    rules: tuple[str, ...]
    decision: str = ""
    operand: str = ""
    attribute: str = ""
    is_overridden: bool = False
    keepdims: int | None = None
    blank: bool = False

    def says(self, cut: Stated, element_type: str) -> dict[str, Any]:
        """The fields of a `SplitModel` that say a cut, but for its places and shapes."""
        attributes: dict[str, Any] = {}
        if self.attribute:
            attributes[self.attribute] = cut.said
        if self.keepdims is not None:
            attributes["keepdims"] = self.keepdims
        operand = None
        if self.operand:
            kind = element_type if self.operand == "T" else self.operand
            default = _another(cut) if self.is_overridden else None
            operand = Operand(cut.said, self.spelling, kind, default)
        return {
            "attributes": attributes,
            "operand": operand,
            "blank": self.blank,
            "sizes": cut.sizes,
            "keepdims": self.keepdims != 0 or bool(self.operand),
        }

    def spell(self, cut: Stated) -> str:
        """A cut as a part of an id."""
        said = cut.said if isinstance(cut.said, tuple) else (cut.said,)
        text = "" if cut.said is None else f"-{spell_lengths(said)}"
        return f"{self.name}{text}of{cut.dim}"


def _another(cut: Stated) -> Any:
    """Something else that could be said: what was said first, before another value was fed."""
    if not isinstance(cut.said, tuple):
        return cut.said + 1
    turned = cut.said[::-1]
    if turned != cut.said:
        return turned
    return (*cut.said[:-2], cut.said[-2] + cut.said[-1], 0)


_INPUT_SPELLINGS = ("initializer", "constant", "runtime", "overridable")
_COUNTS = (*stated.EQUAL, *stated.LAST_SMALLER)


def _by_input(
    name: str,
    cuts: tuple[Stated, ...],
    of_nothing: tuple[Stated, ...],
    rule: str,
    *,
    operand: str = "int64",
    keepdims: int | None = None,
    decision: str = "",
) -> tuple[Wording, ...]:
    """The same said by each kind of input; an overridable one is left alone, and overridden."""
    rest: dict[str, Any] = {"keepdims": keepdims, "operand": operand}
    found = [
        Wording(name, spelling, cuts, of_nothing, (rule,), decision, **rest)
        for spelling in _INPUT_SPELLINGS
    ]
    found[-1] = Wording(
        name, "overridable", cuts, of_nothing, (rule, "initializer"), decision or "D20", **rest
    )
    several = tuple(cut for cut in cuts if not isinstance(cut.said, tuple) or len(cut.said) > 1)
    fed = Wording(
        f"{name}-fed",
        "overridable",
        several,
        (),
        (rule, "initializer"),
        decision or "D20",
        is_overridden=True,
        **rest,
    )
    return (*found, fed)


_ATTRIBUTE = Wording(
    "lengths",
    "attribute",
    stated.LENGTHS,
    stated.NO_LENGTHS,
    ("lengths-attribute",),
    attribute="split",
)
_EQUAL = Wording("equal", "absent", stated.EQUAL, stated.COUNT_OF_NOTHING, ("equal",))
_LENGTHS = _by_input("lengths", stated.LENGTHS, stated.NO_LENGTHS, "lengths")
_SEQUENCE = (
    *_LENGTHS,
    *_by_input("lengths-i32", stated.LENGTHS, stated.NO_LENGTHS, "lengths", operand="int32")[::2],
    *_by_input("chunks", stated.CHUNKS, stated.NO_CHUNKS, "chunks"),
    *_by_input("chunks-i32", stated.CHUNKS, stated.NO_CHUNKS, "chunks", operand="int32")[::2],
    *(
        _by_input(f"{name}-keepdims0", cuts, none, "keepdims-ignored", keepdims=0, decision="D8")[0]
        for name, cuts, none in (
            ("lengths", stated.LENGTHS, stated.NO_LENGTHS),
            ("chunks", stated.CHUNKS, stated.NO_CHUNKS),
        )
    ),
    Wording("ones", "absent", stated.ONES, stated.NO_ONES, ("ones",)),
    Wording("ones-keepdims1", "absent", stated.ONES, stated.NO_ONES, ("keepdims",), keepdims=1),
    Wording("ones-keepdims0", "absent", stated.ONES, stated.NO_ONES, ("keepdims",), keepdims=0),
    Wording("ones-blank", "absent", stated.ONES, stated.NO_ONES, ("ones",), blank=True),
)

WORDINGS = MappingProxyType(
    {
        "onnx.Split-1": (
            _ATTRIBUTE,
            _EQUAL,
            *_by_input(
                "lengths", stated.LENGTHS, stated.NO_LENGTHS, "floats", operand="T", decision="D12"
            ),
        ),
        "onnx.Split-2": (_ATTRIBUTE, _EQUAL),
        "onnx.Split-11": (_ATTRIBUTE, _EQUAL),
        "onnx.Split-13": (
            *_LENGTHS,
            _EQUAL,
            Wording(
                "equal-blank",
                "absent",
                stated.EQUAL,
                stated.COUNT_OF_NOTHING,
                ("equal",),
                blank=True,
            ),
        ),
        "onnx.Split-18": (
            *_LENGTHS,
            Wording(
                "count",
                "attribute",
                _COUNTS,
                stated.COUNT_OF_NOTHING,
                ("count",),
                attribute="num_outputs",
            ),
            Wording(
                "count-last-empty",
                "attribute",
                stated.LAST_EMPTY,
                stated.COUNT_OF_NOTHING,
                ("count",),
                attribute="num_outputs",
            ),
            Wording(
                "count-blank",
                "attribute",
                _COUNTS,
                stated.COUNT_OF_NOTHING,
                ("count",),
                attribute="num_outputs",
                blank=True,
            ),
        ),
        "onnx.SplitToSequence-11": _SEQUENCE,
        "onnx.SplitToSequence-24": _SEQUENCE,
    }
)
"""Every way of every ONNX operator version."""


def drawn_cut(wording: Wording, key: str, of_nothing: bool = False) -> Stated:
    """One of the cuts that a wording may say, always the same for a key."""
    return draw(f"cut {key}", wording.of_nothing if of_nothing else wording.cuts)
