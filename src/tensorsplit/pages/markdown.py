"""The generated pages of the documentation as Markdown, and the environment of templates."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from tensorsplit.core.differences import diff
from tensorsplit.core.extras import needs
from tensorsplit.core.records import operators
from tensorsplit.pages.content import Page, opsets, page_of
from tensorsplit.pages.page_pictures import operator_picture

if TYPE_CHECKING:
    from jinja2 import Environment

INDEX = "README.md"
DIFFERENCES = "differences.md"


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package; an undefined name is an error, `row` is known in them."""
    with needs("report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(("html.jinja",)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals["row"] = row
    return made


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def render_all() -> dict[str, str]:
    """Return every file of the folder of operator pages, by its name."""
    files = {INDEX: index(), DIFFERENCES: differences()}
    for record in operators.values():
        page = page_of(record)
        files[f"{record.id}.md"] = markdown(page)
        files[f"{record.id}.svg"] = operator_picture(record, page)
    return files


def markdown(page: Page) -> str:
    """Return a page as Markdown."""
    return environment(__package__).get_template("operator.md.jinja").render(page=page)


def index() -> str:
    """Return the table of all operator versions as Markdown: the first page of the folder."""
    template = environment(__package__).get_template("operators.md.jinja")
    return template.render(operators=operators.values(), opsets=opsets)


def differences() -> str:
    """Describe each change from a version of an operator to the next, and ONNX to OpenVINO."""
    pairs = pairwise(operators.values())
    found = [diff(before, after) for before, after in pairs if before.name == after.name]
    found.append(diff("openvino.Split-1", "openvino.VariadicSplit-1"))
    found.append(diff("onnx.Split-18", "openvino.VariadicSplit-1"))
    return environment(__package__).get_template("differences.md.jinja").render(found=found)
