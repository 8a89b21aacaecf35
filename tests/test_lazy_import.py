"""`import tensorsplit` loads NumPy and nothing heavier, and costs little beyond it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = [
    *("onnx", "onnx_ir", "ml_dtypes", "sympy", "click", "rich", "defusedxml", "jinja2"),
    *("torch", "openvino", "onnxruntime", "google.protobuf"),
]


def python(code: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # as where it is installed
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.parametrize(
    "use",
    [
        "import tensorsplit",
        "import tensorsplit.openvino",
        "import numpy, tensorsplit as ts; ts.split(numpy.zeros(6), [2, 4], copy=True)",
        "import numpy, tensorsplit as ts; ts.split_to_sequence(numpy.zeros(6), numpy.array(2))",
        "import tensorsplit as ts; ts.infer('onnx.Split-18', (7, 4), num_outputs=3)",
        "import tensorsplit as ts; ts.infer('onnx.Split-18', ('N', 4), num_outputs=2, axis=1)",
        "import tensorsplit as ts; dir(ts), ts.diff('onnx.Split-13', 'onnx.Split-18')",
    ],
)
def test_nothing_heavier_than_numpy_is_loaded(use: str) -> None:
    loaded = python(f"{use}\nimport sys; print(*sys.modules)").split()
    assert "tensorsplit" in loaded
    assert not set(HEAVY) & set(loaded)


def test_a_name_in_arithmetic_loads_what_it_needs() -> None:
    use = "import tensorsplit as ts; print(ts.infer('onnx.Split-13', ('N',), num_outputs=2))"
    assert "floor(N/2)" in python(use)


def test_the_import_takes_less_than_half_as_long_again_as_that_of_numpy() -> None:
    code = (
        "import time; start = time.perf_counter(); import numpy; middle = time.perf_counter();"
        "import tensorsplit; print((time.perf_counter() - start) / (middle - start))"
    )
    ratios: list[float] = []
    while len(ratios) < 9 and (not ratios or min(ratios) >= 1.5):  # the best of several
        ratios.append(float(python(code)))
    assert min(ratios) < 1.5
