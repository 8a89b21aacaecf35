"""Whether what came out is what was expected, strings and sequences included."""

from __future__ import annotations

from typing import Any

from tests import oracle


def same(got: Any, want: Any) -> bool:
    """Whether two arrays, or two lists of them, hold the same bits or the same strings."""
    if isinstance(want, list):
        return (
            isinstance(got, list)
            and len(got) == len(want)
            and all(same(left, right) for left, right in zip(got, want, strict=True))
        )
    if want.dtype == object:
        return bool(
            got.dtype == object and got.shape == want.shape and got.tolist() == want.tolist()
        )
    return oracle.same(got, want)
