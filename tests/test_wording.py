"""Text is plain English: phrases that read like a translation are refused by name.

Read are the documentation, all texts, docstrings and comments of the source, and what its data says
of engines. The style guide of the project is the table here.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import re
import tokenize
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tensorsplit as ts

ROOT = Path(__file__).parents[1]

INSTEAD = {
    r"(?<!there )\b(?:is|are|was|were|be) no (?!longer\b|more\b)": "is not a",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"(?<!leaves )(?<!leave )(?<!left )(?<!process )\bbehind\b": "after, below or outside",
    r"\b(?:to be|can be|could be) had\b": "is available",
    r"\bthere was none\b": "it is not available",
    r"\bwhat is (?:refused|no \w+) is\b": "invalid X is refused",
    r"\b(?:may|can) stand (?:any|no)where\b": "may be anywhere",
    r"\bstands? nowhere\b": "is missing",
    r"\bwhoever\b": "who, or the user",
    r"\bwithout a word\b": "without an error",
    r"\bhow grave\b": "severity",
    r"\b(?:own|owns|owning) (?:a|the) CI\b": "check models in CI",
    r"\byou hold\b": "you work with",
    r"\bmakes? nothing of\b": "ignores",
    r"\bwherever one\b": "where you",
    r"\b(?:is|are|be) told\b": "is given, or is reported",
    r"\bsaid (?:of|so)\b": "reported",
    r"\bcalled so\b": "of that name",
    r"\bthere any more\b": "gone",
    r"\bis there still\b": "is unchanged",
    r"\bwhat stands (?!for\b)": "what is in, or the name of the thing",
    r"\bwants? (?:a|an) (?:test|name|value)\b": "needs",
    r"\banew\b": "again",
    r"\binside of\b": "inside",
    r"\brooms\b": "folders or modules",
    r"\bgo(?:es)? on with\b": "keeps, or continues with",
    r"\bof the model's own\b": "the model's own X",
    r"\b(?:take|takes|took|taken) (?:(?:it|them|each \w+|an? \w+ \w+) )?for (?:an?|others)\b"
    r"(?! (?:call|case|chunk)\b)": "treat as",
    r"\b(?:it|that|what|which) is (?-i:none)\b": "is not one, or does not exist",
    r"\bTS\d{3} for what (?:is|can|does)": "if something is or can",
}
"""Each phrase, and what to write in its place."""

_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`|\]\([^)]*\)|<!--.*?-->", re.DOTALL | re.MULTILINE)

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name != "conformance.md" and path.parent.name != "adr"  # generated; records of the past
)


def found(text: str) -> list[str]:
    """Return the phrases that are in a text, each with what to write in its place."""
    words = " ".join(text.split())
    return [
        f"{match.group()!r}: write {better!r}; ...{words[max(match.start() - 40, 0) : match.end()]}"
        for pattern, better in INSTEAD.items()
        for match in re.finditer(pattern, words, re.IGNORECASE)
    ]


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstring of each public name, and of the public members of classes."""
    for name in ts.__all__:
        public = getattr(ts, name)
        yield name, inspect.getdoc(public) or ""
        if inspect.isclass(public):
            for member, value in vars(public).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", inspect.getdoc(value) or ""


def texts(path: Path) -> Iterator[str]:
    """Yield the strings, docstrings and comments of a source file."""
    source = path.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def texts_of_data(path: Path) -> Iterator[str]:
    """Yield what a file of data says in words."""
    values = [json.loads(path.read_text(encoding="utf-8"))]
    while values:
        match values.pop():
            case dict() as entries:
                values += entries.values()
            case list() as entries:
                values += entries
            case str() as text if " " in text:
                yield text


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_page_is_plain_english(page: Path) -> None:
    assert found(_CODE.sub("", page.read_text(encoding="utf-8"))) == []


def test_docstrings_of_the_api_are_plain_english() -> None:
    wrong = {name: found(text) for name, text in docstrings()}
    assert {name: phrases for name, phrases in wrong.items() if phrases} == {}


@pytest.mark.parametrize(("suffix", "read"), [("py", texts), ("json", texts_of_data)])
def test_the_source_is_plain_english(suffix: str, read: Callable[[Path], Iterator[str]]) -> None:
    wrong = {
        str(path.relative_to(ROOT)): phrases
        for path in sorted((ROOT / "src").rglob(f"*.{suffix}"))
        if (phrases := [phrase for text in read(path) for phrase in found(text)])
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "text",
    [
        "it is no shape",
        "a file that\nis no model",
        "Mend it",
        "bytes behind the end",
        "there was none to be had",
        "What is refused is refused with a code",
        "the run may stand anywhere",
        "a file that is called so",
        "what was there is there still",
        "TS101 for a name that is none",
        "TS105 for what is not an integer",
        "engines take it for a constant",
        "written anew, inside of a body",
    ],
)
def test_a_phrase_is_found(text: str) -> None:
    assert found(text)


def test_plain_english_is_left_alone() -> None:
    assert found("There is no kernel. It is no longer needed and leaves no process behind.") == []
    assert found("It may take for a call 10 s. A value that is None; there is none.") == []
