"""The one error type, and every kind of refusal with its stable code."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

DOCUMENTATION = ""
"""Where the documentation is published; no link is printed while this is empty.

``Documentation`` of ``project.urls`` in ``pyproject.toml`` is the same address, or is not there.
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of refusal, or one thing that `check` looks for.

    Attributes:
        code: ``TS`` and three digits; never reused for something else.
        title: What went wrong, in brief.
        meaning: What the reader of the documentation needs to know beyond the title.
        decisions: The decisions (D1-D23, see ``docs/errata.md``) that lead to this refusal.
        severity: Of what `check` finds: ``error``, ``warning`` or ``note``.
    """

    code: str
    title: str
    meaning: str
    decisions: tuple[str, ...] = ()
    severity: str = "error"

    @property
    def url(self) -> str:
        """The address of its section of the documentation; empty while that is not published."""
        return f"{DOCUMENTATION}/errors.html#{self.code.lower()}" if DOCUMENTATION else ""

    @property
    def reference(self) -> str:
        """Where to read about it: the address, or the command that shows its page."""
        return self.url or f"tensorsplit rule {self.code}"


KINDS: dict[str, Kind] = {}
"""Every kind, by its code, in the order of the codes."""


def _kind(code: str, title: str, meaning: str, *decisions: str) -> Kind:
    kind = KINDS[code] = Kind(code, title, meaning, decisions)
    return kind


# Codes TS1xx, how the operator was called
UNKNOWN_OPERATOR = _kind(
    "TS101",
    "no such operator",
    "There is no operator version with this identifier, or at this opset. An identifier is vendor,"
    " name and since-version, such as `onnx.Split-18`; an opset selects the version that holds"
    " there.",
)
MISSING_OPERAND = _kind(
    "TS102", "operand missing", "The operator version needs an operand that was not given."
)
UNKNOWN_OPERAND = _kind(
    "TS103",
    "operand this version does not have",
    "The operand, or its form as attribute or input, belongs to another version.",
)
CONFLICTING_OPERANDS = _kind(
    "TS104",
    "the lengths come from both or neither operand",
    "Split-18 takes exactly one of `split` and `num_outputs`; Split-1 at most one of the attribute"
    " and the second input.",
    "D4",
    "D12",
)
OPERAND_TYPE = _kind(
    "TS105",
    "operand of a wrong element type",
    "An axis or a length is a float, a boolean, or of an integer type the version does not allow.",
    "D15",
)
OPERAND_RANK = _kind(
    "TS106",
    "operand of a wrong shape",
    "Lengths are 1-D, or a scalar where the version says so; an axis is a scalar, or has shape"
    " [1] in VariadicSplit-1.",
    "D11",
    "D15",
)
OPERAND_VALUE = _kind(
    "TS107",
    "operand value out of its range",
    "A count of parts below 1, a `keepdims` other than 0 and 1, or a length given as a float that"
    " is not a whole number.",
    "D12",
)

# Codes TS2xx, the tensor to split
ELEMENT_TYPE = _kind(
    "TS201",
    "element type the version does not allow",
    "The type constraint of the operator version does not list the element type of the data.",
)
SCALAR_DATA = _kind("TS202", "nothing to split in a scalar", "Rank-0 data has no axis.", "D18")
AXIS_RANGE = _kind("TS203", "axis out of range", "An axis lies in [-rank, rank-1].")
NOT_AN_ARRAY = _kind(
    "TS204",
    "not an array of a supported library",
    "Only arrays of a supported library are split; convert lists and scalars first.",
)
BAD_SHAPE = _kind(
    "TS205",
    "not a shape",
    "A shape is a sequence of dimensions: integers >= 0, names, expressions, or None for unknown.",
)
PLAN_MISMATCH = _kind(
    "TS206",
    "the array does not fit the plan",
    "A plan holds for one shape; an array of another shape or element type needs its own plan.",
)

# Codes TS3xx, lengths
NEGATIVE_LENGTH = _kind("TS301", "negative length", "A part can't have less than 0 elements.", "D7")
LENGTHS_SUM = _kind(
    "TS302",
    "lengths do not add up",
    "The lengths must sum to the dimension, or data would be lost or invented.",
    "D6",
    "D14",
)
NOT_DIVISIBLE = _kind(
    "TS303",
    "not divisible into equal parts",
    "The version splits into equal parts only. For an uneven split, give explicit lengths, or"
    " `num_outputs` from opset 18.",
    "D3",
)
TOO_MANY_OUTPUTS = _kind(
    "TS304",
    "num_outputs leaves a negative last part",
    "All parts but the last have ceil(d/n) elements; they must not need more than d together.",
    "D1",
)
OUTPUT_COUNT = _kind(
    "TS305",
    "number of lengths and number of outputs differ",
    "`num_outputs`, the lengths and the outputs of the node must name the same number of parts,"
    " at least 1.",
    "D5",
)
REMAINDER = _kind(
    "TS306",
    "no remainder can be taken",
    "`split_lengths` may hold one -1, which stands for what the other lengths leave (>= 0).",
    "D7",
)
CHUNK_LENGTH = _kind(
    "TS307", "chunk length not positive", "A scalar `split` must be > 0.", "D9", "D10"
)
TOO_MANY_PARTS = _kind(
    "TS308",
    "more parts than can be listed",
    "There is a limit on the number of parts, so that a malformed count can't exhaust memory.",
)
UNKNOWN_COUNT = _kind(
    "TS309",
    "number of parts not known",
    "The number of parts, or whether they fit, depends on a dimension or operand that is not known"
    " yet.",
)

CANNOT_EXPRESS = _kind(
    "TS310",
    "not expressible in that version",
    "The operator version has no operands that mean the same, such as lengths known only at run"
    " time where it takes an attribute.",
)

PART_COUNT = _kind(
    "TS311",
    "wrong number of parts to join",
    "A plan joins as many parts as it makes.",
)
PART_SHAPE = _kind(
    "TS312",
    "part of a wrong shape",
    "Each part has the shape that the plan gives it; without a plan, parts differ on the axis"
    " only.",
)
PART_TYPE = _kind(
    "TS313",
    "parts of different kinds",
    "The parts of one array have the same library, element type and device, and belong to the same"
    " graph.",
)
NEEDS_COPY = _kind(
    "TS314",
    "can't be joined without a copy",
    "`copy=False` asks for a view. That needs parts which are still the plan's own views of one"
    " array.",
)

OTHER_NAMES = _kind(
    "TS315",
    "names other than those of the parts",
    "A dict of parts, or of buffers, has each name of the plan and no other, in any order.",
)
UNUSABLE_NAMES = _kind(
    "TS316",
    "unusable names of parts",
    "Each part has one name, a string, and no two parts have the same name.",
)

# Codes TS4xx, buffers given as `out=`
OUT_COUNT = _kind("TS401", "wrong number of out buffers", "`out` holds one array for each part.")
OUT_SHAPE = _kind("TS402", "out buffer of a wrong shape", "Each buffer has its part's shape.")
OUT_TYPE = _kind(
    "TS403", "out buffer of a wrong element type", "Buffers have the data's own element type."
)
OUT_READ_ONLY = _kind("TS404", "out buffer not writable", "Buffers must be writable arrays.")
OUT_OVERLAP = _kind(
    "TS405",
    "out buffers overlap",
    "A buffer must not share memory with the data, with another buffer, or with itself.",
)

# Codes TS5xx, models
UNREADABLE_MODEL = _kind(
    "TS501",
    "not a readable model",
    "The file is not an ONNX model or OpenVINO IR, or is truncated.",
)
MALFORMED_MODEL = _kind(
    "TS502",
    "model not well-formed",
    "The graph can't be run as written: a value without producer, a missing opset import, a"
    " function that calls itself, and so on.",
)
UNSAFE_XML = _kind(
    "TS503", "XML with a document type", "IR files never need entities; those that do are refused."
)
EXTERNAL_DATA = _kind(
    "TS504",
    "external data can't be used",
    "The data lies outside the model's folder, is missing, or is shorter than the tensor.",
)
MISSING_INPUT = _kind("TS505", "model input missing", "A graph input without default was not fed.")
UNKNOWN_INPUT = _kind("TS506", "no such model input", "The model has no input of that name.")
INPUT_SHAPE = _kind("TS507", "model input of a wrong shape", "The graph declares another shape.")
INPUT_TYPE = _kind(
    "TS508", "model input of a wrong element type", "The graph declares another element type."
)
UNSUPPORTED_NODE = _kind(
    "TS509",
    "operator that can't be run here",
    "The engine has no implementation of the operator; another engine may.",
)
NODE_FAILED = _kind(
    "TS510", "another operator failed", "An operator other than a split refused its inputs."
)
SEQUENCE_INDEX = _kind(
    "TS511",
    "sequence index out of range",
    "An index into a sequence of n tensors lies in [-n, n-1].",
    "D19",
)
NO_ADAPTER = _kind(
    "TS512",
    "another operator is not expressible at that opset",
    "An operator other than a split has no equal form at that opset, or has one only for some of"
    " the values that it may get when the model runs. tensorsplit uses this code for its own"
    " faults, too, and then asks you to report them.",
)
CANNOT_LOWER = _kind(
    "TS513",
    "no equal model for the target",
    "The target engine does not have the element type, or the model needs sequences and no exact"
    " rewrite is known.",
)

NO_COUNTERPART = _kind(
    "TS514",
    "layer without a counterpart in ONNX",
    "An OpenVINO IR has a layer whose meaning no nodes of ONNX are sure to have; the message says"
    " which layer, and why.",
)

# Codes TS6xx, engines
UNKNOWN_ENGINE = _kind("TS601", "no such engine", "The engines are listed in the message.")
ENGINE_MISSING = _kind(
    "TS602",
    "engine not installed",
    "Engines other than `tensorsplit` and `onnx-reference` are extras of the package.",
)
ENGINE_REFUSED = _kind("TS603", "the engine refused the model", "The engine's own message follows.")
ENGINE_CRASHED = _kind(
    "TS604",
    "the engine's process died",
    "Engines run in a process of their own. It ended, or was stopped: it gave no answer within the"
    " seconds that `TENSORSPLIT_ENGINE_TIMEOUT` allows.",
)
LIMIT = _kind(
    "TS605",
    "the run reached its limit",
    "It took more than `--memory` or `--timeout` (in Python `memory` or `timeout`) allows, and was"
    " stopped.",
)

# Codes TS7xx, files and the command line
UNREADABLE_ARRAY = _kind("TS701", "not a readable array", "Arrays are read from .npy, .npz, .pb.")
UNWRITABLE = _kind("TS702", "can't write", "Nothing was written.")
USAGE = _kind("TS703", "wrong usage", "An argument can't be understood.")
LIBRARY = _kind(
    "TS704",
    "a library failed",
    "A library that this package uses can't be imported, or raised an error of its own.",
)
UNREADABLE_TENSORS = _kind(
    "TS705",
    "not a readable source of tensors",
    "The file, folder or store is missing, has an unknown format, or is malformed: its headers give"
    " wrong shapes, sizes or offsets, use a name twice, or point outside it. Also a source that"
    " changes while it is read.",
)
PART_NAMES = _kind(
    "TS706",
    "unusable names for parts in files",
    "Give one name for each part, all different. A part that becomes a file needs a valid file"
    " name, without slashes.",
)
TOO_LARGE = _kind(
    "TS707",
    "does not fit into memory",
    "A piece that can't be divided, such as a decoded chunk, needs more than `--memory` allows.",
)
UNVERIFIED = _kind(
    "TS708",
    "the written data differs from the source",
    "`--verify` read the result back and found other bytes; the output was discarded.",
)
WITHIN_BYTE = _kind(
    "TS709",
    "a part would end within a byte",
    "Elements smaller than a byte are packed; a part must begin and end at the border of a byte.",
)
CLUSTER = _kind(
    "TS710",
    "the cluster can't do the work",
    "The workers have other versions, see other storage than this process, or are all gone, or the"
    " scheduler does not answer. Existing files are unchanged; the next run removes what this one"
    " left.",
)
EXTRA_MISSING = _kind(
    "TS711",
    "an optional library is not installed",
    "Arrays need only NumPy. Models, the command line, files and reports need more libraries, which"
    " an extra of the package installs; the message has the command.",
)
NOT_SHARED = _kind(
    "TS712",
    "ranks disagree on a shared tensor",
    "A tensor that no rule splits, or that ranks share, has different bits in the files of two"
    " ranks, and nothing says which of them is right.",
)
NOT_PARTS = _kind(
    "TS713",
    "not the parts of one tensor",
    "A part is missing, appears twice, or has another shape or element type than the rule gives"
    " it.",
)
HEAD_CUT = _kind(
    "TS714",
    "an attention head would be cut",
    "A rule states how many heads a tensor has, and the ranks or lengths do not divide that number:"
    " a rank would get part of a head, and the model would compute other values. Where there are"
    " fewer key and value heads than ranks, replicate them.",
)
OTHER_RANKS = _kind(
    "TS715",
    "lengths for another number of ranks",
    "A rule lists one length for each rank, and the number of ranks is another.",
)
LARGE_METADATA = _kind(
    "TS716",
    "the metadata of a store is too large",
    "A zarr store has more arrays and groups, or larger documents, than can be read in bounded"
    " memory. Attributes should describe an array, not hold its data.",
)
NOT_CONFIGURED = _kind(
    "TS717",
    "a number is missing from the model's configuration",
    "The rules use a key of `config.json`, such as the number of heads. The file is not beside the"
    " checkpoint, can't be read, or does not have that number.",
)
OTHER_FAMILY = _kind(
    "TS718",
    "rules for another model",
    "The `config.json` beside the checkpoint is of another kind of model, or of one that is stored"
    " differently: these rules would divide it wrongly.",
)
BLOCK_CUT = _kind(
    "TS719",
    "a block of a quantised weight would be cut",
    "Scales, zero points or other tensors follow a weight, and one of their elements stands for a"
    " block of it. A part of the weight would end within a block, or they are not as long as its"
    " blocks.",
)


class SplitError(ValueError):
    """A refusal: the request has no exact meaning, or can't be done safely.

    Args:
        kind: The kind of refusal; gives the code.
        problem: What is wrong, with the values seen.
        fix: What would be right, as an instruction.
        parameter: The operand, attribute or argument at fault, as the standard names it.
        operator: The operator version, such as ``onnx.Split-18``.
        node: The node of a model, with its path through bodies and functions.
        wants: What would be right, as numbers. Each entry alone would do, with any number of its
            range: the ``dimension`` that is split, the ``sum`` of the lengths (without a -1), each
            ``length``, the ``count`` of parts, the ``axis``, a ``position`` or ``index``, or
            ``keepdims``. Empty where no number decides, or a dimension is not known.

    Attributes:
        code: The kind's code, such as ``TS302``; stable across releases.

    Example:
        >>> try:
        ...     ts.split(np.arange(6), [2, 3])
        ... except ts.SplitError as error:
        ...     print(error.code, error.parameter, error.wants)
        TS302 split {'sum': range(6, 7), 'dimension': range(5, 6)}
    """

    def __init__(
        self,
        kind: Kind,
        problem: str,
        fix: str = "",
        *,
        parameter: str | None = None,
        operator: str | None = None,
        node: str | None = None,
        wants: Mapping[str, range] | None = None,
    ) -> None:  # `args` is set before, and what traces this can't follow `super().__init__`
        self.kind = kind
        self.code = kind.code
        self.problem = problem
        self.fix = fix
        self.parameter = parameter
        self.operator = operator
        self.node = node
        self.wants: Mapping[str, range] = {} if wants is None else wants

    def located(self, *, operator: str | None = None, node: str | None = None) -> SplitError:
        """Fill in the operator version or the node where they are not known yet; returns self."""
        self.operator = self.operator or operator
        self.node = self.node or node
        return self

    def __reduce__(self) -> tuple[object, ...]:
        named = ("parameter", "operator", "node", "wants")
        state = {name: getattr(self, name) for name in named}
        return (_rebuild, (type(self), self.code, self.problem, self.fix), state)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def __str__(self) -> str:
        return self.worded(ENGLISH)

    def worded(self, words: Words) -> str:
        """Return the message with the fixed words of `words`, and the values as they are."""
        place = [self.operator] if self.operator else []
        if self.parameter:
            place.append(words.text("parameter '{name}'", name=self.parameter))
        if self.node:
            place.append(words.text("node '{name}'", name=self.node))
        where = f"{', '.join(place)}: " if place else ""
        message = f"[{self.code}] {where}{words.made(self.problem)}"
        if self.fix:
            message = f"{message}{words.text('; ')}{words.made(self.fix)}"
        return _one_line(message)


class SplitWarning(UserWarning):
    """A warning: the result is right, but an engine will silently change it.

    Turn it into an exception with ``warnings.simplefilter("error", SplitWarning)``.
    """


def _rebuild(error: type[SplitError], code: str, problem: str, fix: str) -> SplitError:
    return error(KINDS[code], problem, fix)


def _one_line(message: str) -> str:
    """Return a message with escapes where a name in it, such as that of a file, can't be shown."""
    if message.isprintable():
        return message
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in message)


