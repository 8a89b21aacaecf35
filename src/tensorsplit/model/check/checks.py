"""The checks beyond the refusals of ``errors.py``: a table of data."""

from __future__ import annotations

from tensorsplit.core.errors import KINDS, Kind

ERROR, WARNING, NOTE = "error", "warning", "note"

SEVERITIES = (ERROR, WARNING, NOTE)
"""The severities, the gravest first."""

CHECKS: dict[str, Kind] = {}
"""Every check with a code of its own, by its code, in the order of the codes."""


def _check(code: str, severity: str, title: str, meaning: str, *decisions: str) -> Kind:
    made = CHECKS[code] = Kind(code, title, meaning, decisions, severity)
    return made


# Codes TS80x, what the model says of a split contradicts the split
DECLARED_SHAPE = _check(
    "TS801",
    ERROR,
    "declared shape contradicts the split",
    "A value_info, a graph output or a port declares another rank or length than the part has."
    " Engines that trust the declaration plan memory for the wrong shape; others refuse the model.",
)
DECLARED_TYPE = _check(
    "TS802",
    ERROR,
    "declared type contradicts the split",
    "A part has the element type of the data, and SplitToSequence gives a sequence of tensors.",
)
SEQUENCE_PARTS = _check(
    "TS803",
    ERROR,
    "tensors of a sequence do not fit together",
    "The tensors that ConcatFromSequence joins differ in a dimension other than the one they are"
    " joined on, or a tensor of another element type is put into a sequence.",
)

DECLARED_ENDS = _check(
    "TS804",
    ERROR,
    "type of an input or output missing or wrong",
    "An input of the graph has no type, an input or output one that ONNX does not have, an input"
    " has a default of another type or shape, or an output is an input or initializer of another"
    " type or shape. Engines refuse such models, or give out something else than is declared.",
)
SHADOWED_NAME = _check(
    "TS805",
    ERROR,
    "name that is taken around the body",
    "A node in a body gives its output the name of a value that the body sees already. The standard"
    " asks for distinct names, and ONNX Runtime refuses the model.",
)
UNTYPED_OUTPUT = _check(
    "TS806",
    WARNING,
    "output without a type",
    "An output of the graph has no type, which the standard asks for. onnx's checker refuses the"
    " model; engines find the type themselves.",
)

# Codes TS81x, splits that could go
DOES_NOTHING = _check(
    "TS811",
    NOTE,
    "split that does nothing",
    "There is one part, and it is all of the data.",
)
DEAD_OUTPUT = _check(
    "TS812",
    NOTE,
    "unused part",
    "No node reads the output, and it is not an output of the graph.",
)
NOT_CALLED = _check(
    "TS813",
    NOTE,
    "function that nobody calls",
    "Neither the graph calls the function, nor a function that the graph calls. Nothing else is"
    " reported of it.",
)

# Codes TS82x, what means one thing in the text and another in some engine, or depends on the run
NEGATIVE_AXIS = _check(
    "TS821",
    WARNING,
    "negative axis where the text has none",
    "Split-1 and Split-2 do not say what a negative axis means. Every engine that was measured"
    " counts from the back, and so does tensorsplit.",
    "D13",
)
IGNORED_KEEPDIMS = _check(
    "TS822",
    WARNING,
    "keepdims together with split",
    "SplitToSequence ignores `keepdims` where `split` is given. ONNX Runtime still drops the"
    " axis of chunks of length 1, and fails for longer ones. PyTorch's TorchScript exporter relies"
    " on that: it writes `unbind` with `split` = 1. Without `split`, the axis is dropped"
    " everywhere.",
    "D8",
)
OVERRIDABLE_LENGTHS = _check(
    "TS823",
    WARNING,
    "lengths that can be overridden",
    "The lengths are an initializer that is also a graph input: a default, not a constant. Many"
    " tools treat it as a constant, and are wrong when another value is fed.",
    "D20",
)
RUNTIME_LENGTHS = _check(
    "TS824",
    WARNING,
    "lengths or axis known only at run time",
    "Nothing can be checked before the model runs, shapes stay open, and engines that need constant"
    " lengths refuse the model.",
)
OPEN_DIMENSION = _check(
    "TS825",
    NOTE,
    "split that some values of the dimension do not allow",
    "The dimension is known only at run time, and the node does not fit all of its values: equal"
    " parts need a multiple of their number, `num_outputs` a last part that is not below 0, given"
    " lengths one dimension alone.",
    "D1",
    "D3",
    "D6",
)
EMPTY_DIMENSION = _check(
    "TS826",
    WARNING,
    "dimension of 0 split into parts",
    "All parts are empty. ONNX Runtime refuses this; OpenVINO and onnx's reference do not.",
    "D2",
)
EMPTY_PART = _check(
    "TS827",
    NOTE,
    "part without elements",
    "A length of 0 is allowed, but seldom meant.",
    "D9",
)
LENGTH_OR_CHUNK = _check(
    "TS828",
    WARNING,
    "list of one length",
    "In SplitToSequence a list of one element is the length of one part; a chunk length"
    " is a scalar.",
    "D11",
)
FLOAT_LENGTHS = _check(
    "TS829",
    WARNING,
    "lengths held by floats",
    "Split-1 takes its second input as floats. No engine that was measured takes it.",
    "D12",
)

# Codes TS84x, what an engine was measured to do
TARGET_REFUSES = _check(
    "TS841",
    ERROR,
    "the target does not run it",
    "The engine was measured to refuse such a node, or the target does not allow it.",
)
TARGET_WRONG = _check(
    "TS842",
    ERROR,
    "the target gets it wrong",
    "The engine was measured to return other values than the text says, or to crash.",
    "D16",
    "D17",
    "D19",
)
TARGET_DEPENDS = _check(
    "TS843",
    WARNING,
    "the target may get it wrong",
    "Whether the engine returns the right values depends on what is fed, or was not measured.",
    "D16",
)


REPORTED: dict[str, Kind] = {**KINDS, **CHECKS}
"""Every refusal and every check, by its code and in the order of the codes."""
