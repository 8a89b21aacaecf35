"""Long texts for the page: each kept once, deflated in chunks that the page inflates as it needs.

A page holds a script for every deviation, and those are alike: of one case they differ in what
drives the engine, of one engine in the model. They are kept as the numbers of their blocks.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

CHUNK = 256
"""How many items are deflated together: what the page inflates to show one of them."""

_BLOCK = re.compile(r"(?m)^(?=\n|#)")

_Item = TypeVar("_Item", bound=Hashable)


class Store(Generic[_Item]):
    """Items in the order they came in, each once; what JSON can say."""

    def __init__(self) -> None:
        self._places: dict[_Item, int] = {}

    def place(self, item: _Item) -> int:
        """Where an item stands; it is added if it is new."""
        return self._places.setdefault(item, len(self._places))

    def items(self) -> list[_Item]:
        """All items, each at its place."""
        return list(self._places)

    def deflated(self) -> list[str]:
        """The items in chunks of `CHUNK`."""
        items = self.items()
        return [deflated(items[at : at + CHUNK]) for at in range(0, len(items), CHUNK)]


def blocks(text: str) -> list[str]:
    """A script in pieces that other scripts share: paragraphs, and the lines of comments."""
    return _BLOCK.split(text)


def deflated(content: Any) -> str:
    """What JSON can say, deflated without a header, in base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9)
    text = json.dumps(content, separators=(",", ":"))
    return base64.b64encode(packer.compress(text.encode()) + packer.flush()).decode("ascii")
