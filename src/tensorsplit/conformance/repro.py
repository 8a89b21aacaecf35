"""Reproductions: a case and a subject as a script that needs nothing but onnx and the subject."""

from __future__ import annotations

import ast
import base64
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from types import CodeType, ModuleType
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.printer

from tensorsplit.conformance import subjects
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.runner import Subject, asked, output_names

_WIDTH = 96
_LONG_DOCSTRING = re.compile(r'("""[^"\n]+)\n\n[^"]*"""')
_MODULES = ("base64", "ml_dtypes", "onnx", "onnx.parser", "onnx.printer")
_SHOWS_OUTPUTS = '''
def bits(value):
    """What must be equal: element type, shape and bits."""
    if isinstance(value, (list, tuple)):
        return [bits(item) for item in value]
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        return "string", array.shape, array.astype(str).tolist()
    if array.dtype.name in ("int2", "int4"):  # in bytes, of which the upper bits don't count
        return array.dtype.name, array.shape, array.astype(np.int8).tobytes()
    return array.dtype.name, array.shape, array.tobytes()


for name in OUTPUTS:
    same = name in results and bits(results[name]) == bits(EXPECTED[name])
    print(f"{name}: {'as the standard says' if same else 'WRONG'}")
    if not same:
        print("it is", repr(results.get(name, "missing")))
        print("it must be", repr(EXPECTED[name]))
'''
_SHOWS_ACCEPTANCE = '\nprint("WRONG: it should refuse, but gives", results)\n'
_SHOWS_MODEL = "\nprint(onnx.printer.to_text(onnx.load_from_string(rewritten)))\n"


def script(case: Case, subject: str, seed: int = 0) -> str:
    """A Python script that prints what a subject makes of a case, and what the standard says.

    The subject is as `tensorsplit.conformance.subjects.load` takes it, which raises for it.
    """
    chosen = _subject_of(subject)
    built = case.build(seed)
    is_tool = chosen.traits.kind == "tool"
    adapter = _sources_of(chosen.source)
    pieces = [*adapter["definitions"], *_model(case, built, chosen)]
    name = adapter["name"]
    if is_tool:
        call = f"rewritten = {name}(MODEL, {chosen.target_opset(case)})"
    else:
        pieces += _dict("INPUTS", built.inputs)
        pieces.append(f"OUTPUTS = {list(output_names(case.model_format, built))!r}")
        call = f"results = {name}(MODEL, WEIGHTS, INPUTS, OUTPUTS)"
    shown = _SHOWS_OUTPUTS if built.expected is not None else _SHOWS_ACCEPTANCE
    pieces += [*_expected(built, is_tool=is_tool), "", call, _SHOWS_MODEL if is_tool else shown]
    body = "\n".join(pieces)
    used = {f"import {name}" for name in _MODULES if f"{name}." in body}
    imports = sorted({"import numpy as np", *used, *adapter["imports"]})
    head = [*_head(case, built, chosen), "from __future__ import annotations", *imports, ""]
    return "\n".join([*head, body])


_subject_of = cache(Subject.of)  # a report asks for thousands of scripts


