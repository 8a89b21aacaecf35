"""Pages and pictures for readers.

The page of an operator version is data first (`Page`), derived from its record, then
Markdown or JSON. Pictures of a split are drawn in a terminal or as SVG, from a plan.
"""

from __future__ import annotations

from tensorsplit.pages.content import Page, page_of
from tensorsplit.pages.markdown import index, markdown

__all__ = ["Page", "index", "markdown", "page_of"]
