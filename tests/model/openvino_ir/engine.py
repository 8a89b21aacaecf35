"""What an IR gives, or that it is refused: in OpenVINO, in a process of its own, and in ours."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tensorsplit as ts

_WORKER = """
import pickle, sys
import openvino

def run(path, cases):
    load = lambda: core.compile_model(path, "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    compiled, found = load(), []
    for feeds in cases:
        request = compiled.create_infer_request()
        try:
            request.start_async(dict(enumerate(feeds)))
            request.wait()
        except RuntimeError as error:
            found.append(str(error))
            compiled = load()  # a node keeps the shapes of a run that failed
            continue
        tensors = [request.get_output_tensor(place) for place in range(len(compiled.outputs))]
        found.append([held(tensor).copy() for tensor in tensors])
    return found

def held(tensor):
    return tensor.str_data if tensor.element_type == openvino.Type.string else tensor.data

core = openvino.Core()
found = [run(*each) for each in pickle.load(sys.stdin.buffer)]
pickle.dump(found, sys.stdout.buffer)
"""


def run_in_openvino(path: Path, cases: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the outputs of each case, or the text of the refusal."""
    return run_all_in_openvino([(path, cases)])[0]


def run_by_ourselves(path: Path, cases: Sequence[Sequence[Any]]) -> list[Any]:
    """Do as `run_in_openvino` in our own engine, after a conversion to ONNX."""
    found: list[Any] = []
    model = ts.convert(path, opset=18)
    names = [each.name for each in model.graph.input]
    for feeds in cases:
        try:
            found.append([*ts.run(model, dict(zip(names, feeds, strict=True))).values()])
        except ts.SplitError as error:
            found.append(str(error))
    return found


def run_all_in_openvino(models: Iterable[tuple[Path, Sequence[Sequence[Any]]]]) -> list[list[Any]]:
    """Do as `run_in_openvino` for several models, one after the other."""
    done = subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=pickle.dumps([(str(path), list(map(list, cases))) for path, cases in models]),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: list[list[Any]] = pickle.loads(done.stdout)
    return found
