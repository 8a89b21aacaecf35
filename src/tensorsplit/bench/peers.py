"""The timed libraries: how each runs a workload, and the baseline for all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from statistics import median
from timeit import repeat
from typing import Any

import numpy as np

import tensorsplit as ts
from tensorsplit import native
from tensorsplit.bench.workloads import Array, Kind, Prepared, Task, UnableError
from tensorsplit.core.errors import USAGE, SplitError, show

OURS = "tensorsplit"
"""The name under which the package itself takes part."""

OURS_ON = {f"{OURS}-{library}": library for library in ("torch", "jax")}
"""The names under which it takes part with arrays of another library, and that library."""

_CONTIGUOUS_ONLY = "it takes contiguous sources only"
_NO_SUCH_ARRAY = "it takes no such array"

THREADS = 2
"""How many threads the baseline, and every peer that has a choice, may use."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One way in which one library does one kind of workload."""

    peer: str  # the name of its module, or one of OURS_ON
    mode: str  # out: into given buffers; fresh: into new memory; pooled: into a pool's; view
    kind: Kind
    prepare: Callable[[Task], Prepared]  # raises UnableError


def baseline(task: Task) -> Callable[[], object]:
    """Run the baseline of a workload, without anything of the package.

    For copies, the same bytes copied from one touched block of memory to another; for views,
    `numpy.split` or plain slicing.
    """
    source = task.source
    if task.workload.kind == "views":
        return partial(np.split, source, _boundaries(task), task.workload.axis)
    if task.workload.kind == "plan":
        return _slicing(task).call
    if source.dtype.hasobject:  # references can't be seen as bytes
        return _memcpy(np.ones(source.nbytes, np.uint8), task.memory)
    return _memcpy(source.ravel(order="K").view(np.uint8), task.memory)


def _slicing(task: Task) -> Prepared:
    source, indices = task.source, task.workload.indices
    return Prepared(lambda: [source[index] for index in indices])


def _boundaries(task: Task) -> list[int]:
    """Return where each part but the first begins, as `numpy.split` takes it."""
    return [index[-1].start for index in task.workload.indices[1:]]


def _memcpy(source: Array, memory: Array) -> Callable[[], object]:
    """Return the faster of one thread and two, which is measured first."""
    target = memory[: source.size]
    middle = source.size // 2
    alone = partial(np.copyto, target, source)
    first = partial(np.copyto, target[:middle], source[:middle])
    second = partial(np.copyto, target[middle:], source[middle:])

    def together() -> None:
        other = _helper().submit(second)
        first()
        other.result()

    ways: list[Callable[[], object]] = [alone, together]
    return min(ways, key=lambda call: median(repeat(call, number=1, repeat=15)))


@cache
def _helper() -> ThreadPoolExecutor:
    """Return the second thread; it is started once and stays."""
    return ThreadPoolExecutor(THREADS - 1, "memcpy")


def _ours(task: Task, *, buffers: Sequence[Array] = (), **how: object) -> Prepared:
    """Return an eager call of the package itself."""
    return Prepared(_ours_of(task, task.source, **how), buffers=buffers)


def _ours_of(task: Task, array: object, **how: object) -> Callable[[], object]:
    """Return an eager call on an array of any library."""
    _use_threads()
    return partial(ts.split, array, list(task.workload.sizes), axis=task.workload.axis, **how)


def _use_threads() -> None:
    if native.kernel is not None:
        native.kernel.use_threads(THREADS)


def _ours_out(task: Task) -> Prepared:
    return _ours(task, buffers=task.buffers, out=list(task.buffers))


def _join(task: Task, *, out: bool = False) -> Prepared:
    """Join the parts eagerly, into the buffer or into new memory."""
    buffers = task.buffers if out else ()
    _use_threads()
    return _joined(partial(ts.join, list(task.parts), axis=task.workload.axis), buffers)


def _numpy_join(task: Task, *, out: bool = False) -> Prepared:
    call = partial(np.concatenate, list(task.parts), axis=task.workload.axis)
    return _joined(call, task.buffers if out else ())


def _joined(call: Callable[..., Array], buffers: Sequence[Array]) -> Prepared:
    if buffers:
        call = partial(call, out=buffers[0])
    return Prepared(call, lambda whole: [whole], buffers)


def _torch_join(task: Task, *, ours: bool = False, out: bool = False) -> Prepared:
    """Join tensors that share our memory by `torch.cat`, or by ours."""
    import torch

    torch.set_num_threads(THREADS)
    _use_threads()
    buffers = task.buffers if out else ()
    parts = [torch.from_numpy(part) for part in task.parts]
    how: dict[str, object] = {"out": torch.from_numpy(buffers[0])} if out else {}
    call = partial(ts.join if ours else torch.cat, parts, axis=task.workload.axis, **how)
    return Prepared(call, lambda whole: [whole.numpy()], buffers)


