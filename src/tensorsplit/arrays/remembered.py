"""Calls that are answered as equal ones were: by the kernel, without Python, where there is one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import update_wrapper
from types import FunctionType
from typing import Any, TypeVar, cast

import numpy as np

from tensorsplit import native
from tensorsplit.core.errors import did_you_mean
from tensorsplit.core.given import is_a

Function = TypeVar("Function", bound=Callable[..., object])

_INTEGERS = frozenset({int, *(np.dtype(code).type for code in "bhilqBHILQ")})
"""Types whose values never change and whose type and value are all there is to know."""

joined_at_once: set[type] = {np.ndarray}
"""The types of arrays that the kernel joins."""


class Plans:
    """The decisions on calls, where there is no kernel with a type of this name."""

    def __init__(self) -> None:
        self._plans: dict[Hashable, object] = {}

    def find(self, array: object, arguments: tuple[object, ...]) -> Any:
        """Look up a call; None if nothing is kept, or it can't be distinguished from others."""
        try:
            return self._plans.get(_exact_key(array, arguments))
        except (MemoryError, TypeError, ValueError):  # no key, or none that can be hashed
            return None

    def add(self, array: object, arguments: tuple[object, ...], plan: object) -> None:
        """Cache the decision on a call; nobody else can change the arguments."""
        try:
            self._plans[_exact_key(array, arguments)] = plan
        except (MemoryError, TypeError, ValueError):
            return

    def clear(self) -> None:
        """Forget all calls."""
        self._plans.clear()

    def values(self) -> list[Any]:
        """Return all that is kept."""
        return list(self._plans.values())

    def __len__(self) -> int:
        return len(self._plans)


def make_plans() -> Plans:
    """Return an empty memory, of the kernel if there is one."""
    plans: Plans = Plans() if native.kernel is None else native.kernel.Plans()
    return plans


def at_once(plans: Plans | None) -> Callable[[Function], Function]:
    """Make a function that splits one that the kernel answers wherever it can.

    The first parameter is the array, the last two are ``copy`` and ``out``, and those between tell
    which of the plans is meant. The function is called for all else: whatever was not decided yet,
    needs a closer look, or is refused. Without plans, the function joins, and has the parameters
    ``parts``, ``axis``, ``keepdims``, ``like``, ``copy`` and ``out``.
    """

    def decorate(function: Function) -> Function:
        plain = cast("FunctionType", function)
        code = plain.__code__
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        made: Any = _with_hints(function, names)
        if native.kernel is not None:
            defaults = (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values())
            made = native.kernel.Call(made, names, code.co_argcount, defaults, plans)
        return compiled_as(function)(cast("Function", update_wrapper(made, function)))

    return decorate


def _with_hints(function: Callable[..., object], names: Sequence[str]) -> Callable[..., object]:
    """Name the argument that is meant in the refusal of an unknown one."""
    known = frozenset(names)

    def call(*arguments: object, **keywords: object) -> object:
        for unknown in keywords.keys() - known:
            hint = did_you_mean(_WORDS_OF_OTHERS.get(unknown, unknown), names).strip()
            problem = f"{function.__name__}() got an unexpected keyword argument {unknown!r}"
            raise TypeError(f"{problem}; {hint}" if hint else problem)
        return function(*arguments, **keywords)

    return update_wrapper(call, function)


_WORDS_OF_OTHERS = {
    **dict.fromkeys(("dim", "axes", "split_dim"), "axis"),
    **dict.fromkeys(("sections", "chunks"), "num_outputs"),
    **dict.fromkeys(("indices_or_sections", "split_size_or_sections", "split_sizes"), "split"),
}
"""What PyTorch, NumPy, TensorFlow and MLX call an argument."""


def compiled_as(other: object) -> Callable[[Function], Function]:
    """Let ``torch.compile`` follow another function than this one.

    It does so for what has the attributes of ``torch.jit.script_if_tracing``; no interface that
    works before torch is imported is public.
    """

    def decorate(function: Function) -> Function:
        setattr(function, "__script_if_tracing_wrapper", True)
        setattr(function, "__original_fn", other)
        return left_as_it_is(function)

    return decorate


class Callee:
    """The callee of a split or join: a function's cache, or a plan."""

    __slots__ = ()

    @property
    def decisions(self) -> Any:
        """Decides calls under ``torch.compile``; see `torch_compiled.Decisions` and `Joins`."""
        raise NotImplementedError

    def decided(
        self, decide: Callable[..., Any], *given: object, **named: object
    ) -> tuple[object, object]:
        """Return the function's decision on a call of this object.

        `torch_compiled` has ``torch.compile`` run it, and take the answer for a constant. That is
        why it is a method: what a function is given must be constants in most versions of torch.
        """
        answer: tuple[object, object] = decide(self, *given, **named)
        return answer


def left_as_it_is(function: Function) -> Function:
    """Let AutoGraph of TensorFlow call a function without rewriting it and all that it calls.

    It does so for what has the attribute that ``tf.autograph.experimental.do_not_convert`` sets.
    """
    vars(function)["autograph_info__"] = {}
    return function


def _exact_key(data: Any, arguments: tuple[object, ...]) -> Hashable:
    """Return a key that is the same for equal types and values only: True is not 1.

    Of the tensor, the class, the shape and the element type count. A ``TypeError`` means that the
    call must not be remembered: the tensor is none of NumPy, or an argument may change unseen or
    is too large.
    """
    plain = np.ndarray.view(data, np.ndarray)  # which raises it for all else
    return (type(data), plain.shape, plain.dtype, *map(_argument_key, arguments))


def _argument_key(value: Any) -> Hashable:
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return kind, value
    if kind is list or kind is tuple:
        items = tuple(value)
        if _INTEGERS.issuperset(map(type, items)):
            return items  # an item means its value, whatever its type
    is_array = kind is np.ndarray or is_a(value, np.generic)
    if is_array and value.size <= 64 and not value.dtype.hasobject:
        return value.tobytes(), value.dtype, value.shape
    raise TypeError("no key")