class _Sources:
    """The source of a function, and of all that it uses of its own module and of this package."""

    def __init__(self) -> None:
        self.imports: set[str] = set()
        self.definitions: list[str] = []
        self._seen: set[tuple[str, str]] = set()

    def add(self, item: Callable[..., Any] | type) -> None:
        """Add a function or a class; what it uses comes before it."""
        module = sys.modules[item.__module__]
        self._seen.add((module.__name__, item.__name__))
        for name in _names(item):
            if name in vars(module):
                self._add_used(module, name)
        source = _LONG_DOCSTRING.sub(r'\1"""', inspect.getsource(item), count=1)
        self.definitions += [source.rstrip(), "", ""]

    def _add_used(self, module: ModuleType, name: str) -> None:
        value = vars(module)[name]
        if isinstance(value, ModuleType):
            as_name = f" as {name}" if value.__name__ != name else ""
            self.imports.add(f"import {value.__name__}{as_name}")
        elif not (inspect.isroutine(value) or inspect.isclass(value)):
            if (module.__name__, name) not in self._seen:
                self._seen.add((module.__name__, name))
                self._add_constant(module, name)
        elif value.__module__ != module.__name__ and "tensorsplit" not in value.__module__:
            self.imports.add(f"from {value.__module__} import {name}")
        elif (value.__module__, value.__name__) not in self._seen:
            self.add(value)

    def _add_constant(self, module: ModuleType, name: str) -> None:
        source = inspect.getsource(module)
        for statement in ast.parse(source).body:
            targets = getattr(statement, "targets", None) or [getattr(statement, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                value = statement.value  # type: ignore[attr-defined]
                for node in ast.walk(value):
                    if isinstance(node, ast.Name) and node.id in vars(module):
                        self._add_used(module, node.id)
                self.definitions += [f"{name} = {ast.get_source_segment(source, value)}", "", ""]


@cache
def _sources_of(source: str) -> dict[str, Any]:
    """As `sources`, wherever the subject is to be imported."""
    if source in subjects.SUBJECTS:
        return sources(source)
    return dict(asked(source, "tensorsplit.conformance.repro:sources"))


def sources(source: str) -> dict[str, Any]:
    """What a script needs of a subject: the name of its function, imports and definitions.

    For the adapter of a user it is called in a process of its own, where that is imported.
    """
    call = subjects.load(source).call
    name = getattr(call, "__name__", "run")
    made = _Sources()
    if inspect.isfunction(call):
        made.add(call)
    else:  # a user's adapter may be any callable
        made.definitions = [f"# Define {name} here: {call!r} has no source", "", ""]
    return {"name": name, "imports": sorted(made.imports), "definitions": made.definitions}


def _names(item: Callable[..., Any] | type) -> Iterator[str]:
    """The names that the code of a function, or of a class's methods, looks up."""
    if isinstance(item, type):
        yield from (base.__name__ for base in item.__bases__)
        for value in vars(item).values():
            if inspect.isfunction(value):
                yield from _names(value)
        return
    codes: list[CodeType] = [item.__code__]
    while codes:
        code = codes.pop()
        yield from code.co_names
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _head(case: Case, built: Built, subject: Subject) -> Iterator[str]:
    """What it is about, as comments."""
    yield f"# {case.id}"
    asks = "The standard asks for a refusal" if built.expected is None else "The standard"
    decision = f" ({case.decision})" if case.decision else ""
    for line in textwrap.wrap(f"{asks}{decision}: {case.rule}", _WIDTH - 2):
        yield f"# {line}"
    try:
        versions = subject.traits.versions
    except metadata.PackageNotFoundError:
        versions = {}
    needed = " ".join(f"{name}=={version}" for name, version in versions.items())
    yield f"# pip install onnx numpy {needed or ' '.join(subject.traits.packages)}"


def _model(case: Case, built: Built, subject: Subject) -> Iterator[str]:
    """The model: as onnx's own text where that says all of it."""
    weights = f'base64.b64decode("{base64.b64encode(built.weights).decode()}")'
    if case.model_format != "onnx":
        yield f"MODEL = b'''{built.model.decode()}'''"
        yield f"WEIGHTS = {weights}"
        return
    data = subject.model(built)
    text = model_text(data)
    if text is not None:
        yield f"MODEL = onnx.parser.parse_model('''\n{text}\n''').SerializeToString()"
    else:
        yield "MODEL = base64.b64decode("
        yield from (f'    "{line}"' for line in textwrap.wrap(base64.b64encode(data).decode(), 88))
        yield ")"
    yield 'WEIGHTS = b""'


def model_text(data: bytes) -> str | None:
    """A serialised model in onnx's text format; None where that would leave something out."""
    model = onnx.load_from_string(data)
    try:
        text = str(onnx.printer.to_text(model)).strip()
        again = onnx.parser.parse_model(text)
    except Exception:  # noqa: BLE001 - printer and parser raise what they like
        return None
    if "'''" in text or "\\" in text or _canonical(again) != _canonical(model):
        return None
    return text


def _canonical(model: onnx.ModelProto) -> bytes:
    """The bytes of a model without what two texts of the same may differ in."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for owner in (copy.graph, *copy.functions):
        _normalise(owner)
    return bytes(copy.SerializeToString(deterministic=True))


def _normalise(owner: onnx.GraphProto | onnx.FunctionProto) -> None:
    for tensor in getattr(owner, "initializer", ()):
        _normalise_tensor(tensor, tensor.name)
    for node in owner.node:
        for field in ("domain", "name", "overload", "doc_string"):
            if not getattr(node, field):
                node.ClearField(field)
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _normalise_tensor(attribute.t, "")
            if attribute.HasField("g"):
                _normalise(attribute.g)
        node.attribute.sort(key=lambda attribute: attribute.name)


def _normalise_tensor(tensor: onnx.TensorProto, name: str) -> None:
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), name))


def _expected(built: Built, *, is_tool: bool) -> Iterator[str]:
    """What must come out; a tool gives a model, for which it is only said."""
    if built.expected is None:
        return
    if is_tool:
        yield "# With these inputs the model gives"
        yield from _dict("INPUTS", built.inputs)
    yield from _dict("EXPECTED", built.expected)


def _dict(title: str, values: dict[str, Any]) -> Iterator[str]:
    """The lines that assign a dict of arrays."""
    yield f"{title} = {{"
    yield from (f"    {name!r}: {_literal(value)}," for name, value in values.items())
    yield "}"


def _literal(value: Any) -> str:
    """An array as Python code that makes the same bits."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    array = np.asarray(value)
    shape = f".reshape({array.shape})" if array.ndim != 1 else ""
    if array.dtype.kind in "OUST":
        return f"np.array({array.reshape(-1).tolist()!r}, dtype=object){shape}"
    native = _is_native(array)
    kind = f"np.{array.dtype.name}" if native else f"ml_dtypes.{array.dtype.name}"
    if native and _is_plain(array):
        return f"np.array({array.reshape(-1).tolist()!r}, dtype={kind}){shape}"
    return f'np.frombuffer(bytes.fromhex("{array.tobytes().hex()}"), dtype={kind}){shape}'


def _is_native(array: np.ndarray[Any, Any]) -> bool:
    """Whether NumPy itself has the element type."""
    return array.dtype.kind in "OUST" or hasattr(np, array.dtype.name)


def _is_plain(array: np.ndarray[Any, Any]) -> bool:
    """Whether a list of numbers says all of it: no NaN, infinity or negative zero."""
    if array.dtype.kind not in "fc":
        return array.dtype.kind in "iub"
    again = np.array(array.reshape(-1).tolist(), array.dtype)
    return bool(np.isfinite(array).all()) and again.tobytes() == array.tobytes()
