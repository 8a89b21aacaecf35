"""Finds the texts of refusals and findings in the source, with numbers in braces for values.

A text is followed from where it is used, the arguments of `SplitError` and the like, back to where
it is written: through names, arguments, results of functions and fields. So the source has each
message once, as it is raised, and `messages.py` knows what there is to translate.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import count, product
from pathlib import Path
from typing import TypeAlias

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"

OTHERS = (
    *("arrays", "torch", "openvino", "native", "reference_ops.py", "backend.py", "lengths.py"),
    *("pictures", "conformance/cases", "conformance/models", "conformance/report"),
    *("conformance/case.py", "conformance/oracle.py", "conformance/pytest_plugin.py"),
    *("bench/figures.py", "bench/workers.py"),
)
"""Folders and files whose refusals no command shows; they stay in English."""

SHOWN = ("arrays/arguments.py", "arrays/dialect_calls.py")
"""Files in these folders whose refusals commands do show."""

_REFUSAL = (1, 2)
_USED_AS_TEXT = {
    "SplitError": _REFUSAL,
    "of_check": (2, 3),
    **dict.fromkeys(("as_warning", "note", "warn", "ValueError"), (0,)),
}
"""Which arguments of a call are texts, by the name of the function; subclasses are added."""

_KEYWORDS = ("problem", "fix", "message", "reason", "why", "needed")
_VALUES = re.compile(
    r"_?(?:show\w*|short_name|printable|words_of|repr|str|len|join|did_you_mean|tr|quote|amount"
    r"|count_of|as_string|as_path)$"
)
"""Functions that return values, or texts that are translated already."""

_REMARKS = re.compile(r"(?:\b|_)(?:notes|remarks|warnings)$")
_VALUE = "\0"
_BRACES = re.compile(r"\{\w*\}")
_TWO_WORDS = re.compile(rf"[a-z]{{2,}}[,;:]? +[a-z{_VALUE}]|{_VALUE} +[a-z]{{2}}|\ba [a-z]", re.I)
_MODEL = re.compile(r"\bMODEL\b")
"""What stands for the model's path in the advice of a finding."""

_MOST_FORMS = 24


@cache
def refusals(package: Path) -> dict[str | tuple[str, str], None]:
    """Return the texts, in a fixed order; a number of things in both of its forms."""
    return _Texts(package).found


def _is_shown(path: Path) -> bool:
    """Return whether commands show refusals of a file of the package."""
    is_other = any(path.is_relative_to(other) for other in OTHERS)
    return not is_other or path.as_posix() in SHOWN


