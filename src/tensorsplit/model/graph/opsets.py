"""Opsets and schemas: which version of an operator is in force."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import onnx_ir as ir
from onnx import defs

from tensorsplit.core.errors import UNKNOWN_OPERATOR, SplitError, show_int
from tensorsplit.core.records import NEWEST_OPSET

_FIRST_IR_WITH_OPSETS = 3

ATTENTION_MASK, ATTENTION_PAST_KEY = 3, 4
"""The places among the inputs of an Attention: of the mask, and of the keys of the past."""


def domain_name(domain: str) -> str:
    """Return the domain; ONNX's own is ``""``, which models may also call ``ai.onnx``.

    onnx-ir does the same for nodes.
    """
    return "" if domain == "ai.onnx" else domain


def domain_opsets(imports: Mapping[str, int]) -> dict[str, int]:
    """Return the opset of each domain; ONNX's own is ``""``, imported as ``ai.onnx`` or not."""
    return {domain_name(domain): version for domain, version in imports.items()}


def is_before_opsets(ir_version: int) -> bool:
    """Return whether models of an IR version have no imports, so opset 1; 0 stands for none."""
    return 0 < ir_version < _FIRST_IR_WITH_OPSETS


def model_opsets(model: ir.Model) -> dict[str, int]:
    """Return the opset of each domain in the main graph; 1 for models before IR version 3."""
    if not model.opset_imports and is_before_opsets(model.ir_version):
        return {"": 1}
    return domain_opsets(model.opset_imports)


def check_known(opset: int, operator: str | None = None) -> None:
    """Refuse (TS101) an opset that neither the records nor the installed onnx know."""
    if opset > max(NEWEST_OPSET, defs.onnx_opset_version()):
        raise SplitError(
            UNKNOWN_OPERATOR,
            f"opset {show_int(opset)} is newer than the installed onnx",
            f"install one that knows it, or use an opset up to {NEWEST_OPSET}",
            operator=operator,
            parameter="opset",
        )


def is_unchanged(op_type: str, opset: int) -> bool:
    """Return whether an opset is newer than the records, and the operator is not newer in onnx.

    False for an opset that the installed onnx does not know.
    """
    if not NEWEST_OPSET < opset <= defs.onnx_opset_version():
        return False
    schema = schema_of(op_type, opset)
    return schema is not None and schema.since_version <= NEWEST_OPSET


# What onnx's stub does not have of a schema is used here alone.


def attribute_type(attribute: Any) -> str:
    """Return the name of the type of a schema's attribute, such as ``INTS``."""
    return str(attribute.type.name)


def is_defined(schema: Any) -> bool:
    """Return whether a schema defines its operator by other operators."""
    return bool(schema.has_function) or is_defined_by_types(schema)


def is_defined_by_types(schema: Any) -> bool:
    """Return whether a schema defines its operator for each node, by the types of its inputs."""
    return bool(schema.has_context_dependent_function)


@lru_cache(maxsize=4096)
def schema_of(op_type: str, opset: int, domain: str = "") -> defs.OpSchema | None:
    """Return the schema in force; None where onnx knows none."""
    if not 0 <= opset < 1 << 31:  # for onnx a number of 32 bits
        return None
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def existing_schema(op_type: str, opset: int) -> defs.OpSchema:
    """Return the schema of an operator of ONNX that the opset is sure to have."""
    schema = schema_of(op_type, opset)
    assert schema is not None, (op_type, opset)  # noqa: S101 - the caller makes sure
    return schema
