"""All adapters, and how a node goes from one version of its operator to the next."""

from __future__ import annotations

from tensorsplit.core.errors import NO_ADAPTER, SplitError
from tensorsplit.model.convert import (
    axes,
    broadcast,
    casts,
    expand,
    images,
    meaning,
    operands,
    outside,
)
from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.element_types import check_types, plain_constant
from tensorsplit.model.convert.schemas import Step, check, exists, fit, next_step, schema
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import Adapters

ADAPTERS: Adapters = {
    **axes.ADAPTERS,
    **broadcast.ADAPTERS,
    **casts.ADAPTERS,
    **images.ADAPTERS,
    **meaning.ADAPTERS,
    **operands.ADAPTERS,
}
"""By operator, the opset that has the newer version, and whether it goes up."""


def convert_other(site: Site, change: Change) -> None:
    """Bring a node of another operator to the target, version by version.

    Raises:
        SplitError: TS512 where a version has no words for it.
    """
    operator, source = site.op_type, site.opset
    origin, first = site.origin = site.origin or (operator, source)
    try:
        if not exists(operator, source):
            raise site.refusal(
                f"there is no operator {operator} at opset {source}",
                "give it a domain of its own, if it is one of an engine",
            )
        if next_step(operator, source, change.target) is not None:
            check(site)
        while (step := next_step(site.op_type, site.opset, change.target)) is not None:
            _take(site, step, change)
            site.opset = step.opset
            if change.edits.is_retired(
                site.node
            ):  # others stand in its place, and go on by themselves
                return
            if site.op_type == step.op_type != "Constant":
                check_types(site, change, schema(step.op_type, step.before))
        site.opset = change.target
        if site.op_type == "Constant":
            plain_constant(site, change)
    except SplitError as error:
        if error.kind is not NO_ADAPTER:
            raise error.located(node=site.path) from None
        became = "" if origin == operator else f"it becomes {operator} and others, and "
        raise SplitError(
            NO_ADAPTER,
            f"{origin} can't go from opset {first} to {change.target}: {became}{error.problem}",
            error.fix,
            operator=f"ai.onnx.{origin}",
            node=site.path,
        ) from None


def _take(site: Site, step: Step, change: Change) -> None:
    adapter = ADAPTERS.get((step.op_type, step.boundary, step.up))
    if adapter is not None:
        adapter(site, step, change)
        return
    reason = fit(site, step)
    if reason is None or outside.convert(site, step, change) or expand.expand(site, step, change):
        return
    raise site.refusal(reason)
