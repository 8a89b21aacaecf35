"""What is used of other libraries that they do not promise: where it is, and that it is there."""

from __future__ import annotations

import ast
import re
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tensorsplit"

NAMES: dict[tuple[str, str], dict[str, tuple[str, ...]]] = {
    ("onnx_ir", "onnx-ir"): {
        "model/graph/nodes.py": ("Node._inputs", "Value._add_usage", "Value._remove_usage"),
        "core/dimensions.py": ("SymbolicDim._expr",),
    },
    ("onnx.reference.op_run", "onnx"): {
        "model/run/reference_calls.py": ("OpRun._run", "OpRun._check_and_fix_outputs"),
    },
    ("torch", "torch"): {
        "arrays/torch.py": (
            "_C._functorch.peek_interpreter_stack",
            "_C._is_tracing",
            "_C._len_torch_dispatch_stack",
            "_C._len_torch_function_stack",
            "autograd.forward_ad._current_level",
        ),
        "arrays/torch_compiled.py": ("_check", "_dynamo.graph_break"),
    },
}
"""By the module and the distribution, which file uses what."""


@pytest.mark.parametrize(("module", "library"), NAMES)
def test_a_private_name_is_where_it_was(module: str, library: str) -> None:
    found = pytest.importorskip(module)
    for names in NAMES[module, library].values():
        for name in names:
            try:
                attrgetter(name)(found)
            except AttributeError:
                pytest.fail(f"{library} {version(library)} has no {module}.{name}")


def test_each_private_name_is_used_in_the_file_that_is_listed() -> None:
    found: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.Attribute) or not re.match("_[a-z]|_C", node.attr):
                continue
            if "noqa: SLF001" in lines[node.lineno - 1]:
                name = path.relative_to(SOURCE).as_posix()
                found.setdefault(name, set()).add(node.attr)
    assert found == {
        file: {part for name in names for part in name.split(".") if part.startswith("_")}
        for files in NAMES.values()
        for file, names in files.items()
    }


def test_the_modules_that_zarr_keeps_to_itself_are_imported_in_one_file() -> None:
    used = {
        path.name: found
        for path in SOURCE.rglob("*.py")
        if (found := re.findall(r"\bzarr\.core\b", path.read_text(encoding="utf-8")))
    }
    assert set(used) == {"zarr_internals.py"}
