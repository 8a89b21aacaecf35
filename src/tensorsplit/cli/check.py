"""``tensorsplit check``: what is wrong or odd with the splits of a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tensorsplit import __version__
from tensorsplit.cli.rewrite import read_source
from tensorsplit.cli.screen import examples, show, working, write
from tensorsplit.pages.layout import printable

if TYPE_CHECKING:
    from rich.text import Text

    from tensorsplit.model.check.finding import Report

FORMATS = ("text", "json", "sarif")
FOUND = 1

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@click.command(
    epilog=examples(
        "check model.onnx",
        "check model.onnx --for openvino",
        "check model.onnx --format sarif > splits.sarif",
        "check model.xml --strict",
    )
)
@click.argument("model")
@click.option(
    "--for",
    "target",
    metavar="ENGINE",
    help="Report as well what this engine does not run, or runs wrongly: onnxruntime, openvino, or"
    " portable.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="How to write the findings.",
)
@click.option("--strict", is_flag=True, help="Let warnings count as errors for the exit status.")
@click.pass_context
def check(ctx: click.Context, model: str, target: str | None, style: str, strict: bool) -> None:
    """Find what is wrong or odd with the splits of a model, ONNX or OpenVINO IR (.xml).

    MODEL is a path, or - for an ONNX model on standard input. The exit status is 1 if there are
    errors; 2 if the model can't be read at all.
    """
    from tensorsplit.model.check import report as reports
    from tensorsplit.model.check.checker import examine

    with working("checking"):
        report = examine(read_source(model), target)
    name = "stdin" if model == "-" else model
    if style == "json":
        write(reports.as_json(report, name, target, __version__))
    elif style == "sarif":
        write(reports.as_sarif(report, name, __version__))
    elif sys.stdout is not None and sys.stdout.isatty():
        show(*_lines(report))
    else:
        write("".join(f"{printable(line)}\n" for line in reports.as_text(report).splitlines()))
    if report.count("error") or (strict and report.count("warning")):
        ctx.exit(FOUND)


def _lines(report: Report) -> list[Text]:
    """The report as lines with colours."""
    from rich.text import Text

    from tensorsplit.model.check.report import by_node, finding_lines

    lines = []
    for node, findings in by_node(report):
        operator = next((finding.operator for finding in findings if finding.operator), None)
        title = Text(printable(node), "bold")
        lines.append(title.append(f" ({operator})", "not bold") if operator else title)
        for finding in findings:
            first, *rest = map(printable, finding_lines(finding))
            line = Text(f"  {first}", overflow="fold", no_wrap=False)
            line.stylize(_STYLES[finding.severity], 2, 2 + len(finding.severity))
            lines += [line, *(Text(f"  {text}", "dim") for text in rest)]
        lines.append(Text(""))
    return [*lines, Text(report.summary, "bold")]
