"""Findings of `check`, and how they are written: as text, JSON, SARIF or for GitHub."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from tensorsplit.core.errors import DOCUMENTATION, ENGLISH, Kind, SplitError, Words
from tensorsplit.model.check.checks import ERROR, NOTE, REPORTED, SEVERITIES, WARNING

JSON_VERSION = 1
"""Raised when a field of the JSON report changes its meaning or goes; new ones may come."""

SARIF_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)


REWRITE = "rewrite it with: "
"""The beginning of a fix that is one command, which rewrites all that an engine does not run."""

_MOST_TITLES = 5
"""So many nodes with the same findings are named in the text."""

_COMMAND = re.compile(r"tensorsplit [^()]* MODEL[^()]*")


@dataclass(frozen=True, slots=True, repr=False)
class Finding:
    """One thing that was found.

    Attributes:
        code: Of a check (``TS8xx``) or a refusal; ``docs/errors.md`` explains each.
        severity: ``error``, ``warning`` or ``note``.
        node: The path of the node, such as ``graph/loop_1.body/split_0``.
        message: What is wrong or odd, with the values seen.
        fix: What would be right, as an instruction; may be empty. Commands in it call the model
            ``MODEL``.
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

    def lines(self, words: Words) -> tuple[str, ...]:
        """Return the message and the fix, without the node."""
        message = ": ".join(filter(None, (self.parameter, words.made(self.message))))
        first = f"{words.text(self.severity)} [{self.code}] {message}"
        return (first, f"  {words.made(self.fix)}") if self.fix else (first,)

    def __repr__(self) -> str:
        return f"<Finding {self}>"

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] {self.in_one_line(self.node, self.parameter)}"

    def in_one_line(self, *places: str | None) -> str:
        """Return the places that are given, the message and the fix."""
        text = ": ".join(filter(None, (*places, self.message)))
        return f"{text}; {self.fix}" if self.fix else text

    @property
    def subject(self) -> str:
        """The operator version and the parameter, as far as there are any."""
        return ", ".join(filter(None, (self.operator, self.parameter)))

    def as_warning(self, reason: str) -> Finding:
        """Return an error as a warning, because of a reason; any other finding as it is."""
        if self.severity != ERROR:
            return self
        return replace(self, severity=WARNING, message=f"{self.message} ({reason})")


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Everything that was found in a model: the findings of one node are next to each other."""

    findings: tuple[Finding, ...]
    split_nodes: int
    places: tuple[str, ...] = ()  # the paths of all nodes, in their order

    def count(self, severity: str) -> int:
        """Return how many findings there are of a severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def of_file(self, path: str) -> CheckReport:
        """Return the report with fixes that can be copied: the path of the model for MODEL."""
        whole = partial(_COMMAND.sub, lambda found: found[0].replace("MODEL", shlex.quote(path)))
        return replace(self, findings=tuple(replace(e, fix=whole(e.fix)) for e in self.findings))

    @property
    def summary(self) -> str:
        """Such as ``2 errors, 1 warning in 5 split nodes``."""
        return self.summed_up(ENGLISH)

    def summed_up(self, words: Words) -> str:
        """Return the summary in these words."""
        counts = [(self.count(severity), severity) for severity in SEVERITIES]
        found = words.text(", ").join(
            words.amount(number, word) for number, word in counts if number
        )
        if not self.split_nodes:
            none = words.text("no split nodes")
            return words.text("; ").join(filter(None, (found, none)))
        nodes = words.amount(self.split_nodes, "split node")
        return words.text(
            "{found} in {nodes}", found=found or words.text("no findings"), nodes=nodes
        )


Reports: TypeAlias = Mapping[str, CheckReport]
"""What was found in each model, by its path or what to call it."""


def of_check(
    check: Kind,
    node: str,
    message: str,
    fix: str = "",
    *,
    operator: str | None = None,
    parameter: str | None = None,
) -> Finding:
    """Return a finding of one of the checks."""
    return Finding(check.code, check.severity, node, message, fix, operator, parameter)


