"""A report as text, as JSON, and as SARIF 2.1.0, the format of code-scanning tools."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tensorsplit.core.errors import KINDS, Kind
from tensorsplit.model.check.finding import Finding, Report
from tensorsplit.model.check.table import (
    CHECKS,
    ERROR,
    NOTE,
    WARNING,
    Check,
    decisions_of,
    title_of,
)

JSON_VERSION = 1
"""Raised when a field of the JSON report changes its meaning or goes; new ones may come."""

SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


def by_node(report: Report) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """The findings of each node, in order."""
    for node, findings in groupby(report.findings, key=lambda finding: finding.node):
        yield node, tuple(findings)


def as_text(report: Report) -> str:
    """The report for people: the findings of each node, then a summary line."""
    blocks = []
    for node, findings in by_node(report):
        operator = next((f.operator for f in findings if f.operator), None)
        lines = [f"{node} ({operator})" if operator else node]
        lines += [f"  {line}" for finding in findings for line in finding_lines(finding)]
        blocks.append("\n".join(lines))
    return "\n\n".join([*blocks, report.summary]) + "\n"


def finding_lines(finding: Finding) -> tuple[str, ...]:
    """One finding as lines of text, without its node: what is wrong, and what would be right."""
    where = f"{finding.parameter}: " if finding.parameter else ""
    first = f"{finding.severity} [{finding.code}] {where}{finding.message}"
    return (first, f"  {finding.fix}") if finding.fix else (first,)


def as_json(report: Report, model: str, target: str | None, version: str) -> str:
    """The report as JSON; its fields are described in ``docs/check.md``.

    Args:
        report: What was found.
        model: What to call the model, as a rule its path.
        target: The engine that it was checked for, or None.
        version: The version of this package.
    """
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
                "title": title_of(finding.code),
                "node": finding.node,
                "operator": finding.operator,
                "parameter": finding.parameter,
                "message": finding.message,
                "fix": finding.fix or None,
                "decisions": list(decisions_of(finding.code)),
            }
            for finding in report.findings
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def as_sarif(report: Report, model: str, version: str) -> str:
    """The report as SARIF 2.1.0.

    Args:
        report: What was found.
        model: The path of the model, or what to call it.
        version: The version of this package.
    """
    rules = _rules()
    places = {rule["id"]: index for index, rule in enumerate(rules)}
    uri = _uri(model)
    run = {
        "tool": {"driver": {"name": "tensorsplit", "version": version, "rules": rules}},
        "artifacts": [{"location": {"uri": uri}, "roles": ["analysisTarget"]}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, places[f.code], uri) for f in report.findings],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rules() -> list[dict[str, Any]]:
    """Every check and every refusal as a rule; their severities are SARIF's own levels."""
    levels = dict.fromkeys(KINDS, ERROR) | {code: c.severity for code, c in CHECKS.items()}
    kinds: list[Kind | Check] = [*KINDS.values(), *CHECKS.values()]
    return [
        {
            "id": kind.code,
            "shortDescription": {"text": kind.title},
            "fullDescription": {"text": kind.meaning},
            "defaultConfiguration": {"level": levels[kind.code]},
            "properties": {"tags": list(kind.decisions)},
        }
        for kind in sorted(kinds, key=lambda kind: kind.code)
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
                    {"name": _last(finding.node), "fullyQualifiedName": finding.node}
                ],
            }
        ],
        "partialFingerprints": {"node/v1": hashlib.sha256(identity.encode()).hexdigest()},
    }


def _last(node: str) -> str:
    """The node's own name."""
    return node.rsplit("/", 1)[-1] or node


def _uri(model: str) -> str:
    """A path as a URI reference: relative where it lies below the current folder."""
    path = Path(os.path.relpath(model)) if Path(model).is_absolute() else Path(model)
    if ".." in path.parts:
        return Path(model).absolute().as_uri()
    return quote(path.as_posix(), safe="/~!$&'()*+,;=@")
