"""What an adapter is: it brings an operator over the boundary between two of its versions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step, fit
from tensorsplit.model.convert.site import Site

Adapter: TypeAlias = Callable[[Site, Step, Change], None]
"""Rewrites a node in the words of the opset that a step reaches, or refuses (TS512)."""

Adapters: TypeAlias = dict[tuple[str, int, bool], Adapter]
"""Adapters by operator, the opset that has the newer version, and whether they go up."""


def both(op_type: str, boundary: int, up: Adapter, down: Adapter) -> Adapters:
    """The entries of an operator that has an adapter in both directions."""
    return {(op_type, boundary, True): up, (op_type, boundary, False): down}


def fitted(site: Site, step: Step) -> None:
    """Nothing changed but what the node leaves out.

    Raises:
        SplitError: TS512 if it does not.
    """
    reason = fit(site, step)
    if reason:
        raise site.refusal(reason)


def only(name: str, allowed: Collection[str]) -> Adapter:
    """The older version knows fewer values of an attribute."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        value = site.attribute(name)
        if value is not None and value not in allowed:
            raise site.refusal(
                f"its attribute '{name}' is {value!r}; opset {step.opset} knows"
                f" {', '.join(sorted(allowed))}"
            )
        fitted(site, step)

    return adapt


def stated(**values: object) -> Adapter:
    """The newer version has to be told what the older one always did."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        for name, value in values.items():
            if name not in site.node.attributes:
                site.put(name, value)
        fitted(site, step)

    return adapt


def implied(**values: object) -> Adapter:
    """The older version always does one thing, and the newer one can be told to do it."""

    def adapt(site: Site, step: Step, _change: Change) -> None:
        for name, value in values.items():
            if site.attribute(name) != value:
                raise site.refusal(
                    f"opset {step.opset} always does what '{name}' = {value!r} says",
                    "which it does not say",
                )
            site.take(name)
        fitted(site, step)

    return adapt


def refused(reason: str) -> Adapter:
    """The two versions have nothing in common but the name."""

    def adapt(site: Site, _step: Step, _change: Change) -> None:
        raise site.refusal(reason)

    return adapt


def renamed(op_type: str) -> Adapter:
    """The operator goes on under another name."""

    def adapt(site: Site, _step: Step, _change: Change) -> None:
        site.node.op_type = op_type

    return adapt
