"""What `check` finds in a model, and how it is written: as text, JSON or SARIF 2.1.0."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensorsplit.core.errors import SplitError, count_of
from tensorsplit.model.check.checks import (
    ERROR,
    NOTE,
    REPORTED,
    SEVERITIES,
    WARNING,
    Check,
)

JSON_VERSION = 1
"""Raised when a field of the JSON report changes its meaning or goes; new ones may come."""

SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


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

    @property
    def lines(self) -> tuple[str, ...]:
        """What is wrong or odd, and what would be right, without the node."""
        where = f"{self.parameter}: " if self.parameter else ""
        first = f"{self.severity} [{self.code}] {where}{self.message}"
        return (first, f"  {self.fix}") if self.fix else (first,)

    def __str__(self) -> str:
        where = f"{self.parameter}: " if self.parameter else ""
        text = f"{self.severity} [{self.code}] {self.node}: {where}{self.message}"
        return f"{text}; {self.fix}" if self.fix else text

    def as_warning(self, reason: str) -> Finding:
        """An error as a warning, because of a reason; any other finding as it is."""
        if self.severity != ERROR:
            return self
        return replace(self, severity=WARNING, message=f"{self.message} ({reason})")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Everything that was found in a model: the findings of one node are next to each other."""

    findings: tuple[Finding, ...]
    split_nodes: int

    def count(self, severity: str) -> int:
        """How many findings there are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    @property
    def summary(self) -> str:
        """Such as ``2 errors, 1 warning in 5 split nodes``."""
        counts = [(self.count(severity), severity) for severity in SEVERITIES]
        found = ", ".join(count_of(number, word) for number, word in counts if number)
        if not self.split_nodes:
            return f"{found}; no split nodes" if found else "no split nodes"
        return f"{found or 'no findings'} in {count_of(self.split_nodes, 'split node')}"


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


def of_error(error: SplitError) -> Finding:
    """The finding that a refusal amounts to; of the graph where it names no node."""
    node = error.node or "graph"
    return Finding(
        error.code, ERROR, node, error.problem, error.fix, error.operator, error.parameter
    )


def gathered(findings: Iterable[Finding], split_nodes: int) -> CheckReport:
    """The report of findings: each once, those of one node together, the gravest of it first."""
    nodes: dict[str, dict[Finding, None]] = {}
    for finding in findings:
        nodes.setdefault(finding.node, {})[finding] = None
    ordered = [
        finding
        for found in nodes.values()
        for finding in sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
    ]
    return CheckReport(tuple(ordered), split_nodes)


def as_text(report: CheckReport) -> str:
    """The report for people: the findings of each node, then a summary line."""
    blocks = []
    for node, found in groupby(report.findings, key=lambda finding: finding.node):
        findings = list(found)
        operator = next((f.operator for f in findings if f.operator), None)
        lines = [f"{node} ({operator})" if operator else node]
        lines += [f"  {line}" for finding in findings for line in finding.lines]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, report.summary]) + "\n"


def as_json(report: CheckReport, model: str, target: str | None, version: str) -> str:
    """The report as JSON of the given version; ``docs/check.md`` describes its fields."""
    content = {
        "format": JSON_VERSION,
        "tool": {"name": "tensorsplit", "version": version},
        "model": model,
        "target": target,
        "summary": {
            "errors": report.count(ERROR),
            "warnings": report.count(WARNING),
            "notes": report.count(NOTE),
            "split_nodes": report.split_nodes,
        },
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "title": REPORTED[finding.code].title,
                "node": finding.node,
                "operator": finding.operator,
                "parameter": finding.parameter,
                "message": finding.message,
                "fix": finding.fix or None,
                "decisions": list(REPORTED[finding.code].decisions),
            }
            for finding in report.findings
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def as_sarif(report: CheckReport, model: str, version: str) -> str:
    """The report as SARIF 2.1.0; the model is a path, or what to call it."""
    places = {code: index for index, code in enumerate(REPORTED)}
    uri = _uri(model)
    run = {
        "tool": {"driver": {"name": "tensorsplit", "version": version, "rules": _rules()}},
        "artifacts": [{"location": {"uri": uri}, "roles": ["analysisTarget"]}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, places[f.code], uri) for f in report.findings],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules() -> list[dict[str, Any]]:
    """Every check and every refusal as a rule; their severities are SARIF's own levels."""
    return [
        {
            "id": kind.code,
            "shortDescription": {"text": kind.title},
            "fullDescription": {"text": kind.meaning},
            "defaultConfiguration": {"level": kind.severity if isinstance(kind, Check) else ERROR},
            "properties": {"tags": list(kind.decisions)},
        }
        for kind in REPORTED.values()
    ]


def _result(finding: Finding, rule: int, uri: str) -> dict[str, Any]:
    where = ", ".join(filter(None, (finding.operator, finding.parameter)))
    text = f"{where}: {finding.message}" if where else finding.message
    identity = "\0".join((finding.code, finding.node, finding.parameter or ""))
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": f"{text}; {finding.fix}" if finding.fix else text},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": uri, "index": 0}},
                "logicalLocations": [
                    {
                        "name": finding.node.rsplit("/", 1)[-1] or finding.node,
                        "fullyQualifiedName": finding.node,
                    }
                ],
            }
        ],
        "partialFingerprints": {"node/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }


def _uri(model: str) -> str:
    """A path as a URI reference: relative where it lies below the current folder."""
    path = Path(os.path.relpath(model)) if Path(model).is_absolute() else Path(model)
    if ".." in path.parts:
        return Path(model).absolute().as_uri()
    return quote(path.as_posix(), safe="/~!$&'()*+,;=@")
