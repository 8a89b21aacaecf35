"""Reproductions: a case and a subject as a script that needs nothing but onnx and the subject.

That of an adapter which names an interpreter needs no onnx, unless the adapter does.
"""

from __future__ import annotations

import ast
import base64
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.printer

from tensorsplit.conformance import subjects
from tensorsplit.conformance.case import Built, Case
from tensorsplit.conformance.runner import Subject, ask_adapter

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
    """Write a Python script that prints a subject's result of a case, and the standard's.

    The subject is as `tensorsplit.conformance.subjects.load` takes it, which raises for it.
    """
    chosen = _subject_of(subject)
    built = case.build(seed)
    is_tool = chosen.traits.kind == "tool"
    adapter = _sources_of(chosen.source)
    pieces = [f"{source}\n\n" for source in adapter["definitions"]]
    pieces += _model(case, built, chosen)
    name = adapter["name"]
    if is_tool:
        call = f"rewritten = {name}(MODEL, {chosen.target_opset(case)})"
    else:
        pieces += _dict("INPUTS", built.inputs)
        pieces.append(f"OUTPUTS = {list(built.outputs)!r}")
        call = f"results = {name}(MODEL, WEIGHTS, INPUTS, OUTPUTS)"
    shown = _SHOWS_OUTPUTS if built.expected is not None else _SHOWS_ACCEPTANCE
    pieces += [*_expected(built, is_tool=is_tool), "", call, _SHOWS_MODEL if is_tool else shown]
    body = "\n".join(pieces)
    used = {f"import {name}" for name in _MODULES if f"{name}." in body}
    imports = sorted({"import numpy as np", *used, *adapter["imports"]})
    head = [*_head(case, built, chosen), "from __future__ import annotations", *imports, ""]
    return "\n".join([*head, body])


def contents(case: Case, seed: int = 0) -> dict[str, str]:
    """Return a case's model, input and what is expected as texts, line by line as in `script`.

    The model is empty where onnx's text format would leave something out, and what is expected
    where that is a refusal.
    """
    built = case.build(seed)
    is_onnx = case.model_format == "onnx"
    return {
        "model": (model_text(built.model) or "") if is_onnx else built.model.decode(),
        "input": "\n".join(_entries(built.inputs)),
        "expected": "\n".join(_entries(built.expected or {})),
    }


_subject_of = cache(Subject.of)  # a report asks for thousands of scripts


@cache
def _sources_of(source: str) -> dict[str, Any]:
    """Do as `sources`, wherever the subject is to be imported from."""
    if source in subjects.SUBJECTS:
        return sources(source)
    return dict(ask_adapter(source, "tensorsplit.conformance.repro:sources"))


def sources(source: str) -> dict[str, object]:
    """Collect the parts of a subject that a script needs: its function, imports and definitions.

    For the adapter of a user it is called in a process of its own, where that is imported.
    """
    call = subjects.load(source).call
    name = getattr(call, "__name__", "run")
    imports: set[str] = set()
    definitions: dict[str, str] = {}
    if inspect.isfunction(call):
        _add(call.__module__, name, imports, definitions)
    else:  # a user's adapter may be any callable
        definitions[name] = f"# Define {name} here: {call!r} has no source"
    return {"name": name, "imports": sorted(imports), "definitions": [*definitions.values()]}


def _add(module: str, name: str, imports: set[str], definitions: dict[str, str]) -> None:
    """Add the definition of a name of a module, after those that it uses."""
    key = f"{module}.{name}"
    if key in definitions or name not in _statements(module):
        return
    statement, text = _statements(module)[name]
    origin = getattr(statement, "module", None) or ""
    if origin.startswith("tensorsplit."):
        _add(origin, name, imports, definitions)
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        imports.add(text)
    else:
        definitions[key] = ""
        for used in _names(statement):
            _add(module, used, imports, definitions)
        del definitions[key]
        definitions[key] = _LONG_DOCSTRING.sub(r'\1"""', text, count=1)


