"""OpenVINO by itself, in a process of its own: what an IR gives there, or that it is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WORKER = """
import pickle, sys
import openvino

path, cases = pickle.load(sys.stdin.buffer)
core = openvino.Core()
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
    strings = openvino.Type.string
    found.append([(t.str_data if t.element_type == strings else t.data).copy() for t in tensors])
pickle.dump(found, sys.stdout.buffer)
"""


def run_in_openvino(path: Path, cases: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the outputs of each case, or the text of the refusal."""
    done = subprocess.run(
        [sys.executable, "-c", _WORKER],
        input=pickle.dumps((str(path), [list(feeds) for feeds in cases])),
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found: list[Any] = pickle.loads(done.stdout)
    return found
