"""An OpenVINO IR as an ONNX model: each layer becomes nodes that mean the same, or is refused."""

from __future__ import annotations

import onnx_ir as ir

from tensorsplit.core.errors import NO_COUNTERPART, SplitError
from tensorsplit.core.records import in_force
from tensorsplit.core.records.openvino import DOMAIN
from tensorsplit.model.convert.conversion import Conversion, ConversionReport, NodeConversion
from tensorsplit.model.convert.family import express, requested_split
from tensorsplit.model.convert.layer_bodies import open_bodies
from tensorsplit.model.convert.layer_conversion import LayerConversion
from tensorsplit.model.convert.layer_rules import RULES
from tensorsplit.model.graph.message import with_data_inside
from tensorsplit.model.graph.nodes import walk
from tensorsplit.model.graph.split_records import is_vendor_split
from tensorsplit.model.infer.analysis import analyse
from tensorsplit.model.infer.filling import fill
from tensorsplit.model.openvino_ir import LAYER_LIMITS, LAYER_PATH, LAYER_VERSION
from tensorsplit.model.openvino_ir.attributes import OPSET
from tensorsplit.model.reading import OnnxModel
from tensorsplit.model.validity.model_errors import check_well_formed

_LARGEST_INSIDE = 1 << 19
"""Constants of more bytes stay in the ``.bin``, as external data."""


def open_ir(read: OnnxModel, report: ConversionReport) -> OnnxModel:
    """Return an IR as an ONNX model at opset 18; what is larger stays in its ``.bin``.

    Raises:
        SplitError: TS514 for a layer that has no counterpart, or an input of any element type;
            TS1xx to TS3xx for a split layer that is wrong.
    """
    message = with_data_inside(read.original, read.folder, _LARGEST_INSIDE)
    opened = OnnxModel(message, read.folder)
    model = opened.model
    check_well_formed(model)
    _check_inputs(model)
    open_bodies(model, report)
    conversion = Conversion(model, OPSET, report)
    for ref in list(walk(model, "converting")):
        if ref.node.domain == DOMAIN:
            try:
                _convert(conversion.started(ref))
            except SplitError as error:
                raise error.located(node=ref.path) from None
    conversion.finish()
    report.is_changed = True
    model.opset_imports.pop(DOMAIN, None)
    for ref in list(walk(model)):
        for key in (LAYER_PATH, LAYER_VERSION):
            ref.node.metadata_props.pop(key, None)
    for value in model.graph.inputs:
        value.metadata_props.pop(LAYER_LIMITS, None)
    _describe(model)
    return opened


def _check_inputs(model: ir.Model) -> None:
    """Refuse an input of any element type (TS514); those of an ONNX model declare theirs."""
    for value in model.graph.inputs:
        if value.dtype in (None, ir.DataType.UNDEFINED):
            problem = "it takes tensors of any element type, and no input of an ONNX model does"
            fix = "give its Parameter an element type"
            raise SplitError(NO_COUNTERPART, problem, fix, parameter=value.name)


def _describe(model: ir.Model) -> None:
    """Declare of each value what its node gives; where that is not known, its port's stays."""
    values = [value for ref in walk(model) for value in ref.node.outputs]
    declared = [(value.type, value.shape) for value in values]
    for value in values:
        value.type = value.shape = None
    fill(model, analyse(model))
    for value, (kind, shape) in zip(values, declared, strict=True):
        value.type = value.type or kind
        if value.shape is None:
            value.shape = shape


def _convert(node: NodeConversion) -> None:
    """Bring a layer to ONNX."""
    if is_vendor_split(node.node):
        _convert_split(node)
        return
    layer, rule = LayerConversion(node), RULES.get(node.op_type)
    if rule is None:
        raise layer.refusal("none is known here", "run the IR in OpenVINO")
    if layer.version not in rule.versions:
        known = ", ".join(sorted(rule.versions))
        raise layer.refusal("its version is another one", f"known are {known}")
    other = sorted(node.node.attributes.keys() - rule.attributes)
    if other:
        raise layer.refusal(f"its attribute {other[0]} is not known here")
    made = rule.make(layer)
    layer.finish([made] if isinstance(made, ir.Value) else made)


def _convert_split(node: NodeConversion) -> None:
    """Bring a split layer to ONNX's Split, by what it asks for."""
    intent = requested_split(node)
    if intent.axis is None:
        problem = "its axis is known only at run time"
        raise LayerConversion(node).refusal(problem, "make it a constant")
    inputs = [node.input(0)]
    lengths = node.input(2)
    if intent.given is None and lengths is not None:
        inputs.append(node.make.int64(lengths, node.dtype(2)))
    node.set_inputs(*inputs)
    node.node.domain, node.node.op_type = "", "Split"
    node.node.attributes.clear()
    express(node, intent, in_force("Split", OPSET))
    node.origin.became.append(node.op_type)
    node.conversion.note(node.origin)