_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB")
_LONGEST_NAME = 120
_MOST_SHOWN = 80
"""The items of a list of which no more could be shown."""


def show(value: object) -> str:
    """Format any value as one line of bounded length, whatever its own `repr` does."""
    if type(value) is int:
        return show_int(value)
    if type(value) in (list, tuple):
        value = value[:_MOST_SHOWN]  # type: ignore[index]  # as its type says
    try:
        text = " ".join(repr(value).split())
    except Exception:  # noqa: BLE001 - someone else's repr may raise anything
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."


def words_of(error: Exception) -> str:
    """Return an exception's message in one line of bounded length.

    An error without a message gives its type; an error of the system is described without the path.
    """
    words = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
    return " ".join(words.split())[:200] or type(error).__name__


def fix_of(error: Exception, otherwise: str) -> str:
    """Return the fix for an error of the system; `otherwise` for one that depends on the input."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return "raise the limit of open files (ulimit -n), or close others"
    return otherwise


@contextlib.contextmanager
def called(**names: str) -> Iterator[None]:
    """Replace the name of a parameter in refusals by the one that the caller wrote for it."""
    try:
        yield
    except SplitError as error:
        error.parameter = names.get(error.parameter or "", error.parameter)
        raise


def did_you_mean(
    word: str, known: Iterable[str], instead: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return ``did you mean X? `` for the known word that is closest; empty if none is close.

    Capitals don't count. `instead` has what to suggest in the place of some known words.
    """
    from difflib import get_close_matches

    meant = {each.lower(): each for each in known}
    close = get_close_matches(word.lower(), meant, 1, 0.7)
    if not close:
        return ""
    found = meant[close[0]]
    return f"did you mean {instead.get(found, found)}? "


