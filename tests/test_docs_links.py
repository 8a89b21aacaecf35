"""Every link of the documentation leads to a file of the repository, and to a heading in it.

The two languages of the README keep step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")])

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^()\s>]+)>?[^()]*\)")
_HEADING = re.compile(r"^#+ +(.+?) *#*$", re.MULTILINE)
_ANCHOR = re.compile(r"""<[^>]+ (?:id|name)=["']([^"']+)["']""")


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def links(text: str) -> list[str]:
    """The targets of the links, without those to other sites."""
    targets = _LINK.findall(_CODE.sub("`code`", text))
    return [target for target in targets if not re.match(r"[a-z][a-z+.-]*:", target)]


def anchors(text: str) -> set[str]:
    """What a link may name behind ``#``: the headings as GitHub spells them, and explicit ids."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    found: set[str] = set()
    for heading in _HEADING.findall(prose):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(next(each for each in _numbered(slug) if each not in found))
    return found | set(_ANCHOR.findall(prose))


def _numbered(slug: str) -> Iterator[str]:
    """The names that a heading gets where the same one stands in front of it."""
    yield slug
    yield from (f"{slug}-{number}" for number in range(1, 1000))


def broken(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in links(text):
        target, _, anchor = unquote(link).partition("#")
        path = (page.parent / target).resolve() if target else page
        inside = path == ROOT or ROOT in path.parents
        leads = inside and path.exists()
        if leads and anchor and path.suffix == ".md":
            leads = anchor in anchors(text if path == page else path.read_text(encoding="utf-8"))
        if not leads:
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert not broken(page, page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "link",
    ["gone.md", "docs/gone.png", "../outside.md", "README.md#gone", "#gone", "docs/errata.md#gone"],
)
def test_a_link_that_leads_nowhere_is_found(link: str) -> None:
    text = f"# Here\n\nSee [this `one`]({link}), [here](#here) and [all](docs/errata.md)."
    assert broken(ROOT / "README.md", text) == [link]


def test_what_looks_like_a_link_in_code_is_none() -> None:
    text = "`[a](gone.md)`\n\n```text\n[b](gone.md)\n```\n\n[c](https://example.org/gone.md)\n"
    assert not broken(ROOT / "README.md", text)


def test_the_two_readmes_say_the_same_in_two_languages() -> None:
    english, chinese = (
        (ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "README.zh-CN.md")
    )
    sessions = re.compile(r"^```console\n.*?^```$", re.DOTALL | re.MULTILINE)
    assert sessions.findall(chinese) == sessions.findall(english)
    assert [link for link in links(chinese) if link != "README.md"] == [
        link for link in links(english) if link != "README.zh-CN.md"
    ]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("README.md", "what {} engines and tools do with {} splits"),
        ("README.zh-CN.md", "{} 个引擎和工具对 {} 个切分的表现"),
        ("docs/index.md", "what {} engines and tools do with {} splits"),
        ("docs/quickstarts/engine.md", "What {} engines and tools do"),
    ],
)
def test_pages_count_the_engines_and_cases_of_the_published_run(page: str, words: str) -> None:
    results = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    counted = re.search(r"What (\d+) engines and tools really do with ([\d,]+) splits", results)
    assert counted
    assert words.format(*counted.groups()) in (ROOT / page).read_text(encoding="utf-8")