def of_error(error: SplitError) -> Finding:
    """Return the finding that a refusal amounts to; of the graph where it names no node."""
    whose = {"operator": error.operator, "parameter": error.parameter}
    return of_check(error.kind, error.node or "graph", error.problem, error.fix, **whose)


def gathered(
    findings: Iterable[Finding], split_nodes: int, places: Iterable[str] = ()
) -> CheckReport:
    """Build the report: each finding once, grouped by node, the most severe of a node first.

    The nodes are in the order of the places, and then in that of the other findings.
    """
    nodes: dict[str, dict[Finding, None]] = {place: {} for place in places}
    for finding in findings:
        nodes.setdefault(finding.node, {})[finding] = None
    ordered = (
        sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))
        for found in nodes.values()
    )
    return CheckReport(tuple(chain.from_iterable(ordered)), split_nodes, tuple(nodes))


def combined(reports: Sequence[CheckReport]) -> CheckReport:
    """Combine the reports of one model, one for each target; equal findings become one."""
    findings = chain.from_iterable(report.findings for report in reports)
    places = chain.from_iterable(report.places for report in reports)
    return gathered(findings, max(report.split_nodes for report in reports), places)


def totalled(reports: Reports) -> CheckReport:
    """Combine the reports of all models into one."""
    found = chain.from_iterable(report.findings for report in reports.values())
    return CheckReport(tuple(found), sum(report.split_nodes for report in reports.values()))


def as_text(reports: Reports, *, summary: bool = True, words: Words = ENGLISH) -> str:
    """Return the reports for people: the findings of each node, then a line that sums them up.

    Nodes of a model with the same findings are listed together; of many, the first ones.
    """
    blocks = []
    for model, report in reports.items():
        alike: dict[tuple[str, ...], list[str]] = {}
        for node, found in groupby(report.findings, key=lambda finding: finding.node):
            findings = list(found)
            operator = next((f.operator for f in findings if f.operator), None)
            title = f"{node} ({operator})" if operator else node
            lines = [line for each in findings for line in _without_command(each).lines(words)]
            whole = f"{model}: {title}" if len(reports) > 1 else title
            alike.setdefault(tuple(lines), []).append(whole)
        for shared, titles in alike.items():
            shown = titles[: _MOST_TITLES if len(titles) > _MOST_TITLES + 1 else None]
            if more := len(titles) - len(shown):
                shown.append(words.text("and {nodes}", nodes=words.amount(more, "more node")))
            blocks.append("\n".join((*shown, *(f"  {line}" for line in shared))))
        commands = Counter(each.fix for each in report.findings if each.fix.startswith(REWRITE))
        fixes = [
            fix.removeprefix(REWRITE)
            + words.text("    # fixes {findings}", findings=words.amount(count, "finding"))
            for fix, count in commands.items()
        ]
        blocks += ["\n".join(fixes)] if fixes else []
    if summary:
        total = totalled(reports).summed_up(words)
        models = words.amount(len(reports), "model")
        whole = words.text("{total} of {models}", total=total, models=models)
        blocks.append(whole if len(reports) > 1 else total)
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _without_command(finding: Finding) -> Finding:
    """Return a finding without the command that the text has once for each model."""
    return replace(finding, fix="") if finding.fix.startswith(REWRITE) else finding


def as_json(reports: Reports, targets: Sequence[str], version: str) -> str:
    """Return the reports as JSON of the given version; ``docs/check.md`` describes its fields."""
    total = totalled(reports)
    content = {
        "format": JSON_VERSION,
        "tool": {"name": "tensorsplit", "version": version},
        "model": next(iter(reports)) if len(reports) == 1 else None,
        "models": list(reports),
        "target": targets[0] if len(targets) == 1 else None,
        "targets": list(targets),
        "summary": {
            "errors": total.count(ERROR),
            "warnings": total.count(WARNING),
            "notes": total.count(NOTE),
            "split_nodes": total.split_nodes,
        },
        "findings": [
            {
                "code": finding.code,
                "severity": finding.severity,
                "title": REPORTED[finding.code].title,
                "model": model,
                "node": finding.node,
                "operator": finding.operator,
                "parameter": finding.parameter,
                "message": finding.message,
                "fix": finding.fix or None,
                "decisions": list(REPORTED[finding.code].decisions),
                "url": REPORTED[finding.code].url or None,
            }
            for model, report in reports.items()
            for finding in report.findings
        ],
    }
    return json.dumps(content, indent=2) + "\n"


