"""The documentation site in a real browser: readable by everyone, without a network.

Needs what `sh scripts/docs.sh` builds, Playwright and a Chromium (the fixture `browser`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SITE = Path(__file__).parent.parent / "build" / "site"
pytestmark = pytest.mark.skipif(not SITE.exists(), reason="the site was not built")

PAGES = [
    "index",
    "quickstarts/exporting",
    "operators/differences",
    "command-line/README",
    "command-line/split",
    "api",
    "why",
    "adr/0033-numpy-alone",
    "zh/index",
    "zh/contributing",
    "zh/operators/onnx.Split-18",
]


@pytest.fixture(scope="module", params=["light", "dark"])
def tab(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A tab that the site asks for nothing outside of its folder."""
    context = browser.new_context(color_scheme=request.param, reduced_motion="reduce")
    page = context.new_page()
    outside: list[str] = []
    page.on("request", lambda request: outside.append(request.url))
    yield page
    context.close()
    assert [url for url in outside if not url.startswith(SITE.as_uri())] == []


def address(page: str) -> str:
    return (SITE / f"{page}.html").as_uri()


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_and_nothing_is_cut_off(tab: Any, page: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    tab.set_viewport_size({"width": width, "height": 900})
    tab.goto(address(page))
    assert axe.run(tab).response["violations"] == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    cut = "[...document.querySelectorAll('.highlight-console:not(.drawing) pre')]"
    assert tab.evaluate(f"{cut}.filter(pre => pre.scrollWidth > pre.clientWidth).length") == 0


@pytest.mark.parametrize(
    ("words", "found"),
    [("search.html?q=num_outputs", "onnx.Split-18"), ("zh/search.html?q=切分张量", "onnx.Split-2")],
)
def test_search_finds_a_page(tab: Any, words: str, found: str) -> None:
    tab.goto(f"{SITE.as_uri()}/{words}")
    results = tab.locator("#search-results a", has_text=found)
    results.first.wait_for()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("install", ("install",)),
        ("lower", ("api",)),
        ("num_outputs", ("api", "quickstarts/", "command-line/", "operators/")),
        ("ts.split", ("api", "quickstarts/", "command-line/", "operators/")),
    ],
)
def test_search_finds_what_you_use_before_why_it_is_so(
    tab: Any, words: str, first: tuple[str, ...]
) -> None:
    tab.goto(f"{SITE.as_uri()}/search.html?q={words}")
    results = tab.locator("#search-results > ul > li > a")
    results.nth(3).wait_for()
    found = [results.nth(place).get_attribute("href") or "" for place in range(4)]
    assert found[0].startswith(first)
    assert not any(page.startswith("adr/") for page in found)


def test_a_page_in_english_only_says_so_in_chinese(tab: Any) -> None:
    tab.goto(address("zh/architecture"))
    assert "本页尚未翻译" in tab.locator(".admonition.note").first.inner_text()
    tab.goto(address("architecture"))
    assert tab.locator(".admonition.note").count() == 0


def test_options_are_written_as_they_are_typed(tab: Any) -> None:
    tab.goto(address("command-line/check"))
    assert "\N{EN DASH}" not in tab.locator("article").inner_text()


def test_a_page_leads_to_itself_in_the_other_language(tab: Any) -> None:
    tab.set_viewport_size({"width": 1440, "height": 900})
    tab.goto(address("operators/differences"))
    tab.get_by_role("link", name="中文").first.click()
    assert tab.url == address("zh/operators/differences")
    tab.get_by_role("link", name="English").first.click()
    assert tab.url == address("operators/differences")
