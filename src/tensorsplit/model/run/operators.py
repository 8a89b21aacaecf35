"""Operators other than splits and those with bodies, one node at a time.

Most run in onnx's reference implementation, which has one for several versions of an operator.
Operators on sequences and optionals are our own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tensorsplit.model.run.corrections import CORRECTED
from tensorsplit.model.run.older_versions import OLDER
from tensorsplit.model.run.operand_checks import CHECKS, checked
from tensorsplit.model.run.program import Kernel, Step, Values, node_failed
from tensorsplit.model.run.reference_calls import Call, RunCall, reference_kernel
from tensorsplit.model.run.sequence_kernels import SEQUENCES


def run(step: Step, inputs: Sequence[object]) -> Values:
    """Run a node that has been checked against its schema; raises whatever its implementation does.

    Absent inputs are None, and so are outputs that the node does not name.
    """
    if step.kernel is None:
        step.kernel = _prepared(step)
    return step.kernel(inputs)


def _prepared(step: Step) -> Kernel:
    """Return a kernel for a node, which can run again and again."""
    if step.domain == "" and step.op_type in SEQUENCES:
        kernel = SEQUENCES[step.op_type]
        return lambda inputs: [kernel(*inputs)]
    # consumed_inputs named the buffers that old engines may reuse; results do not depend on it
    attributes = {k: a for k, a in step.attributes.items() if k != "consumed_inputs"}
    version = _version(step)
    if version is None:
        return reference_kernel(step, attributes, step.opsets, step.op_type)
    made: list[Kernel] = []

    def run_version(inputs: Sequence[object]) -> Values:
        if not all(isinstance(value, np.ndarray) for value in inputs if value is not None):
            raise node_failed("an input is not a tensor", "give tensors")
        return version(Call(step, inputs, attributes, made))

    return run_version


def _version(step: Step) -> RunCall | None:
    """Return our kernel for a node that the reference alone runs wrongly, or does not refuse.

    None for others.
    """
    if step.domain != "":
        return None
    until, older = OLDER.get(step.op_type, (0, None))
    run = older if step.opset < until else CORRECTED.get(step.op_type)
    checks = CHECKS.get(step.op_type)
    return run if checks is None else checked(Call.run if run is None else run, checks)