class _Texts:
    """The functions, calls and constants of a package, by name, and the texts found so far."""

    def __init__(self, package: Path) -> None:
        self._parents: dict[ast.AST, ast.AST] = {}
        self._functions: dict[str, list[Function]] = defaultdict(list)
        self._calls: dict[str, list[ast.Call]] = defaultdict(list)
        self._constants: dict[str, list[ast.expr]] = defaultdict(list)
        self._fields: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._used_as_text = dict(_USED_AS_TEXT)
        self._known: dict[ast.expr, list[str]] = {}  # empty while they are looked for
        self._followed: set[ast.expr] = set()  # names of functions
        self.found: dict[str | tuple[str, str], None] = {}
        trees = [
            ast.parse(path.read_text(encoding="utf-8"))
            for path in sorted(package.rglob("*.py"))
            if _is_shown(path.relative_to(package))
        ]
        for tree in trees:
            self._index(tree)
        for tree in trees:
            for node in ast.walk(tree):
                for text in self._used(node):
                    self._add(text)

    def _index(self, tree: ast.Module) -> None:
        for node in ast.walk(tree):
            self._parents.update(dict.fromkeys(ast.iter_child_nodes(node), node))
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._functions[name].append(node)
                case ast.ClassDef(name=name):
                    self._index_class(node)
                case ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=name), *args]):
                    self._calls[name].append(ast.Call(node.func, args, node.keywords))
                case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                    self._calls[name].append(node)
        for statement in tree.body:
            match statement:
                case (
                    ast.Assign(targets=[ast.Name(id=name)], value=value)
                    | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
                ):
                    self._constants[name].append(value)

    def _index_class(self, node: ast.ClassDef) -> None:
        if any(getattr(base, "id", "") == "SplitError" for base in node.bases):
            self._used_as_text[node.name] = _REFUSAL
        fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
        for place, field in enumerate(fields):
            if isinstance(field, ast.Name):
                self._fields[field.id].append((node.name, place))

    def _used(self, node: ast.AST) -> Iterator[ast.expr]:
        """Yield what a node uses as texts."""
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if (
                name in self._used_as_text
            ):
                places = self._used_as_text[name]
                yield from (node.args[at] for at in places if at < len(node.args))
                yield from (each.value for each in node.keywords if each.arg in _KEYWORDS)
            case ast.Yield(value=ast.Tuple(elts=[_, message, fix, _])):
                if _returns(self._around(node)) == "Found":
                    yield from (message, fix)
            case ast.FunctionDef(name="__str__"):  # of a value in a text
                yield from self._results(node)
            case ast.FunctionDef(name=name) if _REMARKS.search(name):
                for result in self._results(node):
                    yield from _elements(result) or (result,)
            case (
                ast.Call(func=ast.Attribute(value=noted, attr="append"), args=[text])
                | ast.AugAssign(target=noted, value=ast.ListComp(elt=text))
            ) if _REMARKS.search(ast.unparse(noted)):
                yield text

    def _around(self, node: ast.AST) -> Function | None:
        """Return the function around a node."""
        while node in self._parents:
            node = self._parents[node]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                return node
        return None

    def _add(self, expression: ast.expr) -> None:
        """Note the texts that an expression may be, but for values and single words."""
        for written in self._texts(expression):
            text = _MODEL.sub(_VALUE, written)
            if _TWO_WORDS.search(text) and "\n" not in text:
                numbers = count()
                pieces = text.split(_VALUE)
                numbered = (f"{piece}{{{next(numbers)}}}" for piece in pieces[:-1])
                self.found["".join((*numbered, pieces[-1]))] = None

    def _texts(self, expression: ast.expr) -> list[str]:
        """Return what an expression may be, with `_VALUE` for values."""
        found = []
        match expression:
            case ast.Constant(value=str(text)):
                found = [text]
            case ast.JoinedStr(values=values):
                found = self._joined(values)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(expression):
                found = self._joined([left, right])
            case ast.IfExp(body=body, orelse=orelse):
                found = [*self._texts(body), *self._texts(orelse)]
            case ast.BoolOp(values=values):
                found = [text for value in values for text in self._texts(value)]
            case ast.NamedExpr(value=value):
                found = self._texts(value)
            case ast.Call(func=ast.Attribute(value=value, attr="format"), args=args):
                for each in (*args, *(given.value for given in expression.keywords)):
                    self._add(each)
                found = [_BRACES.sub(_VALUE, text) for text in self._texts(value)]
            case _ if expression in self._known:
                return self._known[expression]
            case _:
                self._known[expression] = []
                sources = self._sources(expression)
                texts = dict.fromkeys(text for each in sources for text in self._texts(each))
                found = self._known[expression] = list(texts) or [_VALUE]
        return found

    def _sources(self, expression: ast.expr) -> Iterator[ast.expr]:
        """Yield what a name, field, entry or result comes from."""
        match expression:
            case ast.Name(id=name):
                yield from self._named(name, expression)
            case ast.Attribute(attr=name) if name in _KEYWORDS:
                for owner, place in self._fields[name]:
                    yield from self._passed(owner, name, place)
            case ast.Subscript(value=table) | ast.Call(func=ast.Attribute(value=table, attr="get")):
                for each in ast.walk(table):
                    if isinstance(each, ast.Name):
                        for value in self._named(each.id, expression):
                            yield from _elements(value)
            case ast.Call():
                yield from self._results_of(expression)

    def _results_of(self, call: ast.Call) -> Iterator[ast.expr]:
        """Yield what a call may return, if it is text; note the texts that it joins or counts."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join"), args=[joined]):
                for each in _elements(joined):
                    self._add(each)
            case ast.Call(func=ast.Name(id="count_of"), args=[_, ast.Constant(value=str(word))]):
                self.found[f"{{n}} {word}", f"{{n}} {word}s"] = None
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if not _VALUES.match(
                name
            ):
                names = [name]
                if name in _KEYWORDS:  # an argument that is a function
                    names = list(self._passed_functions(name, call))
                for function in (each for name in names for each in self._functions[name]):
                    if "str" in _returns(function):
                        yield from self._results(function)

    def _passed_functions(self, name: str, where: ast.expr) -> Iterator[str]:
        """Yield the names of the functions that a name may be; a caller may have its own name."""
        for each in self._named(name, where):
            called = _called(each)
            if self._functions.get(called):
                yield called
            elif called and each not in self._followed:
                self._followed.add(each)
                yield from self._passed_functions(called, each)

    def _results(self, function: Function) -> Iterator[ast.expr]:
        """Yield what a function returns or yields."""
        for node in ast.walk(function):
            if isinstance(node, ast.Return | ast.Yield) and self._around(node) is function:
                yield from filter(None, (node.value,))

    def _joined(self, values: list[ast.expr]) -> list[str]:
        """Return texts in a row.

        What belongs to the words, such as ``, or else`` after them, is part of the text. Other
        texts in it are texts of their own, unless there are neither words nor ``: `` and the like.
        """
        fixed = "".join(str(each.value) for each in values if isinstance(each, ast.Constant))
        stands_alone = bool(re.search("[a-z]{2}|[:;(]", fixed))
        pieces: list[list[str]] = []
        for value in values:
            inner = value.value if isinstance(value, ast.FormattedValue) else value
            texts = self._texts(inner)
            belongs = any(texts) and all(
                not text or text[0] in " ,;:(" or text[-1] == " " for text in texts
            )
            match inner:
                case ast.IfExp(body=ast.Constant(), orelse=ast.Constant()):
                    belongs = True
                case _:
                    belongs |= _is_text(inner)
            if (belongs or not stands_alone) and len(texts) < _MOST_FORMS:
                pieces.append(texts)
            else:
                self._add(inner)
                pieces.append([_VALUE])
        return ["".join(each) for each in product(*pieces)][:_MOST_FORMS]

    def _named(self, name: str, where: ast.expr) -> Iterable[ast.expr]:
        """Return what a name may be: of a function around it, an argument, or of a module."""
        function = self._around(where)
        while function is not None:
            places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            found = list(_assigned(function, name))
            if name in (*places, *(each.arg for each in function.args.kwonlyargs)):
                found += self._given(function, name, places)
            if found:
                return found
            function = self._around(function)
        return self._constants.get(name, ())

    def _given(self, function: Function, name: str, places: list[str]) -> Iterator[ast.expr]:
        """Yield what calls give for an argument, and its default."""
        if isinstance(function, ast.Lambda):
            return
        called = function.name
        if called == "__init__":
            called = getattr(self._parents[function], "name", called)
        places = places[1:] if places[:1] in (["self"], ["cls"]) else places
        yield from self._passed(called, name, places.index(name) if name in places else None)
        arguments = function.args
        ordered = [*arguments.posonlyargs, *arguments.args][::-1]
        for each, default in (
            *zip(ordered, arguments.defaults[::-1], strict=False),
            *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
        ):
            if each.arg == name and default is not None:
                yield default

    def _passed(self, called: str, name: str, place: int | None) -> Iterator[ast.expr]:
        """Yield what calls pass, by name or in a place."""
        for call in self._calls[called]:
            yield from (each.value for each in call.keywords if each.arg == name)
            is_plain = not any(isinstance(each, ast.Starred) for each in call.args)
            if is_plain and place is not None and place < len(call.args):
                yield call.args[place]


def _called(function: ast.expr) -> str:
    """Return the name of a function that is passed, perhaps with some arguments."""
    match function:
        case (
            ast.Name(id=name) | ast.Call(func=ast.Name(id="partial"), args=[ast.Name(id=name), *_])
        ):
            return name
    return ""


def _is_text(expression: ast.expr) -> bool:
    """Return whether an expression is a text as it stands, or a sum with one."""
    match expression:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left) or _is_text(right)
    return False


def _returns(function: Function | None) -> str:
    """Return the annotation of what a function returns."""
    returns = getattr(function, "returns", None)
    return ast.unparse(returns) if returns else ""


def _assigned(function: Function, name: str) -> Iterator[ast.expr]:
    """Yield what a function assigns to a name."""
    for node in ast.walk(function):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                yield from _matched(target, value, name)
            case (
                ast.For(target=target, iter=several)
                | ast.comprehension(target=target, iter=several)
            ):
                called = [several] if isinstance(several, ast.Call) else []
                for value in _elements(several) or called:
                    yield from _matched(target, value, name)


def _matched(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """Yield the value of a name in an assignment, perhaps of several at once."""
    match target, value:
        case ast.Name(id=found), _:
            if found == name:
                yield value
        case ast.Tuple(), ast.IfExp(body=body, orelse=orelse):
            yield from _matched(target, body, name)
            yield from _matched(target, orelse, name)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            for each, given in zip(targets, values, strict=True):
                yield from _matched(each, given, name)


def _elements(value: ast.expr) -> list[ast.expr]:
    """Return the elements of a list, or the values of a dict."""
    found: list[ast.expr] = []
    match value:
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Dict(values=elements):
            for each in elements:
                found += _elements(each.value) if isinstance(each, ast.Starred) else [each]
        case ast.GeneratorExp(elt=element) | ast.ListComp(elt=element):
            found = [element]
        case ast.Call(func=ast.Name(id="MappingProxyType"), args=[table]):
            found = _elements(table)
        case ast.IfExp(body=body, orelse=orelse):
            found = [*_elements(body), *_elements(orelse)]
    return found
