"""`import tensorsplit` loads nothing, and the functions on arrays NumPy and nothing heavier."""

from __future__ import annotations

import os

import pytest

from tests.interpreters import printed

HEAVY = [
    *("onnx", "onnx_ir", "ml_dtypes", "sympy", "click", "rich", "defusedxml", "jinja2"),
    *("torch", "openvino", "onnxruntime", "google.protobuf"),
]


def fresh(code: str) -> str:
    """What a fresh interpreter prints."""
    return printed(code, PYTHONDONTWRITEBYTECODE="")  # as where it is installed


@pytest.mark.parametrize(
    "use",
    [
        "import tensorsplit",
        "import tensorsplit.openvino",
        "import tensorsplit as ts; dir(ts.torch)",
        "import numpy, tensorsplit as ts; ts.split(numpy.zeros(6), [2, 4], copy=True)",
        "import numpy, tensorsplit as ts; ts.split_to_sequence(numpy.zeros(6), numpy.array(2))",
        "import tensorsplit as ts; ts.infer('onnx.Split-18', (7, 4), num_outputs=3)",
        "import tensorsplit as ts; ts.infer('onnx.Split-18', ('N', 4), num_outputs=2, axis=1)",
        "import tensorsplit as ts; dir(ts), ts.diff('onnx.Split-13', 'onnx.Split-18')",
    ],
)
def test_nothing_heavier_than_numpy_is_loaded(use: str) -> None:
    loaded = fresh(f"{use}\nimport sys; print(*sys.modules)").split()
    assert "tensorsplit" in loaded
    assert not set(HEAVY) & set(loaded)


def test_the_import_alone_does_not_load_numpy() -> None:
    assert "numpy" not in fresh("import sys, tensorsplit; print(*sys.modules)").split()


def test_a_name_in_arithmetic_loads_what_it_needs() -> None:
    use = "import tensorsplit as ts; print(ts.infer('onnx.Split-13', ('N',), num_outputs=2))"
    assert "floor(N/2)" in fresh(use)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_for_what_another_thread_loads() -> None:
    fresh(
        """
import os, threading
import tensorsplit as ts
threads = [threading.Thread(target=lambda: ts.operators) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        ts.operators
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_and_what_is_loaded_do_not_wait_for_each_other() -> None:
    fresh(
        """
import os, sys, threading
import tensorsplit as ts
import logging

def fork():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

class Finder:
    def find_spec(self, name, path, target=None):
        if name == "tensorsplit.core.records":  # a fork has begun, and then a logger is made
            sys.meta_path.remove(self)
            threading.Thread(target=fork).start()
            threading.Event().wait(0.1)
            logging.getLogger("made while the package loads")

sys.meta_path.insert(0, Finder())
ts.operators
"""
    )


def test_other_threads_see_no_stand_in_for_sympy_while_onnx_ir_is_imported() -> None:
    code = (
        "import sys\n"
        "before, seen = list(sys.meta_path), []\n"
        "def look(event, given):\n"
        "    if event == 'import' and given[0].startswith('onnx_ir.'):\n"
        "        seen.append('sympy' in sys.modules)\n"
        "sys.addaudithook(look)\n"
        "import tensorsplit.model\n"
        "print(len(seen) > 10, any(seen), sys.meta_path == before)"
    )
    assert fresh(code).split("\n")[0] == "True False True"


def test_a_model_without_names_of_dimensions_does_not_load_sympy() -> None:
    code = (
        "import sys, onnx, tensorsplit as ts\n"
        "x = onnx.helper.make_tensor_value_info('x', 1, [4])\n"
        "y = onnx.helper.make_tensor_value_info('a', 1, [2])\n"
        "node = onnx.helper.make_node('Split', ['x'], ['a', 'b'], num_outputs=2)\n"
        "graph = onnx.helper.make_graph([node], 'g', [x], [y])\n"
        "made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid('', 18)])\n"
        "ts.check(made), ts.infer_shapes(made), ts.convert(made, opset=13)\n"
        "print('sympy' in sys.modules)\n"
        "import onnx_ir, sympy\n"
        "found = onnx_ir.SymbolicDim('max(N, 3)') + 1\n"
        "print(found, isinstance(found._expr, sympy.Expr))"
    )
    assert fresh(code).split("\n")[:2] == ["False", "Max(3, N) + 1 True"]
