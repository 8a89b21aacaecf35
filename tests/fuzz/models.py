"""The targets for models: whatever is read, a tool gives a result or refuses with a code."""

from __future__ import annotations

import io
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
from click import ClickException
from google.protobuf.descriptor import (  # type: ignore[import-untyped]  # it has none
    FieldDescriptor,
)
from google.protobuf.message import (  # type: ignore[import-untyped]  # it has none
    DecodeError,
    Message,
)
from hypothesis import strategies as st

import tensorsplit as ts
from tensorsplit.cli import main
from tensorsplit.core.errors import KINDS
from tensorsplit.model.profiles import Target
from tests.fuzz import mutations
from tests.model.random_models import random_model

CORPUS = Path(__file__).parent / "corpus"
TARGETS: tuple[Target, ...] = ("onnxruntime", "openvino", "portable")
SOME_RANDOM_MODELS = 60
NUMBERS = [0, 1, 2, 3, -1, -2, 7, 64, 1 << 24, 1 << 31, (1 << 32) + 1, (1 << 63) - 1, -(1 << 63)]
TEXTS = ["", "x", "Split", "SplitToSequence", "ai.onnx", "é\n\0", "../x", "n" * 300]
MOST_ELEMENTS = 1 << 16
RUN_FOR = 3.0
"""Seconds; a model may well loop for ever, and nobody has said how long it should."""


class Stopped(BaseException):
    """A run that takes long, which is not a fault of ours."""


@dataclass(frozen=True)
class Files:
    """A model as its bytes: of one file, or of two."""

    main: bytes
    weights: bytes | None = None

    def write(self, folder: Path) -> Path:
        """Write them into a folder; the path of the model."""
        path = folder / ("model.onnx" if self.weights is None else "model.xml")
        path.write_bytes(self.main)
        if self.weights is not None:
            path.with_suffix(".bin").write_bytes(self.weights)
        return path


@dataclass(frozen=True)
class Case:
    """A broken model and what is done with it."""

    files: Files
    tool: str
    in_memory: bool
    choice: int


@cache
def onnx_seeds() -> list[bytes]:
    """Models that are right, or were once a problem."""
    made = [random_model(seed).model.SerializeToString() for seed in range(SOME_RANDOM_MODELS)]
    return [path.read_bytes() for path in sorted(CORPUS.glob("*.onnx"))] + made


@cache
def ir_seeds() -> list[Files]:
    """IR models that are right, or were once a problem."""
    return [
        Files(path.read_bytes(), path.with_suffix(".bin").read_bytes())
        for path in sorted(CORPUS.glob("*.xml"))
    ]


def _cases(
    seeds: Callable[[], Sequence[Any]], mutate: Callable[[Any, Random], Any]
) -> st.SearchStrategy[Case]:
    def build(number: int, changes: list[int]) -> Case:
        random = Random(number)
        content = random.choice(seeds())
        for change in changes:  # each of which is drawn, so that shrinking leaves some out
            content = mutate(content, Random(change))
        files = content if isinstance(content, Files) else Files(content)
        tool = random.choice(sorted(TOOLS))
        return Case(files, tool, random.random() < 0.5, random.randrange(100))

    wide = st.integers(0, (1 << 64) - 1)
    return st.builds(build, wide, st.lists(wide, max_size=6))


def mutate_bytes(content: bytes, random: Random) -> bytes:
    """Some bytes changed, removed, repeated, or put elsewhere."""
    start = random.randrange(len(content) + 1)
    end = min(len(content), start + random.choice([1, 1, 2, 4, 8, 64, 4096]))
    chunk = content[start:end]
    match random.randrange(6):
        case 0:
            chunk = bytes(byte ^ 1 << random.randrange(8) for byte in chunk)
        case 1:
            chunk = b""
        case 2:
            chunk *= 2
        case 3:
            chunk = random.randbytes(len(chunk))
        case 4:
            chunk = random.choice([b"\0", b"\xff" * 10, b"\x80" * 9 + b"\1", b"-1", b"9" * 30])
        case 5:
            return content[:start]
    return content[:start] + chunk + content[end:]


