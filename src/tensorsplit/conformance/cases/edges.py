"""What engines were seen to trip over: outputs without a name, unknown counts, many parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tensorsplit.conformance.case import Case
from tensorsplit.conformance.cases.making import draw, onnx_case
from tensorsplit.conformance.cases.refusals import ATTRIBUTE_SPLITS, INPUT_SPLITS
from tensorsplit.conformance.cases.sentences import rule
from tensorsplit.conformance.cases.versions import OPSETS, SEQUENCES, SPLITS
from tensorsplit.conformance.models.onnx_model import Operand, SplitModel

_MANY = 300


def cases() -> Iterator[Case]:
    """The cases of this group."""
    for operator in SPLITS:
        yield from _unnamed(operator)
        yield _split(operator, "many-parts", (1, 2) * (_MANY // 2), ("outputs",))
        yield _split(operator, "constant-data", (2, 1, 3), ("outputs",), is_constant=True)
        yield _split(
            operator, "constant-strings", (2, 1, 3), ("outputs",), is_constant=True, kind="string"
        )
        yield _split(operator, "many-strings", (7, 1, 9, 3), ("outputs",), kind="string")
    for operator in SEQUENCES:
        yield from _sequences(operator)
    for operator in (*INPUT_SPLITS, *SEQUENCES):
        yield from _unknown_counts(operator)
        yield _overridden_by_right_one(operator)
    yield from _counts()


def _split(
    operator: str,
    name: str,
    sizes: tuple[int, ...],
    keys: tuple[str, ...],
    *,
    kind: str = "float",
    **fields: Any,
) -> Case:
    """A Split of a vector by its lengths, but for what is told."""
    if operator not in ATTRIBUTE_SPLITS:
        said: dict[str, Any] = {"operand": Operand(sizes, "initializer")}
    else:
        said = {"attributes": {"split": sizes}}
    if kind == "string" and operator == SPLITS[0]:
        kind = "double"  # the first version has no strings
    shape = (sum(sizes),)
    model = SplitModel(
        **{
            "operator": operator,
            "opset": draw(f"opset {operator} {name}", OPSETS[operator]),
            "element_type": kind,
            "shape": shape,
            "declared": shape,
            "outputs": len(sizes),
            "sizes": sizes,
            **said,
            **fields,
        }
    )
    is_text = "string" in kind
    return onnx_case(model, f"edge-{name}", rule(operator, *keys), decision="D17" * is_text)


def _unnamed(operator: str) -> Iterator[Case]:
    """A part that nobody wants."""
    for unnamed in ((0,), (2,), (0, 1)):
        name = f"unnamed-{'.'.join(map(str, unnamed))}"
        yield _split(operator, name, (1, 2, 3), ("outputs",), unnamed=unnamed)


def _counts() -> Iterator[Case]:
    """The same where only a count is said."""
    operator = "onnx.Split-18"
    for opset in OPSETS[operator]:
        for dim, sizes in ((6, (2, 2, 2)), (7, (3, 3, 1))):
            for unnamed in ((0,), (2,)):
                model = SplitModel(
                    operator=operator,
                    opset=opset,
                    shape=(dim,),
                    declared=(dim,),
                    attributes={"num_outputs": 3},
                    outputs=3,
                    unnamed=unnamed,
                    sizes=sizes,
                )
                name = f"edge-count-3of{dim}-unnamed-{unnamed[0]}"
                yield onnx_case(model, name, rule(operator, "count", "outputs"))


def _unknown_counts(operator: str) -> Iterator[Case]:
    """Lengths that come at run time, and of which not even the number is declared."""
    is_sequence = operator in SEQUENCES
    for declared in ((6,), ("N",)):
        for sizes in ((2, 4), (6,), (1, 0, 5)):
            operand = Operand(sizes, "runtime", declared=("L",))
            model = SplitModel(
                operator=operator,
                opset=draw(f"opset {operator} {sizes}", OPSETS[operator]),
                shape=(6,),
                declared=declared,
                operand=operand,
                outputs=1 if is_sequence else len(sizes),
                sizes=sizes,
                use="SequenceAt" if is_sequence else "",
                option=(tuple(range(len(sizes))), False) if is_sequence else None,
            )
            yield onnx_case(
                model,
                f"edge-unknown-count-{len(sizes)}",
                rule(operator, "lengths"),
                shape_class="static" if declared == (6,) else "dynamic-axis",
            )


def _overridden_by_right_one(operator: str) -> Case:
    """A default that does not fit, and a value that does."""
    is_sequence = operator in SEQUENCES
    model = SplitModel(
        operator=operator,
        opset=OPSETS[operator][-1],
        shape=(6,),
        declared=("N",),
        operand=Operand((2, 4), "overridable", default=(2, 3)),
        outputs=1 if is_sequence else 2,
        sizes=(2, 4),
        use="output" if is_sequence else "",
    )
    return onnx_case(
        model,
        "edge-default-does-not-fit",
        rule(operator, "initializer"),
        shape_class="dynamic-axis",
        decision="D20",
    )


def _sequences(operator: str) -> Iterator[Case]:
    said: dict[str, dict[str, Any]] = {
        "many-chunks": {"operand": Operand(1, "initializer"), "sizes": (1,) * _MANY},
        "many-lengths": {"operand": Operand((1,) * _MANY, "runtime"), "sizes": (1,) * _MANY},
        "constant-data": {
            "operand": Operand((2, 1, 3), "initializer"),
            "sizes": (2, 1, 3),
            "is_constant": True,
        },
        "strings": {
            "operand": Operand((7, 1, 9, 3), "initializer"),
            "sizes": (7, 1, 9, 3),
            "element_type": "string",
        },
        "chunk-beyond-int32": {"operand": Operand(2**40, "initializer"), "sizes": (6,)},
        "chunk-largest": {"operand": Operand(2**63 - 1, "runtime"), "sizes": (6,)},
    }
    for name, fields in said.items():
        for use in ("output", "ConcatFromSequence", "SequenceLength"):
            shape = (sum(fields["sizes"]),)
            model = SplitModel(
                operator=operator,
                opset=draw(f"opset {operator} {name} {use}", OPSETS[operator]),
                shape=shape,
                declared=shape,
                use=use,
                option=0 if use == "ConcatFromSequence" else None,
                **fields,
            )
            yield onnx_case(
                model,
                f"edge-{name}",
                rule(operator, "chunks" if "chunk" in name else "lengths", use),
                decision="D17" if "strings" in name else "D14" if "beyond" in name else "",
            )
