"""Allocations, threads and torch that fail: an exception, and nothing is lost or goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorsplit import native
from tests.interpreters import ROOT, printed

SOURCES = ROOT / "src" / "tensorsplit" / "native"
HERE = Path(__file__).parent

Compile = Callable[..., Path]

pytestmark = pytest.mark.skipif(native.kernel is None, reason="copies go through NumPy here")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile files of C++."""
    compiler = shutil.which(os.environ.get("CXX", "c++"))
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler for C++ here, or no Linux")

    def run(*arguments: object) -> Path:
        target = tmp_path_factory.mktemp("compiled") / "made"
        command = [compiler, "-std=c++17", "-O1", "-g", "-pthread", f"-I{SOURCES}"]
        environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        command += [*map(str, arguments), "-o", str(target)]
        subprocess.run(command, check=True, env=environment, timeout=300)
        return target

    return run


POOL = "pool", "processors"
WAYS = *POOL, "ways", "cpu", "kernels_baseline"
COPIES = *WAYS, "copy", "geometry", "jobs", "shape"


@pytest.mark.thorough
@pytest.mark.parametrize(("program", "parts"), [("pool", POOL), ("ways", WAYS), ("copies", COPIES)])
def test_threads_without_python(compiled: Compile, program: str, parts: tuple[str, ...]) -> None:
    """What the work of the pool throws reaches the caller; the choice of ways; many callers."""
    flags = os.environ.get("CXXFLAGS", "").split()  # those of sanitizers
    files = [SOURCES / f"{part}.cpp" for part in parts]
    made = compiled(*flags, HERE / f"{program}.cpp", *files)
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(
        [made], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert (done.returncode, done.stdout) == (0, "fine\n"), done.stderr[-3000:]


CALLS = """
import gc, sys
import numpy as np, tensorsplit as ts
from tensorsplit import native
from tests.oracle import assert_same, slices

kernel = native.kernel
kernel.use_threads(4)
rng = np.random.default_rng(0)
rows = rng.random((700, 900), np.float32)
planes = rng.integers(0, 255, (4, 500, 400, 3), np.uint8).transpose(0, 3, 1, 2)
small = rng.random((6, 4))
pool = ts.BufferPool(1 << 24)
plan = ts.plan("onnx.Split-18", (700, 900), [400, 500], axis=1)
plan(rows, copy=True)

def out(array, axis, sizes):
    buffers = [np.empty_like(part, order="C") for part in slices(array, axis, sizes)]
    return lambda: buffers if kernel.copy_into(array, axis, sizes, True, buffers) else None

def remembered():
    plans = kernel.Plans()
    for _ in range(3):
        for length in (1, 2, 3):
            plans.add(small, ([length] * 70, 1), "plan")
            plans.find(small, ([length] * 70, 1))
    return plans.values()

def in_turns():
    lengths = [1, 3], [1, 3], [1, 3], [2, 2], [2, 2], [2, 2]
    return [ts.split(small, each, axis=1)[0] for each in lengths]

def measured():
    kernel.use_threads(4)
    kernel.use_non_temporal_from(0)
    parts = kernel.copies(rows, 1, (400, 500), True)
    native.choices()
    return parts

WANT = slices(rows, 1, (400, 500))
PARTS = [part.copy() for part in WANT]

def join():
    whole = np.full_like(rows, 77)
    return [kernel.join(PARTS, 1, True, None, whole), kernel.join(PARTS, 1, True, None, None)]

VIEWS = slices(small, 1, (1, 3))

def joined():
    return [ts.join(VIEWS, axis=1), ts.join(VIEWS, axis=1, copy=True)]

CALLS = {
    "rows": (out(rows, 1, (400, 500)), WANT),
    "planes": (out(planes, 1, (1, 2)), slices(planes, 1, (1, 2))),
    "apart": (out(rows.T, 1, (300, 400)), slices(rows.T, 1, (300, 400))),
    "new": (lambda: kernel.copies(rows, 1, (400, 500), True), WANT),
    "views": (lambda: ts.split(rows, [400, 500], axis=1), WANT),
    "eager": (lambda: ts.split(rows, [400, 500], axis=1, copy=True), WANT),
    "pool": (lambda: ts.split(rows, [400, 500], axis=1, out=pool), WANT),
    "plan": (lambda: plan(rows, copy=True), WANT),
    "small": (lambda: ts.split(small, [1, 3], axis=1, copy=True), slices(small, 1, (1, 3))),
    "keywords": (lambda: ts.split(**{"input": small, "split": [1, 3], "axis": 1}),
                 slices(small, 1, (1, 3))),
    "empty": (lambda: [pool.blocks.empty((0, 1), small.dtype)], [None]),
    "in turns": (in_turns, [small[:, :1]] * 3 + [small[:, :2]] * 3),
    "remembered": (remembered, ["plan"] * 3),
    "join": (join, [rows] * 2),
    "joined": (joined, [small] * 2),
    "measured": (measured, WANT),
}

def check(name, parts):
    want = CALLS[name][1]
    if isinstance(want[0], np.ndarray):
        assert_same(parts, want)
    else:
        assert parts == want, (name, parts)

watched = rows, planes, small, small.dtype, plan, pool.blocks

def counts(name):
    "How many refer to what is watched, after calls that are alike."
    for _ in range(3):
        check(name, CALLS[name][0]())
    gc.collect()
    return [sys.getrefcount(each) for each in watched]
"""


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("error", "number"), [("MemoryError", 0), ("RuntimeError", 1), ("RuntimeError", 2)]
)
def test_every_allocation_of_every_call_may_fail(
    compiled: Compile, error: str, number: int
) -> None:
    library = compiled("-shared", "-fPIC", HERE / "allocations.cpp", "-ldl")
    preloaded = f"{library}:{os.environ.get('LD_PRELOAD', '')}".rstrip(":")
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
    text = printed(
        CALLS
        + """
import ctypes
faults = ctypes.CDLL(sys.argv[1])
error, number = getattr(__builtins__, sys.argv[2]), int(sys.argv[3])
total = 0
for name, (call, _) in CALLS.items():
    before = counts(name)
    for allocations in range(10_000):
        caught = parts = None
        faults.fail_after(allocations, number)
        try:
            parts = call()
        except error as raised:
            caught = True
        was_reached = faults.has_failed()
        faults.fail_after(-1, 0)
        if caught is None:
            check(name, parts)
        parts = None
        assert pool.in_use_bytes == 0, (name, allocations)
        if not was_reached:
            break
        total += 1
    assert counts(name) == before, (name, before, counts(name))
assert total > 50, total
print("fine")
""",
        library,
        error,
        number,
        LD_PRELOAD=preloaded,
        ASAN_OPTIONS=options,
    )
    assert text == "fine\n"


