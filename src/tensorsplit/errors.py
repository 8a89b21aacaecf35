"""The one error type of the package."""

from __future__ import annotations

from tensorsplit.kinds import KINDS, Kind


class SplitError(ValueError):
    """A refusal: what was asked for has no exact meaning, or can't be done safely.

    Args:
        kind: The kind of refusal; gives the code.
        problem: What is wrong, with the values seen.
        fix: What would be right, as an instruction.
        parameter: The operand, attribute or argument at fault, in the standard's spelling.
        operator: The operator version, such as ``onnx.Split-18``.
        node: The node of a model, with its path through bodies and functions.

    Attributes:
        code: The kind's code, such as ``TS302``; stable across releases.
    """

    def __init__(
        self,
        kind: Kind,
        problem: str,
        fix: str = "",
        *,
        parameter: str | None = None,
        operator: str | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(kind, problem, fix)
        self.kind = kind
        self.code = kind.code
        self.problem = problem
        self.fix = fix
        self.parameter = parameter
        self.operator = operator
        self.node = node

    def located(self, *, operator: str | None = None, node: str | None = None) -> SplitError:
        """Fill in the operator version or the node where they are not known yet; returns self."""
        self.operator = self.operator or operator
        self.node = self.node or node
        return self

    def __reduce__(self) -> tuple[object, ...]:
        place = {"parameter": self.parameter, "operator": self.operator, "node": self.node}
        return (_rebuild, (type(self), self.code, self.problem, self.fix, place))

    def __str__(self) -> str:
        place = [self.operator] if self.operator else []
        if self.parameter:
            place.append(f"parameter '{self.parameter}'")
        if self.node:
            place.append(f"node '{self.node}'")
        where = f"{', '.join(place)}: " if place else ""
        message = f"[{self.code}] {where}{self.problem}"
        return f"{message}; {self.fix}" if self.fix else message


def _rebuild(
    error: type[SplitError], code: str, problem: str, fix: str, place: dict[str, str | None]
) -> SplitError:
    return error(KINDS[code], problem, fix, **place)


def show(value: object) -> str:
    """Any value as one line of bounded length, whatever its own `repr` does."""
    if type(value) is int:
        return show_int(value)
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - someone else's repr may raise anything
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def show_int(value: int) -> str:
    """An integer as text; Python refuses to print those of thousands of digits."""
    if -(1 << 128) < value < 1 << 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2^{value.bit_length() - 1} or more"
