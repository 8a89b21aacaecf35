"""A run for people: in a terminal, as one HTML page, as Markdown.

All three are made from the document of the run and nothing else, and have the same order: data
that is silently wrong, memory errors and crashes come first.
"""

from __future__ import annotations

from tensorsplit.conformance.report.console import Matrix
from tensorsplit.conformance.report.rendering import html, markdown
from tensorsplit.conformance.report.summary import Summary

__all__ = ["Matrix", "Summary", "html", "markdown"]
