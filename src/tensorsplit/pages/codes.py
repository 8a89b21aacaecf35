"""The pages of the codes: every kind of `SplitError`, and everything that `check` reports."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import groupby

from tensorsplit.core.errors import Kind
from tensorsplit.model.check.checks import REPORTED
from tensorsplit.pages.content import DECISIONS, Note
from tensorsplit.pages.markdown import environment

_GROUPS = {
    "TS1": "How the operator was called",
    "TS2": "The tensor to split",
    "TS3": "Lengths",
    "TS4": "Buffers given as `out`",
    "TS5": "Models",
    "TS6": "Engines",
    "TS7": "Files and the command line",
    "TS8": "What `check` reports",
}


@dataclass(frozen=True, slots=True)
class CodeExample:
    """Code that triggers a code, and the message: what is wrong, then what would be right.

    Its last line is the call that is refused, or that returns the finding.

    Attributes:
        language: ``py``, or ``sh`` for commands.
    """

    call: str
    message: str
    language: str = "py"


@dataclass(frozen=True, slots=True)
class CodePage:
    """The contents of the page of a code."""

    code: str
    title: str
    severity: str  # of a finding: error, warning or note
    meaning: str
    decisions: tuple[Note, ...]
    url: str
    example: CodeExample


def page_of_code(kind: Kind) -> CodePage:
    """Return the page of a code; ``dataclasses.asdict`` of it can be written as JSON."""
    return CodePage(
        code=kind.code,
        title=kind.title,
        severity=kind.severity,
        meaning=kind.meaning,
        decisions=tuple(Note(d.id, d.text) for d in DECISIONS if d.id in kind.decisions),
        url=kind.url,
        example=code_examples()[kind.code],
    )


@cache
def code_examples() -> dict[str, CodeExample]:
    """Return the examples by their code; in them `np` is NumPy, `ts` this package."""
    text = (files(__package__) / "code_examples.json").read_text(encoding="utf-8")
    return {code: CodeExample(**example) for code, example in json.loads(text).items()}


def section(page: CodePage) -> str:
    """Return a page as a section of ``docs/errors.md``."""
    return environment(__package__).get_template("code.md.jinja").render(page=page)


def codes_page() -> str:
    """Return ``docs/errors.md``: every code, in their order."""
    groups = [
        (prefix, _GROUPS[prefix], [section(page_of_code(kind)) for kind in kinds])
        for prefix, kinds in groupby(REPORTED.values(), key=lambda kind: kind.code[:3])
    ]
    template = environment(__package__).get_template("errors.md.jinja")
    return template.render(groups=groups, last_decision=DECISIONS[-1].id)
