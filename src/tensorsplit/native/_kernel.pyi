from collections.abc import Sequence
from typing import Any

import numpy as np

def copies(
    array: np.ndarray[Any, np.dtype[Any]], axis: int, sizes: tuple[int, ...], keepdims: bool, /
) -> list[np.ndarray[Any, np.dtype[Any]]] | None: ...
def copy_into(
    array: np.ndarray[Any, np.dtype[Any]],
    axis: int,
    sizes: tuple[int, ...],
    keepdims: bool,
    out: Sequence[Any],
    /,
) -> bool: ...
def views(
    array: np.ndarray[Any, np.dtype[Any]], axis: int, sizes: tuple[int, ...], keepdims: bool, /
) -> list[np.ndarray[Any, np.dtype[Any]]]: ...
def use(name: str, /) -> str: ...
def use_threads(count: int, /) -> None: ...
def use_streams_from(bytes: int, /) -> None: ...
