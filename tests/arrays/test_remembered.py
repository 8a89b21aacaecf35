"""The functions that split are functions to whoever looks at them, and leak nothing."""

from __future__ import annotations

import copy
import dataclasses
import functools
import gc
import inspect
import itertools
import pickle
import pydoc
import sys
import traceback
import tracemalloc
import typing
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.arrays import eager as api
from tensorsplit.arrays import remembered
from tensorsplit.arrays.numpy import element_type
from tests.oracle import assert_same, slices
from tests.refusals import refused

X = np.arange(8, dtype=np.float32)
SPLIT: Any = ts.split
JOIN: Any = ts.join
PLAN = ts.plan("onnx.Split-18", (8,), [4, 4])
ANY_PLAN: Any = PLAN
NOT_NAMES: Any = {1: 2}
FUNCTIONS: list[Any] = [ts.split, ts.split_to_sequence, ts.variadic_split, ts.openvino.split]
POOL = ts.BufferPool(1 << 16)
OUT = [np.empty(4, np.float32) for _ in range(2)]

CALLS: dict[str, Callable[[], Any]] = {
    "list": lambda: ts.split(X, [4, 4]),
    "tuple": lambda: ts.split(X, (4, 4)),
    "by name": lambda: ts.split(input=X, split=[4, 4], axis=0),
    "by a name that is equal": lambda: SPLIT(X, **{"".join(["spl", "it"]): [4, 4]}),
    "positional": lambda: ts.variadic_split(X, 0, [4, -1]),
    "num_outputs": lambda: ts.split(X, num_outputs=2, opset=18),
    "integers of NumPy": lambda: SPLIT(X, [np.int64(4), np.uint8(4)], axis=np.int8(0)),
    "an array": lambda: SPLIT(X, np.array([4, 4]), axis=np.array(-1)),
    "a number": lambda: ts.split_to_sequence(X, 4),
    "OpenVINO": lambda: ts.openvino.split(X, 0, 2),
    "partial": functools.partial(ts.split, X, [4, 4]),
    "copy": lambda: ts.split(X, [4, 4], copy=True),
    "out": lambda: ts.split(X, [4, 4], out=OUT),
    "out in a tuple": lambda: ts.split(X, [4, 4], out=tuple(OUT)),
    "pool": lambda: ts.split(X, [4, 4], out=POOL),
    "plan": lambda: PLAN(X),
    "plan by name": lambda: PLAN(input=X),
    "bound": lambda: PLAN.__call__(X),
    "plan, copy": lambda: PLAN(X, copy=True),
    "plan, out": lambda: PLAN(X, out=OUT),
    "plan, pool": lambda: PLAN(X, out=POOL),
    "joined": lambda: ts.split(ts.join(ts.split(X, [4, 4])), [4, 4]),
    "joined copies": lambda: ts.split(ts.join(ts.split(X, [4, 4], copy=True)), [4, 4]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_first_call_and_the_next_give_the_same(call: Callable[[], Any]) -> None:
    api._split.plans.clear()
    for _ in range(3):
        assert_same(call(), slices(X, 0, (4, 4)))


@pytest.fixture(scope="module")
def _only_new_garbage() -> Iterator[None]:
    """Take what there is out of collections, each of which would go through all of it."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("_only_new_garbage")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_references_are_counted(call: Callable[[], Any]) -> None:
    plans = [PLAN, *api._split.plans.values()]
    watched: list[Any] = [
        X,
        X.dtype,
        *OUT,
        POOL,
        POOL.blocks,
        api._split.plans,
        ts.split,
        True,
        *plans,
    ]
    if native.kernel is not None:  # else NumPy loses a reference to None for each part of a pool
        watched.append(None)
    call()
    gc.collect()  # what earlier tests left refers to None and True as well,
    gc.disable()  # and would be freed in between
    try:
        before = [sys.getrefcount(each) for each in watched]
        for _ in range(100):
            call()
        after = [sys.getrefcount(each) for each in watched]
    finally:
        gc.enable()
    changed = [new - old for new, old in zip(after, before, strict=True)]
    assert all(abs(each) < 50 for each in changed), changed
    assert POOL.in_use_bytes == 0


REFUSED: dict[str, Callable[[], Any]] = {
    "lengths": lambda: ts.split(X, [4, 5]),
    "buffers": lambda: ts.split(X, [4, 4], out=[OUT[0], X[4:]]),
    "copy": lambda: ts.split(X, [4, 4], copy="no"),  # type: ignore[call-overload]
    "shape": lambda: PLAN(X[1:]),
    "too many": lambda: SPLIT(X, [4, 4], 0, 2),
    "unknown": lambda: SPLIT(X, [4, 4], axes=0),
    "none": SPLIT,
    "no integer": lambda: ts.split(X, [4, object()]),  # type: ignore[list-item]
}


@pytest.mark.usefixtures("_only_new_garbage")
@pytest.mark.parametrize(
    ("call", "times"),
    [*((call, 500) for call in CALLS.values()), *((call, 100) for call in REFUSED.values())],
    ids=[*CALLS, *REFUSED],
)
def test_memory_does_not_grow(call: Callable[[], Any], times: int) -> None:
    def run(times: int) -> int:
        for _ in range(times):
            with suppress(TypeError, ts.SplitError):
                call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        run(2 * times)
        before = run(10)
        assert run(times) - before < times * 16
    finally:
        tracemalloc.stop()


def test_many_kinds_of_calls_are_forgotten_with_all_they_hold() -> None:
    dtypes = [np.dtype([(f"f{number}", "i4")]) for number in range(20)]
    arrays = [np.zeros(4, dtype) for dtype in dtypes]
    for array in arrays:
        element_type(array)  # which remembers their names
    counts = [sys.getrefcount(dtype) for dtype in dtypes]
    for array in arrays:
        ts.variadic_split(array, 0, [2, -1])
    assert len(api._variadic_split.plans) >= len(dtypes)
    plans = [weakref.ref(plan) for plan in api._variadic_split.plans.values()]
    api._variadic_split.plans.clear()
    gc.collect()
    assert [plan() for plan in plans] == [None] * len(plans)
    assert [sys.getrefcount(dtype) for dtype in dtypes] == counts


@pytest.mark.parametrize(
    ("function", "does", "flag"),
    [
        *((function, "Split a tensor", "copy: 'Flag' = False") for function in FUNCTIONS),
        (ts.join, "Join parts", "copy: 'Flag | None' = None"),
    ],
)
def test_a_function_is_one_to_whoever_looks(function: Any, does: str, flag: str) -> None:
    module: Any = inspect.getmodule(inspect.unwrap(function))
    signature = inspect.signature(function)
    assert list(signature.parameters)[-2:] == ["copy", "out"]
    assert flag in str(signature)
    assert "out" in typing.get_type_hints(function)
    assert function.__module__ == module.__name__
    assert function.__name__ in repr(function)
    assert str(inspect.getdoc(function)).startswith(does)
    assert inspect.isroutine(function)
    assert callable(function)
    shown = pydoc.plain(pydoc.render_doc(function))
    assert f"{function.__name__}(" in shown
    assert flag in shown
    assert "TS405" in shown
    assert inspect.getsourcefile(inspect.unwrap(function)) == module.__file__
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is copy.copy(function) is function
    assert weakref.ref(function)() is function
    assert {function: 1}[function] == 1


def test_a_plan_is_a_callable_to_whoever_looks() -> None:
    assert str(inspect.signature(PLAN)).startswith(
        "(input: 'object', *, copy: 'Flag' = False, out:"
    )
    assert next(iter(inspect.signature(ts.PreparedSplit.__call__).parameters)) == "self"
    assert inspect.getdoc(PLAN.__call__) == inspect.getdoc(ts.PreparedSplit.__call__)
    assert "Split an array of the planned shape" in pydoc.plain(pydoc.render_doc(ts.PreparedSplit))
    with refused("TS206"):
        PLAN.__call__(X[1:])


def test_the_class_of_a_plan_is_one_class_to_whoever_looks() -> None:
    assert type(PLAN) is ts.PreparedSplit
    assert ts.PreparedSplit.__qualname__ == "PreparedSplit"
    assert inspect.getsourcefile(ts.PreparedSplit) == inspect.getsourcefile(type(PLAN).of)
    assert "sizes" in inspect.signature(ts.PreparedSplit).parameters
    assert pickle.loads(pickle.dumps(ts.PreparedSplit)) is ts.PreparedSplit
    assert dataclasses.replace(PLAN) == PLAN
    with pytest.raises(dataclasses.FrozenInstanceError):
        ANY_PLAN.axis = 1


def test_a_class_derived_from_plans_is_called_by_its_own_method() -> None:
    class Doubled(ts.PreparedSplit):
        def __call__(self, input: Any, **how: Any) -> list[Any]:
            return 2 * super().__call__(input, **how)

    class Plain(ts.PreparedSplit):
        pass

    doubled, plain = (cls.of(ANY_PLAN.intent, (8,)) for cls in (Doubled, Plain))
    for _ in range(3):
        assert_same(doubled(X, copy=True), 2 * slices(X, 0, (4, 4)))
        assert_same(plain(X), slices(X, 0, (4, 4)))


def test_a_wrapper_keeps_what_a_function_says_of_itself() -> None:
    @functools.wraps(ts.split)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return ts.split(*arguments, **named)

    assert inspect.signature(wrapper) == inspect.signature(ts.split)
    assert wrapper.__doc__ == ts.split.__doc__
    assert_same(wrapper(X, [4, 4]), slices(X, 0, (4, 4)))


def test_a_function_in_a_class_is_a_method() -> None:
    class Array(np.ndarray[Any, Any]):
        split = ts.split

    parts = X.view(Array).split([4, 4])
    assert [type(part) for part in parts] == [Array, Array]
    assert_same([np.asarray(part) for part in parts], slices(X, 0, (4, 4)))
    assert Array.split is ts.split


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (SPLIT, "split() missing 1 required positional argument: 'input'"),
        (
            lambda: SPLIT(X, axes=1),
            "split() got an unexpected keyword argument 'axes'; did you mean",
        ),
        (lambda: SPLIT(X, [8], dim=0), "argument 'dim'; did you mean axis?"),
        (lambda: SPLIT(X, num_output=2), "argument 'num_output'; did you mean num_outputs?"),
        (lambda: SPLIT(X, like=X), "split() got an unexpected keyword argument 'like'"),
        (lambda: SPLIT(X, input=X), "split() got multiple values for argument 'input'"),
        (lambda: SPLIT(X, [8], 0, 1), "split() takes from 1 to 3 positional arguments but 4 were"),
        (lambda: SPLIT(X, None, 0, 2), "split() takes from 1 to 3 positional arguments but 4 were"),
        (lambda: JOIN([X], dim=0), "join() got an unexpected keyword argument 'dim'; did you mean"),
        (lambda: SPLIT(X, [4, 4], axes=0), "unexpected keyword argument 'axes'; did you mean"),
        (lambda: SPLIT(X, [2, 6], split=[4, 4]), "got multiple values for argument 'split'"),
        (functools.partial(ts.variadic_split, X, 0), "missing 1 required positional argument"),
        (lambda: SPLIT(X, **NOT_NAMES), "keywords must be strings"),
        (ANY_PLAN, "__call__() missing 1 required positional argument: 'input'"),
        (
            functools.partial(ANY_PLAN, X, None),
            "__call__() takes 2 positional arguments but 3 were given",
        ),
    ],
)
def test_arguments_that_do_not_match_are_refused_as_of_any_function(
    call: Callable[[], Any], message: str
) -> None:
    for _ in range(3):  # what is remembered is not taken for what looks like it
        ts.split(X, [4, 4])
        ts.split(X, None, 0, num_outputs=2)
    PLAN(X)
    with pytest.raises(TypeError) as caught:
        call()
    assert message in str(caught.value)


def test_a_traceback_leads_into_the_function() -> None:
    ts.split(X, [4, 4])
    with pytest.raises(ts.SplitError) as caught:
        ts.split(X, [4, 5])
    assert "split" in [frame.name for frame in traceback.extract_tb(caught.tb)]


def test_memory_that_runs_out_is_said() -> None:
    wide = np.broadcast_to(np.uint8(1), (1 << 20, 1 << 30))
    ts.split(wide, num_outputs=1)
    with pytest.raises(MemoryError):
        ts.split(wide, num_outputs=1, copy=True)


class Pool(ts.BufferPool):
    """A pool of another kind."""


def test_a_pool_of_another_kind_is_a_pool() -> None:
    pool = Pool(1 << 12)
    for _ in range(3):
        assert_same(ts.split(X, [4, 4], out=pool), slices(X, 0, (4, 4)))
        assert_same(PLAN(X, out=pool), slices(X, 0, (4, 4)))
    assert pool.idle_bytes > 0


def test_calls_that_meet_a_finalizer() -> None:
    """A list of parts may start the garbage collector, which may run calls and forget all plans."""

    class Meddler:
        def __del__(self) -> None:
            for memo in (api._split, api._variadic_split):
                memo.plans.clear()
            ts.split(X, [1, 7])

    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(50):
            meddler = Meddler()
            meddler.itself = meddler  # type: ignore[attr-defined]
            del meddler
            assert_same(ts.split(X, [4, 4]), slices(X, 0, (4, 4)))
            assert_same(ts.split(X, [2, 6], copy=True), slices(X, 0, (2, 6)))
            assert_same(ts.split(X, [4, 4], out=OUT), slices(X, 0, (4, 4)))
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.skipif(native.kernel is None, reason="there is no kernel here")
def test_a_decided_call_is_known_by_its_type_shape_and_arguments() -> None:
    """Once each is decided the function is not called again, in whatever order they come."""
    plans, decided = remembered.make_plans(), list[tuple[Any, ...]]()

    @remembered.at_once(plans)
    def cut(data: Any, lengths: Any, *, copy: Any = False, out: Any = None) -> Any:
        decided.append((data.dtype, data.shape, lengths))
        plan = ts.plan("onnx.Split-18", data.shape, lengths)
        plans.add(data, (lengths,), plan)
        return plan(data, copy=copy, out=out)

    lengths = (2, 1)
    whole = np.arange(24, dtype=np.float32).reshape(3, 8)
    calls = [(whole, lengths), (whole[:, :4], lengths), (whole.reshape(3, 2, 4), lengths)]
    calls += [(whole[:, 0], lengths), (whole.astype(np.int64), lengths), (whole, (1, 2))]
    for first, second in itertools.product(calls, repeat=2):
        for data, given in (*[first] * 4, *[second] * 4, first, second):
            assert_same(cut(data, given), slices(data, 0, given))
    assert len(decided) == len(set(decided)) == len(calls)


@pytest.mark.skipif(native.kernel is None, reason="there is no kernel here")
@pytest.mark.parametrize("circle", ["none", "its own", "of its plans", "of its last plan"])
def test_a_function_that_splits_goes_with_all_it_holds(circle: str) -> None:
    def cut(data: Any, lengths: Any, *, copy: Any = False, out: Any = None) -> Any:
        plan = ts.plan("onnx.Split-18", data.shape, lengths)
        plans.add(data, (lengths,), plan)
        decided.append(plan)
        return plan(data, copy=copy, out=out)

    x, plans, decided = X.copy(), remembered.make_plans(), list[Any]()
    counts = [sys.getrefcount(each) for each in (plans, x)]
    function: Any = remembered.at_once(plans)(cut)
    for _ in range(4 if circle == "of its last plan" else 1):
        assert_same(function(x, (2, 6)), slices(x, 0, (2, 6)))
    plan = decided.pop()
    function.itself = function if circle == "its own" else None
    if circle.startswith("of its"):
        object.__setattr__(plan, "function", function)
    ended = list[str]()
    for name, each in {"function": function, "body": function.__wrapped__, "plan": plan}.items():
        weakref.finalize(each, ended.append, name)
    if circle == "none":
        plans.clear()
        del plan, function, cut, each
        gc.collect()
        assert [sys.getrefcount(each) for each in (plans, x)] == counts
    else:
        del plan, function, cut, each, plans
        gc.collect()
    assert sorted(ended) == ["body", "function", "plan"]


@pytest.mark.skipif(native.kernel is None, reason="there is no kernel here")
def test_a_class_lives_as_long_as_calls_that_are_known_by_it() -> None:
    """By its address, which no other class may get."""
    plans = native.kernel.Plans()

    def remember() -> weakref.ref[Any]:
        facts = {"shape": (3,), "dtype": "of no library"}
        first, second = (type(name, (), facts) for name in ("First", "Second"))
        plans.add(first(), (), "plan")
        assert plans.find(first(), ()) == "plan"
        assert plans.find(second(), ()) is None
        first.dtype = "of another one"  # type: ignore[attr-defined]
        assert plans.find(first(), ()) is None
        return weakref.ref(first)

    held = remember()
    gc.collect()
    assert held() is not None
    plans.clear()
    gc.collect()
    assert held() is None


class Interrupted:
    """A shape that fails as it says its length, or its first dimensions."""

    def __init__(self, error: BaseException, length: int | None = None) -> None:
        self.error, self.length = error, length

    def __len__(self) -> int:
        if self.length is None:
            raise self.error
        return self.length

    def __getitem__(self, index: int) -> int:
        raise self.error


class OfNoLibrary:
    """An array that says its shape, or fails to."""

    dtype = "of no library"

    def __init__(self, shape: Any) -> None:
        self._shape = shape

    @property
    def shape(self) -> Any:
        if isinstance(self._shape, BaseException):
            raise self._shape
        return self._shape


@pytest.mark.skipif(native.kernel is None, reason="there is no kernel here")
@pytest.mark.parametrize("library", ["none", "torch"])
def test_the_shape_of_any_array_is_told_from_the_arguments_that_follow(library: str) -> None:
    make: Any = OfNoLibrary if library == "none" else pytest.importorskip("torch").zeros
    if library == "torch":
        ts.split(make(2), [1, 1])  # from then on tensors are known
    plans = native.kernel.Plans()
    calls = [((6, 6), (5,)), ((6,), ([21],)), ((6, 0), ()), ((6,), (None,)), ((), (1,))]
    for shape, arguments in calls:
        assert plans.find(make(shape), arguments) is None
        plans.add(make(shape), arguments, (shape, arguments))
    for shape, arguments in calls:
        assert plans.find(make(shape), arguments) == (shape, arguments)


@pytest.mark.skipif(native.kernel is None, reason="there is no kernel here")
def test_an_array_that_fails_to_say_its_shape_has_no_plan_and_an_interrupt_is_none() -> None:
    plans = native.kernel.Plans()
    for shape in (ValueError(), {6}, None, ("N",), ["N"], Interrupted(ValueError())):
        plans.add(OfNoLibrary(shape), (), "plan")
        assert plans.find(OfNoLibrary(shape), ()) is None
    assert len(plans) == 0
    for error in (KeyboardInterrupt(), SystemExit()):
        for interrupt in (error, Interrupted(error), Interrupted(error, 1)):
            with pytest.raises(type(error)):
                plans.find(OfNoLibrary(interrupt), ())
            with pytest.raises(type(error)):
                plans.add(OfNoLibrary(interrupt), (), "plan")
