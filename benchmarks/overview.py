"""The first sentence and the first chart of ``docs/performance.md``: copies beside `memcpy`.

Each bar is of the machine on which we do worst, and beside it the fastest other library there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from charts import shown

from tensorsplit.bench.figures import in_digits
from tensorsplit.bench.peers import OURS, is_ours
from tensorsplit.pictures.marks import label, rect
from tensorsplit.pictures.svg import style

SHOWN = {
    "attention": "Q, K and V of an attention layer",
    "grouped-query": "Q, K and V, grouped queries",
    "channels": "two halves of the channels of a feature map",
    "rows": "four blocks of rows",
    "rgb": "R, G and B of a picture of 3840 x 2160",
}
"""The workloads of the chart, and what they are."""

_WIDTH, _LEFT, _RIGHT, _BAR = 640, 16, 130, 16


@dataclass(frozen=True, slots=True)
class _Pair:
    """Our time and that of the fastest other library, as multiples of `memcpy`."""

    title: str
    ours: float
    other: float
    peer: str


def summary(machines: Sequence[Any]) -> str:
    """Return the sentence and the chart as Markdown."""
    pairs = list(_pairs(machines))
    ours, others = [pair.ours for pair in pairs], [pair.other for pair in pairs]
    return (
        f"Five common splits take {in_digits(min(ours))} to {in_digits(max(ours))} times as long as"
        f" `memcpy` of the same bytes; the fastest other library takes"
        f" {in_digits(min(others))} to {in_digits(max(others))} times as long.\n\n"
        "![The time of five splits as a multiple of memcpy, ours and the fastest other"
        " library's](performance/overview.svg)"
    )


def chart(machines: Sequence[Any]) -> str:
    """Return the bars as SVG."""
    pairs = list(_pairs(machines))
    height = 70 + 62 * len(pairs)
    title = "The time of five splits, as a multiple of memcpy of the same bytes"
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="ts-split" role="img" width="{_WIDTH}"'
            f' height="{height}" viewBox="0 0 {_WIDTH} {height}" aria-labelledby="overview-title">'
        ),
        f'<title id="overview-title">{title}</title>',
        f"<style>{style()}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        label(_LEFT, 28, title, "head"),
        *_bars(pairs),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _bars(pairs: Sequence[_Pair]) -> Iterator[str]:
    scale = (_WIDTH - _LEFT - _RIGHT) / max(max(pair.ours, pair.other) for pair in pairs)
    one = round(_LEFT + scale, 1)  # where memcpy ends
    yield label(_LEFT, 48, "The line is memcpy. Shorter is faster.", "quiet")
    y = 76
    for pair in pairs:
        yield label(_LEFT, y, pair.title)
        yield f'<path class="edge" d="M{one:g} {y + 4}L{one:g} {y + 44}"/>'
        for css, ratio, name in (("p2", pair.ours, OURS), ("gap", pair.other, pair.peer)):
            y += _BAR + 4
            end = round(_LEFT + ratio * scale, 1)
            yield rect((_LEFT, y - _BAR + 2), (end - _LEFT, _BAR), css)
            yield label(max(end, one) + 8, y - 1, f"{in_digits(ratio)} {name}")
        y += 22


def _pairs(machines: Sequence[Any]) -> Iterator[_Pair]:
    """Yield each workload, on the machine where our ratio is the worst."""
    for name, title in SHOWN.items():
        found = [pair for machine in machines if (pair := _pair(machine.found(name), title))]
        if found:
            yield max(found, key=lambda pair: pair.ours)


def _pair(measured: Any, title: str) -> _Pair | None:
    if measured is None:
        return None
    entries = shown(measured)
    ours = [ratio.median for entry, ratio in entries if (entry.peer, entry.mode) == (OURS, "out")]
    others = [(ratio.median, entry.peer) for entry, ratio in entries if not is_ours(entry.peer)]
    return _Pair(title, ours[0], *min(others)) if ours and others else None
