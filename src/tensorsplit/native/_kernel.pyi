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
        array: Any,
        shape: tuple[Any, ...],
        axis: int,
        sizes: tuple[Any, ...],
        keepdims: bool,
        /,
    ) -> None: ...

def called_at_once(type: type[Any], /) -> type[Any]: ...
def use_pool(type: type, /) -> None: ...
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
def join(
    parts: Any,
    axis: int,
    keepdims: bool,
    copy: bool | None,
    out: Any,
    /,
) -> np.ndarray[Any, np.dtype[Any]] | None: ...
def use(name: str, /) -> str: ...
def use_threads(count: int, /) -> None: ...
def use_non_temporal_from(bytes: int, /) -> None: ...
def cache() -> tuple[int, str, int]: ...
def choices() -> list[
    tuple[bool, bool, bool, bool, int, int, int, tuple[str, int, float], tuple[str, int, float]]
]: ...
def use_torch(
    tensor: type,
    parameter: type,
    strided: object,
    shells: frozenset[Any],
    split: Callable[..., Any],
    unbind: Callable[..., Any],
    split_copy: Callable[..., Any],
    unbind_copy: Callable[..., Any],
    cat: Callable[..., Any],
    stack: Callable[..., Any],
    as_strided: Callable[..., Any],
    is_grad_enabled: Callable[[], bool],
    is_inference_mode_enabled: Callable[[], bool],
    is_transformed: Callable[[], bool],
    increment_version: Callable[[list[Any]], None],
    kernel_from: int,
    dlpack: object,
    /,
) -> None: ...
