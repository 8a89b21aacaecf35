"""Layers without state, each of which is one call of a split or a join."""

from __future__ import annotations

from typing import Any, SupportsIndex, TypeAlias

import torch

from tensorsplit.arrays.arguments import bind_values
from tensorsplit.arrays.buffers import snapshot
from tensorsplit.arrays.eager import split as split_tensor
from tensorsplit.arrays.joining import as_integer, as_keepdims, join
from tensorsplit.arrays.naming import names_and_lengths
from tensorsplit.arrays.prepared import NamedSplit, PreparedSplit
from tensorsplit.arrays.typed import Lengths, Named
from tensorsplit.core.errors import OPERAND_TYPE, USAGE, SplitError, show
from tensorsplit.core.given import as_dict, is_a, is_mapping
from tensorsplit.core.records import NEWEST_OPSET, in_force
from tensorsplit.core.resolve import part_sizes

Tensor: TypeAlias = Any
Plan: TypeAlias = PreparedSplit | NamedSplit

_PLANS = (PreparedSplit, NamedSplit)


class _Layer(torch.nn.Module):
    """A layer that is one call of the library."""

    plan: Plan | None
    operands: dict[str, Any]

    def extra_repr(self) -> str:
        """Return the layer's arguments."""
        if self.plan is not None:
            return repr(self.plan)
        return ", ".join(f"{name}={value}" for name, value in self.operands.items())

    def __prepare_scriptable__(self) -> object:
        """Refuse (TS703) ``torch.jit.script``, which looks for this in every module."""
        problem = f"torch.jit.script does not compile {type(self).__name__}, which calls a library"
        raise SplitError(USAGE, problem, "use torch.jit.trace, torch.compile or torch.export")


class Split(_Layer):
    """A layer that splits a tensor: by `tensorsplit.split`, or by a plan.

    It has no state, is one node of a trace by ``torch.fx``, and can be compiled, exported, traced
    by ``torch.jit.trace``, copied and pickled; ``torch.jit.script`` refuses it.

    Args:
        split: The length of each part; a dict gives each a name; or a plan, which may be of any
            operator version and then is all there is to give.
        axis: The axis, in [-rank, rank-1].
        num_outputs: The number of parts.
        opset: The opset of ONNX whose Split is meant.

    Raises:
        SplitError: TS101 to TS107, TS301, TS305, TS316, TS703 for operands, when the layer is made.
            When it is called: what `tensorsplit.split`, or the plan, raises. TS703 for
            ``torch.jit.script``.

    Example:
        >>> heads = torch.nn.Sequential(torch.nn.Linear(8, 12), ts.torch.Split([4, 8], axis=-1))
        >>> [tuple(part.shape) for part in heads(torch.ones(2, 8))]
        [(2, 4), (2, 8)]
    """

    def __init__(
        self,
        split: Lengths | Named | Plan | None = None,
        axis: SupportsIndex = 0,
        *,
        num_outputs: SupportsIndex | None = None,
        opset: SupportsIndex = NEWEST_OPSET,
    ) -> None:
        super().__init__()
        given: Any = split if is_a(split, _PLANS) else None
        self.plan = given
        self.operands = {}
        if self.plan is None:
            self.operands = _checked(split, axis, num_outputs, opset)
        elif (axis, num_outputs, opset) != (0, None, NEWEST_OPSET):
            raise _conflict(self.plan)

    def forward(self, input: Tensor) -> tuple[Tensor, ...] | dict[str, Tensor]:
        """Return the parts: views, in a tuple, or in a dict if they have names."""
        if isinstance(input, torch.fx.Proxy):
            made: tuple[Tensor, ...] = _traced(self, input, input)
            return made
        plan = self.plan
        parts: Any = split_tensor(input, **self.operands) if plan is None else plan(input)
        return parts if isinstance(parts, dict) else tuple(parts)


class Join(_Layer):
    """A layer that joins parts: the inverse of `Split`.

    It has no state, is one node of a trace by ``torch.fx``, and can be compiled, exported, traced
    by ``torch.jit.trace``, copied and pickled; ``torch.jit.script`` refuses it.

    Args:
        plan: The plan that makes such parts; None joins whatever `tensorsplit.join` does.
        axis: The axis, in [-rank, rank-1] of the whole, without a plan.
        keepdims: 0 if the parts have no such axis, without a plan.

    Raises:
        SplitError: TS105, TS107, TS703 for operands, when the layer is made. When it is called:
            what `tensorsplit.join`, or that of the plan, raises. TS703 for
            ``torch.jit.script``.

    Example:
        >>> same = torch.nn.Sequential(ts.torch.Split([2, 5], axis=1), ts.torch.Join(axis=1))
        >>> torch.equal(same(x), x)
        True
    """

    def __init__(
        self, plan: Plan | None = None, *, axis: SupportsIndex = 0, keepdims: SupportsIndex = 1
    ) -> None:
        super().__init__()
        given: object = plan
        if given is not None and not is_a(given, _PLANS):
            problem, fix = f"it is {show(plan)}", "give a plan, or the axis as `axis`"
            raise SplitError(OPERAND_TYPE, problem, fix, operator="join", parameter="plan")
        self.plan = plan
        self.operands = {}
        if plan is None:
            self.operands = {"axis": as_integer("axis", axis)}
            if not as_keepdims(keepdims):
                self.operands["keepdims"] = 0
        elif (axis, keepdims) != (0, 1):
            raise _conflict(plan)

    def forward(self, parts: Any) -> Tensor:
        """Return the whole of parts in order; of a dict, in any order if the plan has names."""
        held = as_dict(parts)
        listed = snapshot(parts) if held is None else [*held.values()]
        for part in listed if type(listed) is list else [listed]:
            if isinstance(part, torch.fx.Proxy):
                return _traced(self, parts, part)
        return join(parts, **self.operands) if self.plan is None else self.plan.join(parts)


def _checked(split: object, axis: object, num_outputs: Any, opset: Any) -> dict[str, object]:
    """Return operands that no one else can change, without those that are the defaults."""
    record = in_force("Split", opset, vendor="onnx")
    names, lengths = None, split
    if is_mapping(split):
        names, lengths = names_and_lengths(split, "split", record.id)
    values = {"split": lengths, "axis": axis, "num_outputs": num_outputs}
    intent = bind_values(record, values)
    try:
        part_sizes(intent, None)  # refuses what splits no dimension at all
    except SplitError as error:
        raise error.located(operator=record.id) from None
    given: dict[str, Any] = {}
    if lengths is not None and intent.given is not None:
        given["split"] = (
            intent.given if names is None else dict(zip(names, intent.given, strict=True))
        )
    if num_outputs is not None:
        given["num_outputs"] = int(num_outputs)
    if intent.axis:
        given["axis"] = intent.axis
    return given if opset == NEWEST_OPSET else given | {"opset": int(opset)}


def _conflict(plan: Plan) -> SplitError:
    problem, fix = "a plan and other operands are given", "give the plan alone"
    return SplitError(USAGE, problem, fix, operator=plan.operator, parameter="plan")


def _traced(layer: torch.nn.Module, given: object, proxy: Any) -> Any:
    """Return the output of one node that calls the layer (TS703 if nothing holds the layer)."""
    tracer = proxy.tracer
    path = tracer.path_of_module(layer)
    if not path:  # the layer is what is traced, and a node names only what is in it
        problem, fix = "a layer alone is traced", "trace a module that holds it, as a Sequential"
        raise SplitError(USAGE, problem, fix)
    return tracer.create_proxy("call_module", path, (given,), {})