def as_github(reports: Reports) -> str:
    """Return the findings as commands of a GitHub workflow, which shows them beside the commit."""
    lines = []
    for model, report in reports.items():
        for finding in report.findings:
            kind = REPORTED[finding.code]
            level = {NOTE: "notice"}.get(finding.severity, finding.severity)
            values = {"file": str(_path(model)), "line": "1", "title": f"{kind.code} {kind.title}"}
            properties = ",".join(f"{name}={_escaped(text, ':,')}" for name, text in values.items())
            text = f"{finding.in_one_line(finding.node, finding.subject)} ({kind.reference})"
            lines.append(f"::{level} {properties}::{_escaped(text)}\n")
    return "".join(lines)


def _escaped(text: str, others: str = "") -> str:
    """Escape text for a workflow command."""
    for char in f"%\r\n{others}":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def as_sarif(reports: Reports, version: str) -> str:
    """Return the reports as SARIF 2.1.0, with what GitHub asks for."""
    rules = {code: index for index, code in enumerate(REPORTED)}
    uris = [_uri(model) for model in reports]
    driver = {
        "name": "tensorsplit",
        "version": version,
        **({"informationUri": DOCUMENTATION} if DOCUMENTATION else {}),
        "rules": [_rule(kind) for kind in REPORTED.values()],
    }
    run = {
        "tool": {"driver": driver},
        "artifacts": [{"location": {"uri": uri}, "roles": ["analysisTarget"]} for uri in uris],
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(finding, rules[finding.code], {"uri": uri, "index": index})
            for index, (uri, report) in enumerate(zip(uris, reports.values(), strict=True))
            for finding in report.findings
        ],
    }
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(kind: Kind) -> dict[str, object]:
    """Return a check or a refusal; severities are SARIF's own levels."""
    link = f"[{kind.code}]({kind.url})" if kind.url else f"`{kind.reference}`"
    return {
        "id": kind.code,
        "shortDescription": {"text": kind.title},
        "fullDescription": {"text": kind.meaning},
        "help": {"text": kind.meaning, "markdown": f"{kind.meaning} {link}"},
        **({"helpUri": kind.url} if kind.url else {}),
        "defaultConfiguration": {"level": kind.severity},
        "properties": {"tags": list(kind.decisions), "precision": "very-high"},
    }


def _result(finding: Finding, rule: int, artifact: dict[str, Any]) -> dict[str, Any]:
    import hashlib  # loads OpenSSL

    identity = (artifact["uri"], finding.code, finding.node, finding.parameter or "")
    fingerprint = hashlib.sha256("\0".join(identity).encode()).hexdigest()
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": finding.in_one_line(finding.subject)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": artifact,
                    "region": {"startLine": 1},  # a model has no lines, and GitHub asks for one
                },
                "logicalLocations": [
                    {
                        "name": finding.node.rsplit("/", 1)[-1] or finding.node,
                        "fullyQualifiedName": finding.node,
                    }
                ],
            }
        ],
        "partialFingerprints": {"primaryLocationLineHash": f"{fingerprint}:1"},
    }


def _uri(model: str) -> str:
    """Return a path as a URI reference: relative where it lies below the current folder."""
    path = _path(model)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/~!$&'()*+,;=@")


def _path(model: str) -> Path:
    """Return a path relative to the current folder if it is inside that, else an absolute path."""
    path = Path(os.path.relpath(model)) if Path(model).is_absolute() else Path(model)
    return Path(model).absolute() if ".." in path.parts else path
