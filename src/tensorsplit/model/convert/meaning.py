"""Operators that look the same and mean something else, and what goes on under other names."""

from __future__ import annotations

from tensorsplit.core.dimensions import is_known
from tensorsplit.model.convert.change import Change
from tensorsplit.model.convert.schemas import Step
from tensorsplit.model.convert.site import Site
from tensorsplit.model.convert.table import (
    Adapters,
    both,
    fitted,
    only,
    refused,
    renamed,
    stated,
)


def _branches(site: Site, step: Step, change: Change) -> None:
    """Before opset 11 both branches of an If give the same shapes."""
    branches = [site.attribute(name).outputs for name in ("then_branch", "else_branch")]
    for one, other in zip(*branches, strict=False):
        left, right = change.shape(one), change.shape(other)
        if left is None or right is None:
            continue
        pairs = zip(left, right, strict=False)
        differ = any(is_known(a) and is_known(b) and a != b for a, b in pairs)
        if differ or len(left) != len(right):
            raise site.refusal(
                "its branches give different shapes, which have to be the same before opset 11"
            )
    fitted(site, step)


def _inference(site: Site, step: Step) -> None:
    """Refuse a BatchNormalization or Dropout that is in training mode."""
    extra = [value for value in site.node.outputs[1:] if value.uses() or value.is_graph_output()]
    if extra and site.op_type == "BatchNormalization":
        raise site.refusal(f"it is in training mode, which opset {step.opset} says otherwise")
    site.node.resize_outputs(1 if site.op_type == "BatchNormalization" else len(site.node.outputs))


def _training_flag_up(site: Site, step: Step, _change: Change) -> None:
    if not site.take("is_test", 0):
        raise site.refusal("it is in training mode (is_test is 0), which opset 7 does not have")
    _inference(site, step)
    fitted(site, step)


def _training_flag_down(site: Site, step: Step, _change: Change) -> None:
    _inference(site, step)
    fitted(site, step)
    site.put("is_test", 1)


def _normalization(site: Site, step: Step, _change: Change) -> None:
    _inference(site, step)
    fitted(site, step)


def _consumed(site: Site, step: Step, _change: Change) -> None:
    site.put("consumed_inputs", [0, 0, 0, 1, 1])
    fitted(site, step)


def _recurrent(site: Site, step: Step, _change: Change) -> None:
    """The output of the whole sequence had to be asked for before opset 7."""
    if step.up:
        site.take("output_sequence")
    else:
        whole = site.node.outputs[0]
        if whole.name and (whole.uses() or whole.is_graph_output()):
            site.put("output_sequence", 1)
    fitted(site, step)


_SCATTERS = ("ScatterElements", "ScatterND")
_SCAN = "opset 9 changed what it scans: the second axis for each of a batch before, any axis since"
_RECURRENT = ("GRU", "LSTM", "RNN")
_REDUCTIONS_16 = ("none", "add", "mul")
_PADS_18 = ("constant", "reflect", "edge")

ADAPTERS: Adapters = {
    ("BatchNormalization", 6, False): _consumed,
    **both("BatchNormalization", 7, _training_flag_up, _training_flag_down),
    **both("BatchNormalization", 14, _normalization, _normalization),
    **both("Dropout", 7, _training_flag_up, _training_flag_down),
    ("GRU", 3, True): stated(direction="forward"),
    ("Concat", 4, True): stated(axis=1),
    ("If", 11, False): _branches,
    **{(name, 7, True): _recurrent for name in _RECURRENT},
    **{(name, 7, False): _recurrent for name in _RECURRENT},
    ("Pad", 19, False): only("mode", _PADS_18),
    **{(name, 18, False): only("reduction", _REDUCTIONS_16) for name in _SCATTERS},
    **both("Scan", 9, refused(_SCAN), refused(_SCAN)),
    ("Scatter", 11, True): renamed("ScatterElements"),
    ("ScatterElements", 11, False): renamed("Scatter"),
}