def mutate_onnx(content: bytes, random: Random) -> bytes:
    """A field of some message changed, or bytes."""
    model: Any = onnx.ModelProto()
    if random.random() < 0.15:
        return mutate_bytes(content, random)
    try:
        model.ParseFromString(content)
    except DecodeError:
        return mutate_bytes(content, random)
    messages = list(_messages(model))
    texts: list[Any] = [
        *TEXTS,
        *(node.name for node in messages if isinstance(node, onnx.ValueInfoProto)),
    ]
    texts += [name for node in messages if isinstance(node, onnx.NodeProto) for name in node.output]
    texts = [text for text in texts if isinstance(text, str)]  # bytes if it is not UTF-8
    for _ in range(20):  # until one has something to change
        message = random.choice(messages)
        fields = [field for field, _ in message.ListFields()]
        if random.random() < 0.2:
            fields = list(message.DESCRIPTOR.fields)
        if fields and _mutate_field(message, random.choice(fields), messages, texts, random):
            break
    changed: bytes = model.SerializeToString()
    return changed


def _messages(message: Message) -> Iterator[Message]:
    yield message
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for each in value if field.is_repeated else [value]:
                yield from _messages(each)


def _mutate_field(
    message: Message,
    field: FieldDescriptor,
    messages: list[Message],
    texts: list[str],
    random: Random,
) -> bool:
    """Change a field; whether there was something to change."""
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    alike = [each for each in messages if is_message and each.DESCRIPTOR is field.message_type]
    if not field.is_repeated:
        if is_message and alike and random.random() < 0.5:
            copy = type(alike[0])()
            copy.CopyFrom(random.choice(alike))
            getattr(message, field.name).CopyFrom(copy)
        elif is_message or random.random() < 0.2:
            message.ClearField(field.name)
        else:
            setattr(
                message, field.name, _scalar(field, getattr(message, field.name), texts, random)
            )
        return True
    items = getattr(message, field.name)
    place = random.randrange(len(items)) if len(items) else 0
    match random.randrange(4):
        case 0 if len(items):
            del items[place]
        case 1 if is_message and alike:
            copy = type(alike[0])()
            copy.CopyFrom(random.choice(alike))
            items.add().CopyFrom(copy)
        case 2 if len(items) > 1:
            with suppress(UnicodeDecodeError):
                others = list(items)
                random.shuffle(others)
                message.ClearField(field.name)
                getattr(message, field.name).extend(others)
        case _ if not is_message:
            if len(items) and random.random() < 0.8:
                items[place] = _scalar(field, items[place], texts, random)
            else:
                items.append(_scalar(field, field.default_value, texts, random))
        case _:
            return False
    return True


def _scalar(field: FieldDescriptor, old: Any, texts: list[str], random: Random) -> Any:
    if field.type == FieldDescriptor.TYPE_STRING:
        return random.choice(texts)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return mutate_bytes(old or b"\0" * 16, random)
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return random.choice([0.0, -1.0, 2.5, 1e30, float("nan"), float("inf")])
    if field.type == FieldDescriptor.TYPE_ENUM:
        return random.choice(field.enum_type.values).number
    number = random.choice([*NUMBERS, random.randrange(30)])
    if field.cpp_type == FieldDescriptor.CPPTYPE_INT32:
        return max(-(1 << 31), min(number, (1 << 31) - 1))
    return abs(number) if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else number


