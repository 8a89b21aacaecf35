"""The operators and element types that an engine has kernels of, as its profile lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from functools import lru_cache
from typing import NamedTuple

from onnx import defs

from tensorsplit.model.check.checks import TARGET_DEPENDS
from tensorsplit.model.check.findings import Finding, of_check
from tensorsplit.model.graph.nodes import NodeRef
from tensorsplit.model.graph.split_records import is_onnx_split
from tensorsplit.model.infer.analysis import Facts
from tensorsplit.model.profiles import Profile
from tensorsplit.model.validity.node_errors import signature_of

OPEN = (1 << 31) - 1
"""Where opsets end that have no last one."""


class Kernel(NamedTuple):
    """One line of a profile, such as ``7-12 T: float int64; T1: !string``.

    Attributes:
        first: The operator version from which on it is.
        last: That up to which it is; None if it is of the first alone, as in ``13- T: float``.
        types: By type parameter of the schema: whether these types are those that it takes, and not
            all others; and the types.
        opsets: The only opsets at which it is loaded, as in ``24-24 @24-24``; None for all. An
            engine puts the body of an operator in its place at some opsets, and not at others.
    """

    first: int
    last: int | None
    types: tuple[tuple[str, bool, frozenset[str]], ...]
    opsets: range | None = None

    def is_of(self, version: int, opset: int) -> bool:
        """Return whether it is of an operator version, at an opset."""
        is_of_version = version == self.first or self.first < version <= (self.last or self.first)
        return is_of_version and (self.opsets is None or opset in self.opsets)


@lru_cache(maxsize=1024)
def kernel_of(line: str) -> Kernel:
    """Read a line of a profile."""
    versions, _, types = line.partition(" ")
    first, _, last = versions.partition("-")
    opsets = None
    if types.startswith("@"):
        at, _, types = types.partition(" ")
        begin, _, end = at[1:].partition("-")
        opsets = range(int(begin), int(end) + 1 if end else OPEN)
    listed = []
    for each in filter(None, types.split("; ")):
        parameter, _, names = each.partition(": ")
        is_taken = not names.startswith("!")
        listed.append((parameter, is_taken, frozenset(names.removeprefix("!").split())))
    return Kernel(int(first), int(last) if last else None, tuple(listed), opsets)


def takes(kernel: Kernel, types: Mapping[str, Set[str]]) -> bool:
    """Return whether a kernel is for element types, given by type parameter of the schema."""
    return all(
        (types.get(parameter, frozenset()) <= listed)
        if is_taken
        else types.get(parameter, frozenset()).isdisjoint(listed)
        for parameter, is_taken, listed in kernel.types
    )


def of_kernels(profile: Profile, ref: NodeRef, facts: Facts) -> Iterator[Finding]:
    """Yield a finding on a node of the standard's operators for which the engine has no kernel.

    It is a warning: before it looks for kernels, the engine may leave the node out.
    """
    operator = f"{ref.node.domain}.{ref.op_type}".removeprefix(".")
    lines = profile.kernels.get(operator)
    schema = ref.schema
    if lines is None or schema is None or is_onnx_split(ref.node):
        return
    version = schema.since_version
    kernels = [each for each in map(kernel_of, lines) if each.is_of(version, ref.opset)]
    types = _types(ref, facts, schema)
    if any(takes(kernel, types) for kernel in kernels):
        return
    constrained = {name for kernel in kernels for name, *_ in kernel.types}
    shown = (f"{name} = {'/'.join(sorted(types[name]))}" for name in types if name in constrained)
    named = f" with {', '.join(shown)}" if kernels else ""
    what = "cast its data to another type" if kernels else "convert the model to another opset"
    fix = f"{what}, or use another engine" if lines else "use another engine"
    message = f"{profile.name} does not run {operator}-{version}{named}"
    yield of_check(TARGET_DEPENDS, ref.path, message, fix)


def _types(ref: NodeRef, facts: Facts, schema: defs.OpSchema) -> dict[str, set[str]]:
    """Return the element types of what a node reads and gives, by type parameter of its schema."""
    found: dict[str, set[str]] = {}
    pairs = zip(signature_of(schema).sides, (ref.node.inputs, ref.node.outputs), strict=True)
    for side, values in pairs:
        for index, value in enumerate(values):
            formal, kinds = side.at(index), facts.element_types(value)
            # nothing is reported of calls that differ
            if formal is not None and formal.like.isidentifier() and len(kinds) == 1:
                found.setdefault(formal.like, set()).update(kind.name.lower() for kind in kinds)
    return found