def _ours_pooled(task: Task) -> Prepared:
    """Split into memory of a `BufferPool` that can hold all parts."""
    if task.source.dtype.hasobject:
        raise UnableError("a pool holds no references to Python objects")
    return _ours(task, out=ts.BufferPool(2 * task.workload.nbytes + (1 << 20)))


def _ours_planned(task: Task) -> Prepared:
    workload = task.workload
    plan = ts.plan("onnx.Split-18", workload.shape, list(workload.sizes), axis=workload.axis)
    return Prepared(partial(plan, task.source))


def _numpy_out(task: Task) -> Prepared:
    """Copy each slice into its buffer."""
    source, indices, buffers = task.source, task.workload.indices, list(task.buffers)

    def call() -> list[Array]:
        for buffer, index in zip(buffers, indices, strict=True):
            np.copyto(buffer, source[index])
        return buffers

    return Prepared(call, list, buffers)


def _numpy_fresh(task: Task) -> Prepared:
    """Run `numpy.split` and make each part contiguous; one that is already is copied too."""
    source, axis, boundaries = task.source, task.workload.axis, _boundaries(task)
    return Prepared(lambda: [part.copy(order="C") for part in np.split(source, boundaries, axis)])


def _torch(
    task: Task, function: str | None = None, *, out: bool = False, **how: object
) -> Prepared:
    """Return a function of PyTorch, or ours, on a tensor that shares our memory."""
    import torch

    torch.set_num_threads(THREADS)
    buffers = task.buffers if out else ()
    try:
        tensor, *given = map(torch.from_numpy, (task.source, *buffers))
    except (TypeError, ValueError) as error:
        raise UnableError(_NO_SUCH_ARRAY, error) from None
    if out:
        how["out"] = given
    if function is None:
        call = _ours_of(task, tensor, **how)
    else:
        operands = tensor, list(task.workload.sizes), task.workload.axis
        call = partial(getattr(torch, function), *operands, **how)
    return Prepared(call, lambda parts: [part.numpy() for part in parts or given], buffers)


def _jax(task: Task, *, ours: bool = False) -> Prepared:
    """Run `jax.lax.split`, or ours, until the parts are there; there are no views."""
    source, workload = task.source, task.workload
    if not source.flags.c_contiguous:
        raise UnableError(_CONTIGUOUS_ONLY)
    import jax

    jax.config.update("jax_enable_x64", True)
    try:
        array = jax.numpy.asarray(source)
    except TypeError as error:
        raise UnableError(_NO_SUCH_ARRAY, error) from None
    if ours:
        call = _ours_of(task, array, copy=True)
    else:
        call = partial(jax.lax.split, array, workload.sizes, workload.axis)
    return Prepared(
        lambda: jax.block_until_ready(call()), lambda parts: list(map(np.asarray, parts))
    )


def _onnxruntime_out(task: Task) -> Prepared:
    """Return a run of a Split-18 whose input and outputs are bound to our memory."""
    source = task.source
    if source.dtype.hasobject:
        raise UnableError("it binds no memory to strings")
    if not source.flags.c_contiguous:
        raise UnableError(_CONTIGUOUS_ONLY)
    binding = (session := _session(task)).io_binding()
    binding.bind_input("x", "cpu", 0, source.dtype, source.shape, source.ctypes.data)
    for number, buffer in enumerate(task.buffers):
        binding.bind_output(f"y{number}", "cpu", 0, buffer.dtype, buffer.shape, buffer.ctypes.data)
    call = partial(session.run_with_iobinding, binding)
    return Prepared(call, lambda _: task.buffers, task.buffers)


