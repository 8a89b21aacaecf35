"""Nodes that call ONNX's own domain by its name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from tensorsplit.model.graph.message import NAMED_DOMAIN
from tensorsplit.model.graph.nodes import Scope, nodes_in, scopes_in
from tensorsplit.model.graph.uses import is_needed


def of_named_domain(model: ir.Model, functions: Sequence[ir.Function]) -> Iterator[str]:
    """Yield whether a model has such nodes, and whether some are in bodies and functions.

    Those that nothing needs, or in other functions than these, count only as the latter.
    """
    if NAMED_DOMAIN not in model.meta:
        return
    owners: list[Scope] = [model.graph, *functions]
    if any(map(_is_read, (node for each in owners for node in nodes_in(each)))):
        yield "named_domain"
    inner = [each for each in scopes_in(model.graph) if each is not model.graph]
    for scope in (*inner, *model.functions.values()):
        if any(NAMED_DOMAIN in node.meta for node in nodes_in(scope)):
            yield "named_domain_inside"
            return


def _is_read(node: ir.Node) -> bool:
    return NAMED_DOMAIN in node.meta and any(map(is_needed, node.outputs))
