"""Pictures of a cut: blocks for a terminal, SVG for a browser.

Both start from a plan and know nothing of operators.
"""

from __future__ import annotations

from tensorsplit.pages.pictures.svg import sheet, svg
from tensorsplit.pages.pictures.terminal import Picture, text

__all__ = ["Picture", "sheet", "svg", "text"]
