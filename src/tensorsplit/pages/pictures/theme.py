"""Colours of the SVG pictures, for light and dark; text on them has a contrast of 7:1 or more."""

from __future__ import annotations

PART_CLASSES = ("p0", "p1", "p2", "p3", "p4", "p5")
"""The classes that parts take in turn."""

_LIGHT = ("#b6d7f2", "#f6d98b", "#b9e0b4", "#f3bfc8", "#d5c6f0", "#f5c69d")
_DARK = ("#1d4a73", "#5c4708", "#1f5227", "#6b2737", "#46327a", "#6b3d12")

_PLAIN = (
    ".ts-cut{max-width:600px;height:auto;display:block;margin:0 auto;"
    "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;"
    "font-size:13px}"
    ".ts-cut:root{background:#ffffff}"
    ".ts-cut text{white-space:pre;fill:#1b1f24}"
    ".ts-cut .head{font-size:16px;font-weight:600}"
    ".ts-cut .label{font-weight:600;text-anchor:middle}"
    ".ts-cut .middle{text-anchor:middle}"
    ".ts-cut .end{text-anchor:end}"
    ".ts-cut .tick{font-size:12px}"
    ".ts-cut .quiet{font-size:12px;fill:#4d5660}"
    ".ts-cut .paper{fill:#ffffff}"
    ".ts-cut .gap{fill:#e6e9ed}"
    ".ts-cut rect:not(.paper){stroke:#1b1f24;stroke-width:1}"
    ".ts-cut .way{opacity:.45}"
    ".ts-cut .empty{fill:none;stroke-dasharray:3 2}"
    ".ts-cut .edge{stroke:#1b1f24;stroke-width:1.5}"
    ".ts-cut .grid{stroke:#1b1f24;stroke-opacity:.28;stroke-width:.7}"
)
_PLAIN_DARK = (
    ".ts-cut:root{background:#12161b}"
    ".ts-cut text{fill:#f0f3f6}"
    ".ts-cut .quiet{fill:#b4bdc7}"
    ".ts-cut .paper{fill:#12161b}"
    ".ts-cut .gap{fill:#2b323a}"
    ".ts-cut rect:not(.paper){stroke:#c3ccd6}"
    ".ts-cut .edge,.ts-cut .grid{stroke:#f0f3f6}"
)


def _fills(colours: tuple[str, ...]) -> str:
    return "".join(
        f".ts-cut .{css}:not(.empty){{fill:{colour}}}"
        for css, colour in zip(PART_CLASSES, colours, strict=True)
    )


STYLE = (
    f"{_PLAIN}{_fills(_LIGHT)}@media (prefers-color-scheme:dark){{{_PLAIN_DARK}{_fills(_DARK)}}}"
)
"""The style sheet; every rule is bound to the class of the picture, so that it can stand in a page
of others."""
