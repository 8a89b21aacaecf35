"""One thing that was found, and everything that was found in a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tensorsplit.core.errors import SplitError
from tensorsplit.model.check.table import ERROR, NOTE, WARNING, Check


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        code: Of a check (``TS8xx``, see ``docs/check.md``) or a refusal (``docs/errors.md``).
        severity: ``error``, ``warning`` or ``note``.
        node: The path of the node, such as ``graph/loop_1.body/split_0``.
        message: What is wrong or odd, with the values seen.
        fix: What would be right, as an instruction; may be empty.
        operator: The operator version, such as ``onnx.Split-18``; None where there is none.
        parameter: The operand, attribute or output at fault, in the standard's spelling, or None.
    """

    code: str
    severity: str
    node: str
    message: str
    fix: str = ""
    operator: str | None = None
    parameter: str | None = None

    def __str__(self) -> str:
        where = f"{self.parameter}: " if self.parameter else ""
        text = f"{self.severity} [{self.code}] {self.node}: {where}{self.message}"
        return f"{text}; {self.fix}" if self.fix else text


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that was found in a model.

    Attributes:
        findings: In the order of the nodes; the findings of one node are next to each other.
        split_nodes: How many split nodes were looked at.
    """

    findings: tuple[Finding, ...]
    split_nodes: int

    def count(self, severity: str) -> int:
        """How many findings there are of a severity."""
        return Counter(finding.severity for finding in self.findings)[severity]

    @property
    def summary(self) -> str:
        """Such as ``2 errors, 1 warning in 5 split nodes``."""
        counts = [(self.count(severity), severity) for severity in (ERROR, WARNING, NOTE)]
        said = [_counted(number, word) for number, word in counts if number]
        return f"{', '.join(said) or 'no findings'} in {_counted(self.split_nodes, 'split node')}"


def of_check(
    check: Check,
    node: str,
    message: str,
    fix: str = "",
    *,
    operator: str | None = None,
    parameter: str | None = None,
) -> Finding:
    """A finding of one of the checks."""
    return Finding(check.code, check.severity, node, message, fix, operator, parameter)


def of_error(error: SplitError, node: str = "graph") -> Finding:
    """The finding that a refusal amounts to.

    Args:
        error: The refusal.
        node: The place, where the refusal does not name one.
    """
    place = error.node or node
    return Finding(
        error.code, ERROR, place, error.problem, error.fix, error.operator, error.parameter
    )


def gathered(findings: Iterable[Finding], split_nodes: int) -> Report:
    """The report of findings: each once, those of one node together, the gravest of it first."""
    by_node: dict[str, dict[Finding, None]] = {}
    for finding in findings:
        by_node.setdefault(finding.node, {})[finding] = None
    rank = {ERROR: 0, WARNING: 1, NOTE: 2}
    ordered = [
        finding
        for found in by_node.values()
        for finding in sorted(found, key=lambda finding: rank[finding.severity])
    ]
    return Report(tuple(ordered), split_nodes)


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
