"""Brings the translations of the commands up to date: `python scripts/messages.py`.

A text that has changed loses its translation, and each text without one is named. Both files of a
catalogue are written: the .po, to be edited, and the .mo, which gettext reads; and beside them the
texts of refusals, by which the commands know them. Needs Babel, which Sphinx brings.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from dataclasses import astuple
from itertools import chain
from pathlib import Path
from typing import Any

import click

import tensorsplit
from tensorsplit.bench.workloads import WORKLOADS
from tensorsplit.cli.app import COMMANDS, main
from tensorsplit.cli.language import CATALOGUES, DOMAIN, WORDS, paragraphs
from tensorsplit.cli.sentences import OF_CLICK
from tensorsplit.core.differences import ASPECTS
from tensorsplit.core.records import operators
from tensorsplit.engines.compare import JUDGED
from tensorsplit.engines.diagnosis import FIXED_WORDS
from tensorsplit.model.check.checks import REPORTED, SEVERITIES
from tensorsplit.pages import page_of
from tensorsplit.pages.content import DECISIONS, FORMULAS, RULES

sys.path.insert(0, str(Path(__file__).parent))
from refusals import refusals

PACKAGE = Path(tensorsplit.__file__).parent

PROFILES = ("onnxruntime-1", "openvino", "portable")
"""How the names of those profiles begin that were written by hand; others hold engines' words."""

PLACES = {"tr": 0, "text": 0, "amount": 1, "progress_of": 0, "counted": 0, "begin": 0, "run_job": 1}
"""Which argument of a function is a text to be translated; of `amount` it is a word."""


def help_texts() -> Iterator[str]:
    """Yield each text of the help that is translated, as its paragraphs."""
    yield from WORDS
    context = click.Context(main)
    commands = filter(None, (main.get_command(context, name) for name in COMMANDS))
    for command in (main, *commands):
        yield from paragraphs(command.help or "")
        for parameter in command.params:
            yield from paragraphs(getattr(parameter, "help", None) or "")
    yield from (does for _, does in COMMANDS.values())


def messages() -> Iterator[str | tuple[str, str]]:
    """Yield each text that the commands say; of a number of things, both forms."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call):
                yield from _texts_of(call)
    yield from (*OF_CLICK, *SEVERITIES, *FIXED_WORDS)
    yield from (_forms(word) for word in SEVERITIES)
    for kind in REPORTED.values():
        yield from (kind.title, kind.meaning)
    yield from (decision.text for decision in DECISIONS)
    yield from RULES.values()
    yield from page_texts()
    yield from (workload.stands_for for workload in WORKLOADS.values())
    yield from ASPECTS
    yield from (": ", "; ", " and ", " or ")
    yield from refused()


def refused() -> Iterator[str | tuple[str, str]]:
    """Yield the texts of refusals and findings: of the source, and of profiles that come first."""
    yield from JUDGED
    for text in refusals(PACKAGE):
        yield text
        if isinstance(text, str) and "split = {0}" in text:  # as `tensorsplit split` has it
            yield text.replace("split = {0}", "--split {0}")
    for path in sorted(PACKAGE.joinpath("model", "profiles").glob("*.json")):
        if path.name.startswith(PROFILES):
            for entry in json.loads(path.read_text(encoding="utf-8"))["entries"]:
                yield from (entry["note"], entry.get("requires", ""))


def page_texts() -> Iterator[str]:
    """Yield the sentences on the pages of the operators, and the names of facts."""
    for record in operators.values():
        page = page_of(record)
        yield page.summary
        yield from (entry.name for entry in (*page.facts, *page.behaviour))
        tables = (page.facts, page.attributes, page.inputs, page.outputs, page.lengths)
        entries: Iterator[Any] = chain(*tables, page.behaviour)
        for entry in entries:
            texts = filter(None, map(str, astuple(entry)))
            yield from (text for text in texts if " " in text and text not in FORMULAS.values())
        yield from (entry.meaning for entry in page.types)
        yield from (astuple(entry)[2] for entry in (*page.attributes, *page.inputs, *page.outputs))


def _texts_of(call: ast.Call) -> Iterator[str | tuple[str, str]]:
    """Yield the text of a call of one of `PLACES`, by its name or as `words.text`."""
    match call.func:
        case ast.Name(id=name) if name != "text":
            pass
        case ast.Attribute(value=ast.Name(id="words"), attr=name):
            pass
        case _:
            return
    if name in PLACES and len(call.args) > PLACES[name]:
        match call.args[PLACES[name]]:
            case ast.Constant(value=str(found)):
                yield _forms(found) if name == "amount" else found


def _forms(word: str) -> tuple[str, str]:
    """Return the texts of one thing and of several."""
    return f"{{n}} {word}", f"{{n}} {word}s"


def update() -> None:
    """Write the catalogues anew, with the translations that they have."""
    from babel.messages import Catalog
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po, write_po

    texts = dict.fromkeys(text for text in refused() if text and isinstance(text, str))
    CATALOGUES.joinpath("refusals.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    for path in CATALOGUES.glob(f"*/LC_MESSAGES/{DOMAIN}.po"):
        with path.open("rb") as file:
            before = read_po(file)
        catalogue = Catalog(path.parts[-3], header_comment=before.header_comment, fuzzy=False)
        catalogue.mime_headers = before.mime_headers
        for text in dict.fromkeys(filter(None, (*help_texts(), *messages()))):
            old = before.get(text if isinstance(text, str) else text[0])
            catalogue.add(text, old.string if old else "")
            if old is None or not any(old.string):
                print(f"{path}: not translated: {text}")
        with path.open("wb") as file:
            write_po(file, catalogue, width=100)
        with path.with_suffix(".mo").open("wb") as file:
            write_mo(file, catalogue)


if __name__ == "__main__":
    update()
