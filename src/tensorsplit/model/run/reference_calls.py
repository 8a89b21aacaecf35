"""One node in onnx's reference implementation, with inputs and attributes that may be changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx_ir as ir
from onnx import GraphProto, NodeProto, ValueInfoProto
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from tensorsplit.core.errors import UNSUPPORTED_NODE, SplitError, short_name
from tensorsplit.model.graph.engine_operators import in_onnx
from tensorsplit.model.graph.held_tensors import tensors
from tensorsplit.model.graph.nodes import bodies, scopes_in
from tensorsplit.model.graph.tensors import Array, read_tensor
from tensorsplit.model.run.program import Kernel, Step, Values
from tensorsplit.model.run.reference_splits import NEW_OPS


class Call(NamedTuple):
    """A node with the values of its inputs and its attributes."""

    step: Step
    inputs: Sequence[Any]
    attributes: Mapping[str, ir.Attr]
    made: list[Kernel]  # empty, or what runs it, which is made once

    def attribute(self, name: str, default: object = None) -> Any:
        """Return the value of an attribute, or the default if it is absent."""
        return self.attributes[name].value if name in self.attributes else default

    @property
    def names_more(self) -> bool:
        """Whether the node names outputs after the first."""
        return any(value.name for value in self.step.node.outputs[1:])

    def given(self, *inputs: object, **attributes: Any) -> Call:
        """Return the call with these inputs, if there are any, and these attributes as well."""
        made = {name: ir.convenience.convert_attribute(name, v) for name, v in attributes.items()}
        return self._replace(inputs=inputs or self.inputs, attributes={**self.attributes, **made})

    def run(self, opset: int | None = None, op_type: str | None = None) -> Values:
        """Run it by onnx's reference implementation, at the node's opset or at that given."""
        step = self.step
        if not self.made:
            opsets = step.opsets if opset is None else {"": opset}
            made = reference_kernel(step, self.attributes, opsets, op_type or step.op_type)
            self.made.append(made)
        return self.made[0](self.inputs)


RunCall: TypeAlias = Callable[[Call], Values]
"""Runs a node of an operator, with all that is known of the call."""


def reference_kernel(
    step: Step, attributes: Mapping[str, ir.Attr], opsets: Mapping[str, int], op_type: str
) -> Kernel:
    """Return onnx's evaluator of a node as a kernel, or of the node of ONNX that it means.

    The evaluator does not run whole graphs (ADR 7): it ignores function overloads and defaults of
    attributes, mixes up omitted outputs and inputs, and hides which node failed.
    """
    outputs = step.node.outputs
    meant = in_onnx(op_type, opsets[""]) if step.domain == "" else None
    if meant is None:
        return _kernel(step, attributes, opsets, op_type, outputs)
    if problem := meant.lack(outputs):
        raise SplitError(UNSUPPORTED_NODE, problem, "run the model on another engine")
    opsets, count = {**opsets, "": meant.opset}, meant.outputs
    kernel = _kernel(step, attributes, opsets, meant.op_type, outputs[:count])
    return lambda inputs: [*kernel(inputs), *[None] * len(outputs[count:])]


def _kernel(
    step: Step,
    attributes: Mapping[str, ir.Attr],
    opsets: Mapping[str, int],
    op_type: str,
    outputs: Sequence[ir.Value],
) -> Kernel:
    """Return a kernel for one operator with the inputs of a node, by names of our own."""
    node = NodeProto(
        op_type=op_type,
        domain=step.domain,
        input=[f"i{k}" if value is not None else "" for k, value in enumerate(step.inputs)],
        output=[f"o{k}" if value.name else "" for k, value in enumerate(outputs)],
        attribute=map(ir.serde.serialize_attribute, map(_embedded, attributes.values())),
    )
    for label, body in bodies(step.node):
        held = (tensor for scope in scopes_in(body) for tensor in tensors(scope))
        if any(isinstance(tensor, ir.ExternalTensor) for tensor in held):
            # the evaluator would look for it in the working directory
            problem = f"{label} holds external data"
            raise SplitError(UNSUPPORTED_NODE, problem, "embed it in the model")
    ends = [ValueInfoProto(name=name) for name in node.output if name]
    graph = GraphProto(node=[node], output=ends)
    try:
        evaluator = ReferenceEvaluator(graph, opsets=dict(opsets), new_ops=list(NEW_OPS))
    except (NotImplementedError, RuntimeError, ImportError) as error:
        name = f"{short_name(step.domain or 'ai.onnx')}::{short_name(step.op_type)}"
        problem = f"{name} has no implementation at opset {step.opset}"
        raise SplitError(UNSUPPORTED_NODE, problem, "run the model on another engine") from error
    (implementation,) = evaluator.rt_nodes_
    if implementation.need_context():
        names = list(node.input)
        return lambda inputs: list(
            implementation.run(*inputs, context=dict(zip(names, inputs, strict=True)))
        )
    if type(implementation).run is not OpRun.run or implementation.has_linked_attribute:
        return lambda inputs: list(map(_as_array, implementation.run(*inputs)))
    given = {name: getattr(implementation, name) for name in implementation.attributes_names_}

    def run_directly(inputs: Sequence[object]) -> Values:
        """Do as `OpRun.run`, without what that finds out each time."""
        found = implementation._run(*inputs, **given)  # noqa: SLF001 - what classes define
        if type(found) is not tuple or not all(type(value) is np.ndarray for value in found):
            found = implementation._check_and_fix_outputs(found)  # noqa: SLF001 - as `run` does
        return list(found)

    return run_directly


def _as_array(value: object) -> object:
    """Return a result; NumPy makes numbers of what has rank 0."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def _embedded(attribute: ir.Attr) -> ir.Attr:
    """Return the attribute, with external data read into it."""
    if not isinstance(attribute.value, ir.ExternalTensor):
        return attribute
    return ir.AttrTensor(attribute.name, ir.tensor(read_tensor(attribute.value, attribute.name)))


def unsupported(_call: Call) -> list[Array]:
    """Refuse a node that has no implementation (TS509)."""
    raise SplitError(
        UNSUPPORTED_NODE,
        "this older version of the operator has no implementation",
        "convert the model to a newer opset, or run it on another engine",
    )


def computed(kernel: Callable[..., Values]) -> RunCall:
    """Return what runs a kernel of our own."""

    def run_kernel(call: Call) -> list[Array]:
        attributes = {name: held.value for name, held in call.attributes.items()}
        return kernel(*call.inputs, opset=call.step.opset, **attributes)

    return run_kernel