def test_every_allocation_of_python_may_fail() -> None:
    pytest.importorskip("_testcapi")
    text = printed(
        CALLS
        + """
import _testcapi
for name, (call, _) in CALLS.items():
    before = counts(name)
    for allocations in range(10_000):
        caught = parts = None
        _testcapi.set_nomemory(allocations, allocations + 1)
        try:
            parts = call()
        except MemoryError:
            caught = True
        _testcapi.remove_mem_hooks()
        if caught is None:
            check(name, parts)
        parts = None
        assert pool.in_use_bytes == 0, (name, allocations)
        if caught is None:
            break
    assert counts(name) == before, (name, before, counts(name))
print("fine")
"""
    )
    assert text == "fine\n"


@pytest.mark.parametrize("gives_back", [False, True], ids=["keeps it", "gives it back"])
def test_torch_may_refuse_memory(gives_back: bool) -> None:
    torch = pytest.importorskip("torch")
    if not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"):
        pytest.skip("this torch has no interface in C")
    text = printed(
        """
import ctypes, sys
import torch

class Interface(ctypes.Structure):  # of DLPack, in C
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("from_object", ctypes.c_void_p),
        ("to_object", ctypes.c_void_p), ("look", ctypes.c_void_p), ("stream", ctypes.c_void_p),
    ]

class Managed(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]

Deleter = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
asked = []

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def refuse(memory, tensor):
    asked.append(memory)
    if sys.argv[1] == "True":
        Deleter(Managed.from_address(memory).deleter)(memory)
    return -1  # without an exception, which a callback can't leave behind

name = b"dlpack_exchange_api"
get, make = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_New
get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
real = get(torch.Tensor.__dlpack_c_exchange_api__, name)
mine = Interface()
ctypes.memmove(ctypes.byref(mine), real, ctypes.sizeof(Interface))
mine.previous = None
mine.to_object = ctypes.cast(refuse, ctypes.c_void_p).value
torch.Tensor.__dlpack_c_exchange_api__ = make(ctypes.addressof(mine), name, None)

import tensorsplit as ts
pool = ts.BufferPool(1 << 24)
x = torch.rand(300, 400)
for _ in range(4):
    ts.split(x, [100, 300], axis=1, out=pool)  # as Python does it, where the kernel can't
    assert pool.in_use_bytes == 0 or not asked, pool
assert asked
print("fine")
""",
        gives_back,
    )
    assert text == "fine\n"
