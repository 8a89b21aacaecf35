from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

class Blocks:
    def __new__(cls, most_idle: int, /) -> Blocks: ...
    @property
    def idle_bytes(self) -> int: ...
    @property
    def in_use_bytes(self) -> int: ...
    def copies(
        self,
        array: np.ndarray[Any, np.dtype[Any]],
        axis: int,
        sizes: tuple[int, ...],
        keepdims: bool,
        /,
    ) -> list[np.ndarray[Any, np.dtype[Any]]] | None: ...
    def empty(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], /
    ) -> np.ndarray[Any, np.dtype[Any]] | None: ...
    def clear(self) -> None: ...
    def fill(self, byte: int, /) -> None: ...

class Call:
    def __new__(
        cls,
        function: Callable[..., Any],
        names: tuple[str, ...],
        positional: int,
        defaults: tuple[Any, ...],
        plans: Plans | None,
        pool: type,
        /,
    ) -> Call: ...
    def __call__(self, *arguments: Any, **named: Any) -> Any: ...

class Plans:
    def find(self, array: Any, arguments: tuple[Any, ...], /) -> Any: ...
    def add(self, array: Any, arguments: tuple[Any, ...], plan: Any, /) -> None: ...
    def clear(self) -> None: ...
    def values(self) -> list[Any]: ...
    def __len__(self) -> int: ...

class Prepared:
    def _accept(
        self,
        dtype: np.dtype[Any],
        shape: tuple[Any, ...],
        axis: int,
        sizes: tuple[Any, ...],
        keepdims: bool,
        /,
    ) -> None: ...

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
def remember(type: type, /) -> None: ...
def use(name: str, /) -> str: ...
def use_threads(count: int, /) -> None: ...
def use_non_temporal_from(bytes: int, /) -> None: ...