def _session(task: Task) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # fatal errors only
    options.intra_op_num_threads = THREADS
    # The threads may spin within a run as they always do, but not into the time of the next peer.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    model = _model(task).SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _model(task: Task) -> Any:
    from onnx import helper, numpy_helper

    element = helper.np_dtype_to_tensor_dtype(task.source.dtype)
    names = [f"y{number}" for number in range(len(task.expected))]
    graph = helper.make_graph(
        [helper.make_node("Split", ["x", "split"], names, axis=task.workload.axis)],
        "split",
        [helper.make_tensor_value_info("x", element, task.source.shape)],
        [helper.make_tensor_value_info(name, element, None) for name in names],
        [numpy_helper.from_array(np.array(task.workload.sizes, np.int64), "split")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


_OPENVINO_CONFIG = {
    "INFERENCE_NUM_THREADS": THREADS,
    "NUM_STREAMS": 1,
    "EXECUTION_MODE_HINT": "ACCURACY",
    "ENABLE_CPU_PINNING": False,
}
_OPENVINO_INEXACT = {  # element types that do not keep their bits, measured on 2026.4.1
    "float16": "float32, which quiets signalling NaNs",
    "float64": "float32",
    "int64": "int32",
    "uint64": "int32",
}


def _openvino_out(task: Task) -> Prepared:
    """Run a VariadicSplit-1 whose input and output tensors are set to our memory."""
    source = task.source
    if source.dtype.hasobject:
        raise UnableError("its CPU plugin corrupts strings")
    if (computed := _OPENVINO_INEXACT.get(source.dtype.name)) is not None:
        raise UnableError(f"its CPU plugin computes {source.dtype} in {computed}")
    if not source.flags.c_contiguous:
        raise UnableError(_CONTIGUOUS_ONLY)
    import openvino
    from openvino import opset13

    parameter = opset13.parameter(source.shape, source.dtype)
    split = opset13.variadic_split(parameter, task.workload.axis, list(task.workload.sizes))
    model = openvino.Model(split.outputs(), [parameter])
    compiled = openvino.Core().compile_model(model, "CPU", _OPENVINO_CONFIG)
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(source, shared_memory=True))
    for number, buffer in enumerate(task.buffers):
        request.set_output_tensor(number, openvino.Tensor(buffer, shared_memory=True))
    call = partial(request.infer, share_outputs=True)
    return Prepared(call, lambda _: task.buffers, task.buffers)


ENTRIES = (
    Entry(OURS, "out", "copy", _ours_out),
    Entry(OURS, "pooled", "copy", _ours_pooled),
    Entry(OURS, "fresh", "copy", partial(_ours, copy=True)),
    Entry(OURS, "out", "join", partial(_join, out=True)),
    Entry(OURS, "fresh", "join", _join),
    Entry(OURS, "view", "views", _ours),
    Entry(OURS, "view", "plan", _ours_planned),
    Entry("numpy", "out", "copy", _numpy_out),
    Entry("numpy", "fresh", "copy", _numpy_fresh),
    Entry("numpy", "out", "join", partial(_numpy_join, out=True)),
    Entry("numpy", "fresh", "join", _numpy_join),
    Entry("numpy", "view", "views", _slicing),
    Entry(f"{OURS}-torch", "out", "copy", partial(_torch, out=True)),
    Entry(f"{OURS}-torch", "fresh", "copy", partial(_torch, copy=True)),
    Entry(f"{OURS}-torch", "out", "join", partial(_torch_join, ours=True, out=True)),
    Entry(f"{OURS}-torch", "fresh", "join", partial(_torch_join, ours=True)),
    Entry(f"{OURS}-torch", "view", "views", _torch),
    Entry("torch", "out", "copy", partial(_torch, function="split_with_sizes_copy", out=True)),
    Entry("torch", "fresh", "copy", partial(_torch, function="split_with_sizes_copy")),
    Entry("torch", "out", "join", partial(_torch_join, out=True)),
    Entry("torch", "fresh", "join", _torch_join),
    Entry("torch", "view", "views", partial(_torch, function="split")),
    Entry(f"{OURS}-jax", "fresh", "copy", partial(_jax, ours=True)),
    Entry("jax", "fresh", "copy", _jax),
    Entry("onnxruntime", "out", "copy", _onnxruntime_out),
    Entry("openvino", "out", "copy", _openvino_out),
)
"""Everything that is timed, in the order of the report."""

PEERS = tuple(dict.fromkeys(entry.peer for entry in ENTRIES if entry.peer not in OURS_ON))
"""The names of the libraries; the package itself is the first."""


def installed() -> dict[str, str]:
    """Return the version of every library that is installed, by its name."""
    known = metadata.packages_distributions()  # a module may come from several distributions
    others = [peer for peer in PEERS if peer in known and peer != OURS]
    return {OURS: ts.__version__, **{peer: metadata.version(known[peer][0]) for peer in others}}


def is_ours(peer: str) -> bool:
    """Return whether it is the package itself, with arrays of whatever library."""
    return peer == OURS or peer in OURS_ON


def choose_entries(names: tuple[str, ...]) -> list[Entry]:
    """Choose what to time, with the package itself always; TS703 for a library not installed.

    No names means every peer that is installed. Beside a library whose arrays it takes, the package
    takes part with these, too.
    """
    here = installed()
    for name in names:
        if name not in here:
            state = "not installed" if name in PEERS else "not known"
            raise SplitError(
                USAGE,
                f"the library {show(name)} is {state}",
                f"install it, or give one of {', '.join(here)}",
                parameter="library",
            )
    wanted = {OURS, *(names or here)}
    return [entry for entry in ENTRIES if OURS_ON.get(entry.peer, entry.peer) in wanted]
