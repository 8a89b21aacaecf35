"""The generated pages of the documentation as Markdown, and the environment of templates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from tensorsplit.core.extras import needs
from tensorsplit.core.records import operators
from tensorsplit.pages.content import Page, opsets

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str) -> Environment:
    """Return the templates of a package; an undefined name is an error, `row` is known in them."""
    with needs("report"):
        from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    made = Environment(
        loader=PackageLoader(package),
        autoescape=select_autoescape(("html.jinja",), default_for_string=False),
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


def markdown(page: Page) -> str:
    """Return a page as Markdown."""
    return environment(__package__).get_template("operator.md.jinja").render(page=page)


def index() -> str:
    """Return the table of all operator versions as Markdown: the first page of the folder."""
    template = environment(__package__).get_template("operators.md.jinja")
    return template.render(operators=operators.values(), opsets=opsets)