def mutate_ir(files: Files, random: Random) -> Files:
    """An attribute, an element or a number of the text changed, or bytes of either file."""
    assert files.weights is not None
    if random.random() < 0.1:
        return Files(files.main, mutate_bytes(files.weights, random))
    if random.random() < 0.1:
        return Files(mutate_bytes(files.main, random), files.weights)
    try:
        root = ElementTree.fromstring(files.main)  # what we wrote and broke ourselves
    except (ElementTree.ParseError, LookupError, ValueError):
        return Files(mutate_bytes(files.main, random), files.weights)
    nodes = list(root.iter())
    node = random.choice(nodes)
    match random.randrange(5):
        case 0 if node.attrib:
            name = random.choice(sorted(node.attrib))
            values = [other.attrib[name] for other in nodes if name in other.attrib]
            more = [*map(str, NUMBERS), *TEXTS[:5], "?", "1..3", "2,,3", "-1,2", "i64", "u1"]
            node.set(name, random.choice(values + more).replace("\0", ""))
        case 1 if node.attrib:
            del node.attrib[random.choice(sorted(node.attrib))]
        case 2 if len(node):
            node.remove(random.choice(list(node)))
        case 3:
            others = [other for other in nodes if node not in other.iter()]
            node.append(random.choice(others or [ElementTree.Element("port")]))
        case _ if len(node) > 1:
            children = list(node)
            random.shuffle(children)
            node[:] = children
    try:
        return Files(ElementTree.tostring(root), files.weights)
    except (ValueError, RecursionError):
        return files


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    """Zeros, or ones, for each input whose type can be fed."""
    feeds: dict[str, Any] = {}
    for number, value in enumerate(model.graph.input):
        kind = value.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else 2 for dim in kind.shape.dim]
        try:
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        except KeyError:
            continue
        if all(0 <= size <= 64 for size in shape) and np.prod(shape) <= MOST_ELEMENTS:
            feeds[value.name] = np.full(shape, number % 3, dtype)
    return feeds


def _run(model: Any, case: Case) -> object:
    feeds: Mapping[str, Any] = {"x": np.arange(48, dtype=np.float32).reshape(6, 8)}
    if case.files.weights is None:
        proto = onnx.ModelProto()
        with suppress(DecodeError):
            proto.ParseFromString(case.files.main)
        feeds = feeds_of(proto)
    with suppress(MemoryError, Stopped), stopped_after(RUN_FOR):
        return ts.run(model, feeds, engine="tensorsplit")
    return None


def _explain(model: Any, case: Case) -> object:
    """The command itself, which must not end with "a bug in tensorsplit"."""
    said = io.StringIO()
    status: object = 0
    with redirect_stdout(said), redirect_stderr(said):
        try:
            main(["explain", str(model)])
        except SystemExit as end:
            status = end.code
        except ClickException as error:
            status = error.exit_code
    assert status in (0, 1, 2), said.getvalue()
    return None


TOOLS: dict[str, Callable[[Any, Case], object]] = {
    "check": lambda model, case: ts.check(model),
    "check for": lambda model, case: ts.check(model, target=TARGETS[case.choice % 3]),
    "infer": lambda model, case: ts.infer_shapes(model),
    "convert": lambda model, case: ts.convert(model, opset=7 + case.choice % 19),
    "lower": lambda model, case: ts.lower(model, target=TARGETS[case.choice % 3]),
    "explain": _explain,
    "run": _run,
}

onnx_cases = _cases(onnx_seeds, mutate_onnx)
mutation_cases = _cases(mutations.seeds, mutations.mutate)
ir_cases = _cases(ir_seeds, mutate_ir)


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise `Stopped` in this, the main thread, after so long."""

    def stop(_: int, frame: FrameType | None) -> None:
        if frame is not None and "hypothesis" in frame.f_code.co_filename:
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # its callbacks swallow what is raised
            return
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check(case: Case, folder: Path) -> str:
    """Use a tool on a model; what came of it, in a word."""
    path = case.files.write(folder)
    (folder / "tool").write_text(f"{case.tool} {case.in_memory} {case.choice}", encoding="utf-8")
    model: Any = path
    before = None
    if case.in_memory and case.files.weights is None and case.tool != "explain":
        model = onnx.ModelProto()
        try:
            model.ParseFromString(case.files.main)
        except DecodeError:
            return "unreadable"
        before = model.SerializeToString(deterministic=True)
    os.environ["TENSORSPLIT_TRACEBACK"] = "1"
    try:
        with warnings.catch_warnings(action="ignore"):
            TOOLS[case.tool](model, case)
        refusal = None
    except ts.SplitError as error:
        refusal = error
    finally:
        del os.environ["TENSORSPLIT_TRACEBACK"]
        if before is not None:
            assert model.SerializeToString(deterministic=True) == before
    assert refusal is None or (refusal.code in KINDS and "\n" not in str(refusal)), refusal
    assert refusal is None or not refusal.fix.startswith("please report it"), refusal
    return case.tool if refusal is None else refusal.code
