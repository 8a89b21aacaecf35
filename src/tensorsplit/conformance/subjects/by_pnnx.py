"""The adapter of ncnn: pnnx converts a model, as in ncnn's documentation; it runs on the CPU.

pnnx is a program, which the distribution of the same name brings along.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx

from tensorsplit.engines.adapters import Outputs, ordered
from tensorsplit.engines.messages import Unsupported

_PNNX_TYPES = {"float64": "f64", "float32": "f32", "float16": "f16", "bool": "bool"} | {
    f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}
_BATCH = re.compile(r"(ex\.input|out\.append)\(.*batch_index=(\d+)")


def run_ncnn(
    model: bytes, weights: bytes, inputs: Mapping[str, object], outputs: Sequence[str]
) -> Outputs:
    """Run in ncnn, with numbers as they are; the shapes of what is fed are given to pnnx.

    A tensor of ncnn has no element type, but a size of its elements: the model has the type.
    """
    del weights
    graph = onnx.load_from_string(model).graph
    given = {entry.name for entry in graph.initializer}
    names = [entry.name for entry in graph.input if entry.name not in given]
    arrays = ordered(model, inputs, names)
    with TemporaryDirectory() as folder:
        text, script = _by_pnnx(model, arrays, folder)
        batches = [(kind, int(index)) for kind, index in _BATCH.findall(script)]
        into = [index for kind, index in batches if kind == "ex.input"]
        out_of = [index for kind, index in batches if kind == "out.append"]
        if (len(into), len(out_of)) != (len(arrays), len(outputs)):
            raise RuntimeError(f"pnnx makes {len(into)} inputs and {len(out_of)} outputs")
        found = _by_ncnn(text, Path(folder, "model.ncnn.bin"), arrays, into, out_of)
    results = {}
    for name, entry, array in zip(outputs, graph.output, found, strict=True):
        dtype = onnx.helper.tensor_dtype_to_np_dtype(entry.type.tensor_type.elem_type)
        results[name] = array.view(dtype) if array.itemsize == dtype.itemsize else array
    return results


def _by_pnnx(model: bytes, arrays: Sequence[object], folder: str) -> tuple[str, str]:
    """Convert a model in a folder; return ncnn's text, and the script that shows how to run it.

    What kills pnnx kills this process too, so that a crash is seen as one.
    """
    package = find_spec("pnnx")
    if package is None or package.origin is None:
        raise ImportError("pnnx")
    Path(folder, "model.onnx").write_bytes(model)
    shapes = f"inputshape={','.join(map(_pnnx_shape, arrays))}"
    program = Path(package.origin).with_name("pnnx")  # importing the package imports PyTorch
    done = subprocess.run(  # noqa: S603 - the program of the engine
        [program, "model.onnx", "fp16=0", *([shapes] if arrays else [])],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode < 0:
        signal.signal(-done.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -done.returncode)
    made = Path(folder, "model.ncnn.param")
    if not made.is_file():
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines() or [
            "it printed nothing"
        ]
        raise RuntimeError(f"pnnx ended with exit status {done.returncode}: {' '.join(lines[-2:])}")
    return made.read_text("utf-8"), Path(folder, "model_ncnn.py").read_text("utf-8")


def _pnnx_shape(value: object) -> str:
    """Return an input's shape and element type, as pnnx takes them."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in _PNNX_TYPES:
        raise Unsupported("pnnx takes no such inputs: strings, sequences, complex or small numbers")
    return f"[{','.join(map(str, value.shape))}]{_PNNX_TYPES[value.dtype.name]}"


def _by_ncnn(
    text: str, weights: Path, arrays: Sequence[object], into: Sequence[int], out_of: Sequence[int]
) -> list[Any]:
    """Run the model that pnnx made; each array has the index of an axis for the batch."""
    import ncnn

    kinds = set(re.findall(r"^(\S+) +\S+ +\d", text, re.MULTILINE))
    lacking = {kind for kind in kinds if ncnn.layer_to_index(kind) < 0}
    if lacking:
        raise Unsupported(f"ncnn has no layers {', '.join(sorted(lacking))}")
    with ncnn.Net() as net:
        net.opt.num_threads = 1
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = net.opt.use_fp16_arithmetic = False
        net.opt.use_bf16_storage = False
        if net.load_param_mem(text) or net.load_model(str(weights)):
            raise RuntimeError("ncnn can't load the model")
        with net.create_extractor() as extractor:
            fed = [
                ncnn.Mat(np.ascontiguousarray(array), batch_index=index).clone()
                for array, index in zip(arrays, into, strict=True)
            ]
            for place, tensor in enumerate(fed):
                if extractor.input(f"in{place}", tensor):
                    raise RuntimeError(f"ncnn takes no input in{place}")
            found = []
            for place, index in enumerate(out_of):
                status, tensor = extractor.extract(f"out{place}")
                if status:
                    raise RuntimeError(f"ncnn gives no output out{place}: {status}")
                found.append(np.array(tensor.numpy(batch_index=index)))
    return found
