"""Apache TVM: its ONNX frontend for Relax, compiled by LLVM for the CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tensorsplit.conformance.subjects import ordered, unsupported

KIND = "engine"
PACKAGES = ("apache-tvm",)
MODULES = ("onnx", "tvm.relax.frontend.onnx")
FORMATS = ("onnx",)

IMPORTS = """\
import onnx, tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx"""
SCRIPT = """\
module = from_onnx(onnx.load_from_string(MODEL))
machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
names = [parameter.name for parameter in module["main"].params]
machine.set_input("main", *[tvm.runtime.tensor(INPUTS[name]) for name in names])
machine.invoke_stateful("main")
found = machine.get_outputs("main")
found = [found] if len(OUTPUTS) == 1 else found
results = {
    name: value.numpy() if hasattr(value, "numpy") else [part.numpy() for part in value]
    for name, value in zip(OUTPUTS, found)
}"""

_UNSUPPORTED = r"unknown dtype|Operator \w+ not implemented"


def run(
    model: bytes, weights: bytes, inputs: dict[str, Any], outputs: Sequence[str]
) -> dict[str, Any]:
    """Run a model; see `tensorsplit.conformance.subjects`."""
    import tvm

    del weights
    with unsupported(model, tvm.error.OpNotImplemented, says=_UNSUPPORTED):
        found = _invoke(model, inputs)
    values = [found] if len(outputs) == 1 else list(found)
    return {name: _array(value) for name, value in zip(outputs, values, strict=True)}


def _invoke(model: bytes, inputs: dict[str, Any]) -> Any:
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx

    module = from_onnx(onnx.load_from_string(model))
    machine = relax.VirtualMachine(tvm.compile(module, target="llvm"), tvm.cpu())
    names = [parameter.name for parameter in module["main"].params]
    machine.set_input("main", *map(tvm.runtime.tensor, ordered(model, inputs, names)))
    machine.invoke_stateful("main")
    return machine.get_outputs("main")


def _array(value: Any) -> Any:
    """A tensor as an array; a sequence is a tuple of tensors."""
    return np.asarray(value.numpy()) if hasattr(value, "numpy") else [_array(v) for v in value]
