"""Objects that lie about their class, never end, or raise: given to each public function.

Run as a program, with the names of functions, it prints what of it does not end as it should: see
`test_doors`.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path, PosixPath
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import onnx
import onnx_ir
from onnx import parser

import tensorsplit as ts
from tensorsplit import backend
from tensorsplit.core.schema import Operator


class OwnError(Exception):
    """What a hostile object raises; it may be passed on."""


def explode(*_: object, **__: object) -> Any:
    raise OwnError


METHODS = [
    *("repr", "str", "eq", "ne", "lt", "le", "hash", "index", "int", "float", "bool", "len"),
    *("getitem", "contains", "add", "radd", "mul", "floordiv", "mod", "neg", "call", "fspath"),
    *("next", "reversed", "format", "bytes", "length_hint", "array", "dlpack", "array_namespace"),
    "iter",
]


def made(bases: tuple[type, ...] = (object,), **members: object) -> Any:
    """Return a class."""
    return type("Hostile", bases, members)


def exploding(base: type, *more: str) -> Any:
    """Return a class like another one, each method of which raises."""
    return made((base,), **dict.fromkeys((*(f"__{name}__" for name in METHODS), *more), explode))


def liar(claimed: object) -> Any:
    """Return an object that says it is of another class."""
    return made(__class__=property(lambda _: claimed))()


def by_class(**members: object) -> Any:
    """Return an object whose class has a class of its own."""
    meta: Any = type("Meta", (type,), members)
    return meta("Hostile", (), {})()


class Endless(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        return map(str, itertools.count())

    def __len__(self) -> int:
        return 3


class Raising(Endless):
    __getitem__ = __iter__ = __len__ = explode


def recursive() -> list[Any]:
    items: list[Any] = []
    items.append(items)
    return items


def released() -> memoryview:
    view = memoryview(b"12")
    view.release()
    return view


def endless(*_: object) -> Iterator[int]:
    return itertools.repeat(1)


CLAIMED = (int, bool, str, bytes, list, tuple, dict, float, type(None), Mapping, PosixPath)
CLAIMED_OF_OTHERS = (np.ndarray, onnx.ModelProto, onnx_ir.Model)
CLAIMED_OF_OURS = (Operator, ts.PreparedSplit, ts.BufferPool)
_TEXT = exploding(str, *(name for name in dir(str) if not name.startswith("__")))
KINDS: dict[str, Callable[[], Any]] = {
    "object": object,
    **{
        f"liar {claimed.__name__}": partial(liar, claimed)
        for claimed in (*CLAIMED, *CLAIMED_OF_OTHERS, *CLAIMED_OF_OURS)
    },
    "liar of no class": lambda: liar(3),
    "liar that raises": made(__class__=property(explode)),
    "no attributes": made(__getattribute__=explode),
    "bomb": exploding(object),
    "mock": lambda: MagicMock(spec=dict),
    "asked for instances": lambda: by_class(__instancecheck__=explode, __subclasscheck__=explode),
    "class without a hash": lambda: by_class(__hash__=explode, __eq__=explode),
    "index": made(__index__=explode),
    "index of text": made(__index__=lambda _: "1"),
    "index too large": made(__index__=lambda _: 10**5000),
    "endless": made(__iter__=endless),
    "endless items": made(__getitem__=lambda *_: 1),
    "endless names": lambda: map(str, itertools.count()),
    "endless list": lambda: made((list,), __iter__=endless)([1, 1]),
    "endless tuple": lambda: made((tuple,), __iter__=endless)([1, 1]),
    "endless dict": lambda: made((dict,), __iter__=endless, items=endless)(x=1),
    "endless mapping": Endless,
    "raising mapping": Raising,
    "no iterator": made(__iter__=lambda _: 3),
    "negative length": lambda: made((list,), __len__=lambda _: -1)([1, 1]),
    "no pairs": lambda: made((dict,), items=lambda _: [1, 2], keys=lambda _: 3)(x=1),
    "keys": lambda: {made(__eq__=explode, __hash__=lambda _: 1, __repr__=explode)(): 1},
    "integer": lambda: exploding(int)(2),
    "float": lambda: exploding(float)(2),
    "text": lambda: _TEXT("x"),
    "lying text": lambda: made(
        (str,), __str__=lambda _: 3, __eq__=lambda *_: True, __hash__=lambda _: 0
    )("x"),
    "text without a hash": lambda: made((str,), __hash__=None)("x"),
    "list": lambda: exploding(list)([1, 1]),
    "tuple": lambda: exploding(tuple)([1, 1]),
    "dict": lambda: exploding(dict)(x=1),
    "path of a number": made(__fspath__=lambda _: 3),
    "path of no name": made(__fspath__=explode),
    "path of a bomb": made(__fspath__=lambda _: _TEXT("x")),
    "recursive": recursive,
    "deep": lambda: json.loads("[" * 500 + "]" * 500),
    "large": lambda: 10**5000,
    "no number": lambda: float("nan"),
    "surrogate": lambda: "\udcff\ud800",
    "no text": lambda: "a\0b",
    "released": released,
}
"""Makers of hostile objects."""
AS_NUMPY = {"BufferPool.empty": (TypeError, ValueError, MemoryError)}
"""What functions raise that NumPy would raise."""


X = np.random.default_rng(28).random((6, 2), np.float32)
MODEL = parser.parse_model("""
    <ir_version: 8, opset_import: ["": 18]> g (float[6, 2] x) => (float[3, 2] a, float[3, 2] b)
    { a, b = Split<num_outputs = 2>(x) }""")
NODE = MODEL.graph.node[0]
PLAN = ts.plan("onnx.Split-13", (6, 2), [2, 4])
NAMED = ts.plan("onnx.Split-13", (6, 2), {"a": 2, "b": 4})
PARTS = ts.split(X, [2, 4])
RULES = {"shard": [{"tensors": "*", "axis": 0}]}

_SPLIT = {"axis": 0, "copy": False, "out": None}
_BY = {"opset": None, "num_outputs": None}
_WHOLE = {"like": None, "copy": None, "out": None}
_LIMITS = {"memory": None, "timeout": None}
_JOB = {
    **dict.fromkeys(("max_shard_size", "workers", "scheduler"), None),
    "memory": 1 << 20,
    "verify": False,
    "overwrite": True,
    "rules": RULES,
}
_SESSION = {"model": MODEL, "engine": "tensorsplit", "lower": False, "isolate": None, **_LIMITS}
_FED = {"inputs": {"x": X}}
DOORS: dict[str, dict[str, Any]] = {
    "split": {"input": X, "split": [2, 4], "num_outputs": None, "opset": 18, **_SPLIT},
    "split_to_sequence": {"input": X, "split": 2, "keepdims": 1, "opset": 18, **_SPLIT},
    "variadic_split": {"data": X, "split_lengths": [2, 4], **_SPLIT},
    "openvino.split": {"data": X, "num_splits": 2, **_SPLIT},
    "openvino.variadic_split": {"data": X, "split_lengths": [2, 4], **_SPLIT},
    "join": {"parts": PARTS, "axis": 0, "keepdims": 1, **_WHOLE},
    "like": {"dialect": "torch.chunk"},
    "BufferPool": {"max_bytes": 1000},
    "BufferPool.empty": {"self": ts.BufferPool(1000), "shape": (2,), "dtype": "f4"},
    "plan": {"operator": "Split", "shape": (6, 2), "split": [2, 4], "names": None, **_BY},
    "PreparedSplit.__call__": {"self": PLAN, "input": X, "copy": False, "out": None},
    "PreparedSplit.join": {"self": PLAN, "parts": PARTS, **_WHOLE},
    "PreparedSplit.find": {"self": PLAN, "index": 1},
    "NamedSplit.__call__": {"self": NAMED, "input": X, "copy": False, "out": None},
    "NamedSplit.join": {"self": NAMED, "parts": {"a": PARTS[0], "b": PARTS[1]}, **_WHOLE},
    "infer": {"operator": "Split", "shape": ("N", 2), "split": [2, 4], **_BY},
    "explain": {"operator": "Split", "shape": (6, 2), "split": [2, 4], **_BY},
    "diff": {"before": "onnx.Split-13", "after": "onnx.Split-18"},
    "lengths.at": {"indices": [2], "dim": 7},
    "lengths.balanced": {"dim": 7, "parts": 3},
    "lengths.chunked": {"dim": 7, "chunks": 3},
    "lengths.ratio": {"weights": [1, 2], "dim": 7},
    "check": {"model": MODEL, "target": None},
    "infer_shapes": {"model": MODEL, "input_shapes": None},
    "convert": {"model": MODEL, "opset": 13, "variadic": False},
    "lower": {"model": MODEL, "target": "onnxruntime"},
    "run": {"model": MODEL, **_FED, "engine": "tensorsplit", **_LIMITS},
    "session": _SESSION,
    "Session": _SESSION,
    "Session.run": {"self": ts.session(MODEL), **_FED},
    "verify": {
        "model": MODEL,
        "other": MODEL,
        "inputs": None,
        "seed": 0,
        "engines": (),
        "rtol": None,
        "atol": None,
        **_LIMITS,
    },
    "files.split": {
        "source": "x.npy",
        "target": "out",
        "split": [2, 4],
        "axis": 0,
        "num_outputs": None,
        "chunk": None,
        "operator": None,
        "opset": None,
        "names": None,
        "array": None,
        **_JOB,
        "ranks": None,
        "rules": None,
    },
    "files.merge": {"source": "parts", "out": "whole.npy", "axis": None, "names": None}
    | {**_JOB, "rules": None, "ranks": None},
    "files.reshard": {"source": "ranks", "out": "other", "ranks": (2, 3), "to_rules": None, **_JOB},
    "torch.Split": {"split": [2, 4], "axis": 0, "num_outputs": None, "opset": 18},
    "torch.Join": {"plan": None, "axis": 0, "keepdims": 1},
    "backend.prepare": {"model": MODEL, "device": "CPU"},
    "backend.run_model": {"model": MODEL, "inputs": [X], "device": "CPU"},
    "backend.run_node": {"node": NODE, "inputs": [X], "device": "CPU", "outputs_info": None},
}
"""Arguments that each public function takes; of a method, the object too."""


def function(name: str) -> Callable[..., Any]:
    """Return a public function or method by its name."""
    found: Any = backend if name.startswith("backend.") else ts
    for part in name.removeprefix("backend.").split("."):
        found = getattr(found, part)
    call: Callable[..., Any] = found
    return call


def fault(
    call: Callable[[], object], kind: str, parameter: str, also: tuple[type[Exception], ...]
) -> str | None:
    """Return what is wrong with how a call ends, which may raise other errors also."""
    try:
        call()
    except ts.SplitError as error:
        if kind == "object" and error.parameter != parameter:
            return f"it names {error.parameter}: {error}"
        is_named = error.parameter or error.code == "TS702"  # which names the path
        return None if is_named else f"it names nothing: {error}"
    except OwnError:
        return None
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        if isinstance(error, also):
            return None
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} {error} at {place.filename}:{place.lineno}"
    return "it is taken" if kind.startswith("liar") else None


def faults(name: str) -> list[str]:
    """Give each hostile object as each parameter; return what goes wrong."""
    call, usual, found = function(name), DOORS[name], []
    for parameter, (kind, make) in itertools.product(usual, KINDS.items()):
        if parameter in ("self", "outputs_info"):
            continue
        given = {**usual, parameter: make()}
        own = given.pop("self", None)
        arguments = () if own is None else (own,)
        made_call = partial(call, *arguments, **given)
        wrong = fault(made_call, kind, parameter, AS_NUMPY.get(name, ()))
        if wrong is not None:
            found.append(f"{name}, {parameter}, {kind}: {wrong}"[:300])
    return found


def main(names: list[str]) -> None:
    """Print what goes wrong."""
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_DATA, (4 << 30, 4 << 30))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        np.save("x.npy", X)
        ts.files.split("x.npy", "parts", [2, 4])
        if "files.reshard" in names:
            from safetensors.numpy import save_file

            save_file({"x": X}, "x.safetensors")
            ts.files.split("x.safetensors", "ranks", rules=RULES, ranks=2)
        print(json.dumps([each for name in names for each in faults(name)]))
        os.chdir(Path(__file__).parent)


if __name__ == "__main__":
    main(sys.argv[1:])
