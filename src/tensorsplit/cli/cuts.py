"""Cuts as they are drawn: what is given, what follows, or why it can't be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorsplit.cli.files import write_files
from tensorsplit.cli.screen import show, write
from tensorsplit.core.errors import UNWRITABLE, SplitError
from tensorsplit.core.plan import SplitPlan, UncountedPlan
from tensorsplit.core.resolve import Intent
from tensorsplit.pages.content import RULES
from tensorsplit.pages.layout import printable


@dataclass(frozen=True, slots=True)
class Cut:
    """A cut to draw.

    Attributes:
        operator: The operator version; only its name where the version is not known.
        given: The operands, as text.
        intent: What is asked for; None if not even that can be told.
        plan: What follows; None if it can't be told before the model runs.
        note: Why it can't be told, or a remark.
        node: The path of the node in a model; empty if there is no model.
    """

    operator: str
    given: str
    intent: Intent | None
    plan: SplitPlan | UncountedPlan | None
    note: str = ""
    node: str = ""


def draw(cuts: Sequence[Cut], svg: Path | None) -> None:
    """Draw cuts in the terminal, and into a file.

    Args:
        cuts: The cuts; those without a plan are told in words.
        svg: The file; None for none.

    Raises:
        SplitError: TS702 if the file can't be written, or nothing can be drawn in it.
    """
    from rich.text import Text

    from tensorsplit.pages.terminal import Picture

    if svg is not None:
        _write_svg(cuts, svg)
    for number, cut in enumerate(cuts):
        if number:
            write("\n")
        title = "  ".join(filter(None, (cut.node, cut.operator)))
        given = f"  {printable(cut.given)}" if cut.given else ""
        parts = [Text.assemble((printable(title), "bold"), given)]
        rule = cut.intent.rule if cut.intent is not None else None
        if rule is not None:
            parts.append(Text(f"Rule: {RULES[rule]}", style="dim"))
        if cut.note:
            parts.append(Text(printable(cut.note)))
        show(*parts, *([Picture(cut.plan)] if cut.plan is not None else []))


def _write_svg(cuts: Sequence[Cut], target: Path) -> None:
    from tensorsplit.pages.svg import sheet

    figures = [(cut.node or cut.operator, cut.plan) for cut in cuts if cut.plan is not None]
    if not figures:
        raise SplitError(
            UNWRITABLE,
            f"{target}: no cut can be drawn, as none is known before the model runs",
            "leave out --svg to read what is known",
            parameter="svg",
        )
    document = sheet(figures).encode()
    write_files({target: lambda file: file.write(document)})
