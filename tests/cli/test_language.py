"""The help and what the commands say are in the language of the user, if there is a catalogue."""

from __future__ import annotations

import ast
import gettext
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from rich.cells import cell_len

from tensorsplit.cli import language
from tensorsplit.cli.app import COMMANDS, main

ROOT = Path(__file__).parents[2]
CATALOGUES = sorted(language.CATALOGUES.rglob("*.po"))
VARIABLES = ("TENSORSPLIT_LANG", "LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")


def entries(path: Path) -> dict[str, str]:
    """Return the texts of a .po, each with its translation; the first, the header, has no text."""
    plural = r'(?:msgid_plural (?:".*"\n)+)?'
    pattern = rf'^msgid ((?:".*"\n)+){plural}msgstr(?:\[0\])? ((?:".*"\n?)+)'
    pairs = re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return {ast.literal_eval(f"({text})"): ast.literal_eval(f"({other})") for text, other in pairs}


def texts(path: Path) -> dict[str, str]:
    return {text: other for text, other in entries(path).items() if text}


@cache
def written() -> dict[str, str]:
    """Return every text of the help and of what commands say, each with its plural."""
    script = runpy.run_path(str(ROOT / "scripts" / "messages.py"))
    found = (*script["help_texts"](), *script["messages"]())
    forms = ((text, text) if isinstance(text, str) else text for text in found)
    return {one: several for one, several in forms if one}


def tensorsplit(*args: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command with these variables of language, and no other ones."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return subprocess.run(
        [sys.executable, "-m", "tensorsplit", *args],
        env={**kept, "PYTHONUTF8": "1", **variables},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def chinese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TENSORSPLIT_LANG", "zh_CN")
    language.catalogue.cache_clear()
    yield
    language.catalogue.cache_clear()


def test_there_is_a_catalogue() -> None:
    assert [path.parts[-3] for path in CATALOGUES] == ["zh_CN"]


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_every_text_of_a_catalogue_is_in_the_source(path: Path) -> None:
    assert set(texts(path)) <= set(written()), "run python scripts/messages.py, and translate"


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_every_text_is_translated(path: Path) -> None:
    done = texts(path)
    missing = [text for text in written() if not done.get(text)]
    assert missing == [], "run python scripts/messages.py, and translate"


def test_the_texts_of_refusals_are_those_of_the_source() -> None:
    listed = (language.CATALOGUES / "refusals.txt").read_text(encoding="utf-8").splitlines()
    found = runpy.run_path(str(ROOT / "scripts" / "messages.py"))["refused"]()
    assert set(listed) == {each for each in found if each and isinstance(each, str)}


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_what_gettext_reads_is_what_the_catalogue_says(path: Path) -> None:
    with path.with_suffix(".mo").open("rb") as file:
        read = gettext.GNUTranslations(file)
    assert texts(path)
    source = written()
    for text, other in texts(path).items():
        several = source[text]
        seen = read.ngettext(text, several, 2) if several != text else read.gettext(text)
        assert seen == (other or text)


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.parts[-3])
def test_a_translation_keeps_options_codes_code_and_places(path: Path) -> None:
    for text, other in texts(path).items():
        assert set(re.findall(r"{\w+", other)) <= {*re.findall(r"{\w+", text), "{choices"}
        for pattern in (
            r"--[a-z][a-z-]+",
            r"{\w+",
            r"\bTS\d{3}\b",
            r"`[^`]+`",
            r"\b[A-Z]{3,}\b",
            r"\d+",
        ):
            found = set(re.findall(pattern, text)) - {"URL", "TOML", "JSON", "NOT", "{choice"}
            assert other == "" or found <= set(re.findall(pattern, other)), text


@pytest.mark.parametrize(
    "variables",
    [
        {"TENSORSPLIT_LANG": "zh_CN", "LANG": "C"},
        {"TENSORSPLIT_LANG": "zh"},
        {"LANG": "zh_CN.UTF-8"},
        {"LC_ALL": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"},
    ],
)
def test_the_help_is_in_chinese(variables: dict[str, str]) -> None:
    done = tensorsplit("--help", **variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("用法: tensorsplit ")
    assert "检查" in done.stdout
    assert "Show this message" not in done.stdout


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"LANG": "C"},
        {"LANG": "de_DE.UTF-8"},
        {"TENSORSPLIT_LANG": "en", "LANG": "zh_CN.UTF-8"},
        {"TENSORSPLIT_LANG": "xx"},
    ],
)
def test_the_help_is_in_english_otherwise(variables: dict[str, str]) -> None:
    done = tensorsplit("--help", **variables)
    assert done.stdout.startswith("Usage: tensorsplit ")
    assert done.stdout.isascii()


@pytest.mark.usefixtures("chinese")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_the_help_is_too_wide(name: str) -> None:
    parent = main.make_context("tensorsplit", [], resilient_parsing=True, terminal_width=78)
    command = main.get_command(parent, name)
    assert command is not None
    text = command.make_context(name, [], parent, resilient_parsing=True).get_help()
    folded, _, _ = text.partition("示例:")  # commands to copy are not folded
    lines = folded.splitlines()[1:]
    assert any("一" <= character <= "鿿" for character in folded)
    assert max(map(cell_len, lines)) <= 78
    assert not any(line.strip()[:1] in set("，。；：、）") for line in lines if line.strip())


def test_paragraphs_are_known_again_however_they_are_folded() -> None:
    assert list(language.paragraphs("One\n  line.\n\n    Another\n    one.\n")) == [
        "One line.",
        "Another one.",
    ]
