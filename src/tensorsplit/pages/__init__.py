"""Operator pages: what a record says, written for a reader.

A page is data first (`Page`), then Markdown or JSON made from it. Everything on it is derived
from the record, so that a page can't say what the package does not do.
"""

from __future__ import annotations

from tensorsplit.pages.content import Page, page_of
from tensorsplit.pages.markdown import index, markdown, render_all

__all__ = ["Page", "index", "markdown", "page_of", "render_all"]
