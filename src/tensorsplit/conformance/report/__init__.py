"""What came of a run, for people: on a terminal, as one HTML page, as Markdown.

All three are made from the document of the run and nothing else, and show the same order: data
that is silently wrong, memory errors and crashes come first.
"""

from __future__ import annotations

from tensorsplit.conformance.report.markdown import markdown
from tensorsplit.conformance.report.page import html
from tensorsplit.conformance.report.terminal import matrix

__all__ = ["html", "markdown", "matrix"]
