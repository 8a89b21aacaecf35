"""The peers: one small file for each library, and the table of what they can be asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata

import tensorsplit as ts
from tensorsplit.bench.peers import numpy, onnxruntime, openvino, ours, torch
from tensorsplit.bench.task import Prepared, Task
from tensorsplit.bench.workloads import Kind
from tensorsplit.core.errors import USAGE, SplitError, show

OURS = "tensorsplit"
"""The name under which the package itself takes part."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One way in which one peer does one kind of workload.

    Attributes:
        peer: The name of the peer, which is that of its module.
        mode: ``out``, into buffers that are there; ``fresh``, into new memory; ``pooled``, into
            memory of a pool; ``view``.
        kind: The kind of workload.
        prepare: Makes the call for a workload; raises `UnableError`.
    """

    peer: str
    mode: str
    kind: Kind
    prepare: Callable[[Task], Prepared]


ENTRIES = (
    Entry(OURS, "out", "copy", ours.into_buffers),
    Entry(OURS, "pooled", "copy", ours.pooled),
    Entry(OURS, "fresh", "copy", ours.fresh),
    Entry(OURS, "view", "views", ours.eager_views),
    Entry(OURS, "view", "plan", ours.planned_views),
    Entry("numpy", "out", "copy", numpy.into_buffers),
    Entry("numpy", "fresh", "copy", numpy.fresh),
    Entry("torch", "out", "copy", torch.into_buffers),
    Entry("torch", "fresh", "copy", torch.fresh),
    Entry("torch", "view", "views", torch.views),
    Entry("onnxruntime", "out", "copy", onnxruntime.into_buffers),
    Entry("openvino", "out", "copy", openvino.into_buffers),
)
"""Everything that is timed, in the order of the report."""

PEERS = tuple(dict.fromkeys(entry.peer for entry in ENTRIES))
"""The names of all peers; the package itself is the first."""


def installed() -> dict[str, str]:
    """The version of every peer that is installed, by its name."""
    known = metadata.packages_distributions()  # a module may come from several distributions
    found = {peer: metadata.version(known[peer][0]) for peer in PEERS if peer in known}
    return {OURS: ts.__version__, **{peer: found[peer] for peer in found if peer != OURS}}


def choose(names: tuple[str, ...]) -> list[Entry]:
    """What to time.

    Args:
        names: The peers; none means all that are installed. The package itself always takes part.

    Raises:
        SplitError: TS703 for a peer that is not known or not installed.
    """
    here = installed()
    for name in names:
        if name not in PEERS or name not in here:
            state = "not installed" if name in PEERS else "not known"
            raise SplitError(
                USAGE,
                f"the peer {show(name)} is {state}",
                f"install it, or give one of {', '.join(here)}",
                parameter="peer",
            )
    wanted = {OURS, *(names or here)}
    return [entry for entry in ENTRIES if entry.peer in wanted]