@cache
def _statements(module: str) -> dict[str, tuple[ast.stmt, str]]:
    """Map the names that a module defines or imports to the statement and its source."""
    lines = inspect.getsource(sys.modules[module]).splitlines()
    found: dict[str, tuple[ast.stmt, str]] = {}
    for statement in ast.parse("\n".join(lines)).body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            origin = f"from {statement.module} " if isinstance(statement, ast.ImportFrom) else ""
            for entry in statement.names:
                name = entry.asname or entry.name.partition(".")[0]
                found[name] = statement, f"{origin}import {ast.unparse(entry)}"
            continue
        first = min(node.lineno for node in (statement, *getattr(statement, "decorator_list", ())))
        text = "\n".join(lines[first - 1 : statement.end_lineno])
        targets = (*getattr(statement, "targets", ()), getattr(statement, "target", None))
        names = [getattr(statement, "name", None), *(getattr(node, "id", None) for node in targets)]
        found |= {name: (statement, text) for name in names if name}
    return found


def _names(node: ast.AST) -> Iterator[str]:
    """Yield the names that are looked up, which annotations are not."""
    if isinstance(node, ast.Name):
        yield node.id
    for part, value in ast.iter_fields(node):
        if part not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                yield from _names(child) if isinstance(child, ast.AST) else ()


def _head(case: Case, built: Built, subject: Subject) -> Iterator[str]:
    """Describe the case in comments."""
    yield f"# {case.id}"
    asks = "The standard asks for a refusal" if built.expected is None else "The standard"
    decision = f" ({case.decision})" if case.decision else ""
    for line in textwrap.wrap(f"{asks}{decision}: {case.rule}", _WIDTH - 2):
        yield f"# {line}"
    try:
        versions = subject.traits.versions()
    except metadata.PackageNotFoundError:
        versions = {}
    needed = " ".join(f"{name}=={version}" for name, version in versions.items())
    needed = needed or " ".join(subject.traits.packages)
    there = subject.traits.interpreter
    if there is None:
        yield f"# pip install onnx numpy {needed}"
    else:
        yield f"# pip install numpy {needed}"
        yield f"# Run it by {there.python}"


def _model(case: Case, built: Built, subject: Subject) -> Iterator[str]:
    """Yield the model: as onnx's own text where that holds all of it."""
    weights = f'base64.b64decode("{base64.b64encode(built.weights).decode()}")'
    if case.model_format != "onnx":
        yield f"MODEL = b'''{built.model.decode()}'''"
        yield f"WEIGHTS = {weights}"
        return
    data = subject.model(built)
    text = model_text(data) if subject.traits.interpreter is None else None  # whose onnx is another
    if text is not None:
        yield f"MODEL = onnx.parser.parse_model('''\n{text}\n''').SerializeToString()"
    else:
        yield "MODEL = base64.b64decode("
        yield from (f'    "{line}"' for line in textwrap.wrap(base64.b64encode(data).decode(), 88))
        yield ")"
    yield 'WEIGHTS = b""'


def model_text(data: bytes) -> str | None:
    """Write a serialised model in onnx's text format; None where that would leave something out."""
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
    """Return the bytes of a model, changed in what two texts of the same may differ in."""
    for owner in (model.graph, *model.functions):
        _normalise(owner)
    return bytes(model.SerializeToString(deterministic=True))


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
    """Write the expected outputs; for a tool, which gives a model, only as a comment."""
    if built.expected is None:
        if is_tool and built.legal is not None:
            yield "# With these inputs the model is to be refused, before and after it is rewritten"
            yield from _dict("INPUTS", built.inputs)
        return
    if is_tool:
        yield "# With these inputs the model gives"
        yield from _dict("INPUTS", built.inputs)
    yield from _dict("EXPECTED", built.expected)


def _dict(title: str, values: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that assign a dict of arrays."""
    yield f"{title} = {{"
    yield from _entries(values)
    yield "}"


def _entries(values: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each array of a dict."""
    return (f"    {name!r}: {_literal(value)}," for name, value in values.items())


def _literal(value: object) -> str:
    """Return an array as Python code that makes the same bits."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    array = np.asarray(value)
    shape = f".reshape({array.shape})" if array.ndim != 1 else ""
    if array.dtype.kind in "OUST":
        return f"np.array({array.reshape(-1).tolist()!r}, dtype=object){shape}"
    is_native = hasattr(np, array.dtype.name)
    kind = f"np.{array.dtype.name}" if is_native else f"ml_dtypes.{array.dtype.name}"
    if is_native and array.dtype.kind != "c" and np.isfinite(array).all():  # -0.0 + 1j is 1j
        return f"np.array({array.reshape(-1).tolist()!r}, dtype={kind}){shape}"
    return f'np.frombuffer(bytes.fromhex("{array.tobytes().hex()}"), dtype={kind}){shape}'