def count_of(number: int, word: str) -> str:
    """Return a number of things: ``1 part``, ``2 parts``."""
    return f"{show_int(number)} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Words:
    """How the fixed words of messages are written: in English, or as a catalogue has them.

    Attributes:
        text: Returns a text with these values in its braces.
        amount: Returns a number of things, as `count_of`.
        made: Returns a text in which the values are already, as an error has it.
    """

    text: Callable[..., str]
    amount: Callable[[int, str], str]
    made: Callable[[str], str]


ENGLISH = Words(str.format, count_of, str)


def show_bytes(number: int, rounded: Callable[[float], int] = round) -> str:
    """Return an amount of memory or of data in units: ``512 bytes``, ``1.5 KiB``, ``36 MiB``.

    Where one amount is compared with another, `rounded` is ``math.floor`` for what there is and
    ``math.ceil`` for what is needed, so that the two never look the same.
    """
    if number < 1024:
        return count_of(number, "byte")
    power = min((number.bit_length() - 1) // 10, len(_UNITS))
    return f"{rounded(10 * number / 1024**power) / 10:g} {_UNITS[power - 1]}"


def wrong_type(value: object) -> str:
    """Return the problem with a value of a wrong type: ``it is 'a' of type str``."""
    return f"it is {show(value)} of type {type(value).__name__}"


def show_path(path: str) -> str:
    """Return a path as `show` has it, but of a long one the end, which names the file."""
    text = repr(path)
    return text if len(text) <= _LONGEST_NAME else f"{text[0]}...{text[-_LONGEST_NAME + 4 :]}"


def short_name(name: str | bytes) -> str:
    """Return a name from a model as it is where it can be printed, else escaped and cut short.

    Protobuf gives names that are not UTF-8 as bytes.
    """
    if isinstance(name, str) and name.isprintable() and len(name) <= _LONGEST_NAME:
        return name
    return show(name)


def printable(text: str) -> str:
    """Remove control characters, which could steer a terminal or break XML."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def show_int(value: int) -> str:
    """Return an integer as text; Python refuses to print those of thousands of digits."""
    if -(1 << 128) < value < 1 << 128:
        return str(value)
    return f"{'-' if value < 0 else ''}2^{value.bit_length() - 1} or more"
