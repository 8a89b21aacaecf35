"""The page of a run in a real browser: it filters, opens a case, and is usable by everyone.

Needs Playwright and a Chromium (the fixture `browser`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.conformance.known import Deviation
from tensorsplit.conformance.report import html
from tensorsplit.core.errors import DOCUMENTATION
from tests.conformance import documents
from tests.conformance.documents import CHUNK, LOOP, PLAIN, REST, STRINGS

playwright = pytest.importorskip("playwright.sync_api")

PHONE = {"width": 360, "height": 780}
DESK = {"width": 1280, "height": 900}
LINK = "https://example.org/issues/1"
KNOWN = Deviation("openvino-strings", "openvino", "", ("wrong",), (), "Strings repeat.", LINK)

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "run.html"
    made = html(documents.small(), documents.script, [KNOWN], documents.contents)
    path.write_text(made, encoding="ascii")
    return path.as_uri()


class Tabs:
    """A tab of the browser for each set of options; to start one costs more than most tests."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser
        self.trouble: list[str] = []
        self.found: dict[str, Any] = {}

    def of(self, options: dict[str, Any]) -> Any:
        """An empty tab."""
        key = repr(sorted(options.items()))
        if key not in self.found:
            self.found[key] = self.new(options)
        page = self.found[key]
        page.emulate_media(media="null")
        page.goto("about:blank")
        return page

    def new(self, options: dict[str, Any]) -> Any:
        told = self.trouble.append
        context = self.browser.new_context(
            **{"viewport": DESK, "reduced_motion": "reduce"} | options
        )
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: told(f"console: {message.text}"))
        page.on("pageerror", lambda error: told(f"error: {error}"))
        page.on("request", lambda request: told(f"asked for {request.url}"))
        return page


@pytest.fixture(scope="module")
def tabs(browser: Any) -> Tabs:
    return Tabs(browser)


@pytest.fixture
def open_page(tabs: Tabs, address: str) -> Iterator[Open]:
    """Opens the page; at the end nothing may have gone wrong in it, and nothing been asked for."""
    tabs.trouble.clear()

    def open_it(state: str = "", where: str = "", **options: Any) -> Any:
        page = tabs.of(options)
        page.goto(f"{where or address}{state}")
        if options.get("java_script_enabled", True):
            page.wait_for_selector("#filters", state="attached")
            page.wait_for_function("!document.getElementById('filters').hidden")
        return page

    yield open_it
    assert [line for line in tabs.trouble if "asked for file:" not in line] == []


def ids(page: Any) -> set[str]:
    return set(page.locator("#list .id").all_text_contents())


def opened(page: Any) -> Any:
    page.wait_for_selector("dialog[open] #case-title")
    return page.locator("dialog")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("only", "onnxruntime", {PLAIN.id, STRINGS.id, CHUNK.id, LOOP.id, REST.id}),
        ("operator", "onnx.Split-18", {PLAIN.id, LOOP.id}),
        ("type", "string", {STRINGS.id}),
        ("decision", "D7", {REST.id}),
        ("place", "loop", {LOOP.id}),
        ("spelling", "initializer", {PLAIN.id, STRINGS.id}),
        ("use", "SequenceAt", {LOOP.id}),
        ("expects", "refusal", {CHUNK.id, REST.id}),
        ("known", "no", {CHUNK.id, REST.id, LOOP.id}),
    ],
)
def test_a_filter_leaves_the_cases_it_names(
    open_page: Open, name: str, value: str, expected: set[str]
) -> None:
    page = open_page()
    page.locator("#more > summary").click()
    page.select_option(f"[name={name}]", value)
    playwright.expect(page.locator("#list > li")).to_have_count(len(expected))
    assert ids(page) == expected
    assert f"{name}={value}" in page.url


def test_filters_by_verdict_and_engine_go_together(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("checkbox", name="wrong, memory").check()
    playwright.expect(page.locator("#count")).to_have_text("2 cases of 5")
    page.get_by_role("checkbox", name="crash").check()
    playwright.expect(page.locator("#count")).to_have_text("3 cases of 5")
    page.select_option("[name=only]", "onnxruntime")
    playwright.expect(page.locator("#count")).to_have_text("1 case of 5")
    assert ids(page) == {CHUNK.id}
    page.get_by_role("button", name="Clear filters").click()
    playwright.expect(page.locator("#count")).to_have_text("5 cases of 5")


def test_the_search_takes_words_in_any_order(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("searchbox").fill("LOOP split-18")
    playwright.expect(page.locator("#list > li")).to_have_count(1)
    assert ids(page) == {LOOP.id}
    page.get_by_role("searchbox").fill("nothing like that")
    playwright.expect(page.locator("#count")).to_have_text("No case of 5")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("keyerror", {LOOP.id}),
        ("returned parts of", {REST.id}),
        ("onnx.Split-18/*", {PLAIN.id, LOOP.id}),
        ("*/loo?", {LOOP.id}),
        ("onnx.Split-1[!3]/*", {PLAIN.id, LOOP.id}),
        ("[", set()),
    ],
)
def test_the_search_takes_messages_and_the_patterns_of_the_command_line(
    open_page: Open, text: str, expected: set[str]
) -> None:
    page = open_page()
    page.get_by_role("searchbox").fill(text)
    few = f"{len(expected)} case{'' if len(expected) == 1 else 's'}" if expected else "No case"
    playwright.expect(page.locator("#count")).to_have_text(f"{few} of 5")
    assert ids(page) == expected


def test_arrow_keys_go_from_case_to_case(open_page: Open) -> None:
    page = open_page()
    found = page.locator("#list .id").all_text_contents()
    page.locator("#list .id").first.click()
    title = opened(page).locator("#case-title")
    for key, at in (("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)):
        page.keyboard.press(key)
        playwright.expect(title).to_have_text(found[at])


def test_a_decision_is_said_without_a_link_where_there_is_no_site(open_page: Open) -> None:
    decision = opened(open_page(f"#case={REST.id}")).locator(".decision")
    playwright.expect(decision).to_contain_text(REST.decision)
    playwright.expect(decision.locator("a")).to_have_count(0 if not DOCUMENTATION else 1)


def test_shares_are_said_in_percent(open_page: Open) -> None:
    shares = open_page().locator(".summary .percent").all_text_contents()
    assert shares == ["100.0 %", "75.0 %", "40.0 %", "75.0 %"]  # what is skipped does not count


def test_the_legend_and_the_matrix_come_before_findings(open_page: Open) -> None:
    page = open_page()
    order = page.locator("main > section").evaluate_all("all => all.map(each => each.id)")
    assert order[:4] == ["reading", "operators", "subjects", "worst"]
    assert order[-1] == "cases"
    legend = page.locator("#reading summary .badge")
    assert {"crash", "pass", "wrong, memory"} <= set(legend.all_text_contents())
    meaning = page.locator("#reading dd").first
    assert not meaning.is_visible()
    page.locator("#reading summary").click()
    assert meaning.is_visible()


def test_memory_errors_come_first_everywhere(open_page: Open) -> None:
    page = open_page()
    worst = page.locator(".findings .badge").all_text_contents()
    assert worst == ["wrong, memory", "crash", "wrong"]
    listed = page.locator("#list .id").all_text_contents()
    assert listed == [STRINGS.id, REST.id, CHUNK.id, LOOP.id, PLAIN.id]


def test_a_number_of_the_tables_leads_to_its_cases(open_page: Open) -> None:
    page = open_page()
    page.locator(".matrix").get_by_role("link", name="1 crash").click()
    playwright.expect(page.locator("#list > li")).to_have_count(1)
    assert ids(page) == {CHUNK.id}
    assert page.locator("[name=only]").input_value() == "onnxruntime"
    assert page.evaluate("document.activeElement.id") == "cases-title"


def test_a_case_shows_what_was_tested_and_what_came_of_it(open_page: Open) -> None:
    page = open_page()
    page.locator("#list").get_by_text(STRINGS.id).click()
    case = opened(page)
    text = case.inner_text()
    assert "Each part has the length that is listed for it" in text
    assert "openvino 2026.4.1" in " ".join(text.split())
    for name, value in (
        ("first difference at", "[0, 3]"),
        ("expected", "'fourth </script> & <b>'"),
        ("seen", "'first'"),
        ("memory", "read or written outside a buffer"),
    ):
        row = case.locator(".result[open] .terms div").filter(has_text=name)
        assert value in row.first.inner_text()
    link = case.get_by_role("link", name="openvino-strings")
    assert link.get_attribute("href") == LINK


def test_a_case_shows_the_split_as_a_picture(open_page: Open) -> None:
    page = open_page(f"#case={STRINGS.id}")
    picture = opened(page).get_by_role("img", name="axis 0 (6) of (6, 4): 2 parts")
    picture.wait_for()
    assert picture.locator("rect.p1").count() == 3  # in the tensor, taken out of it, in the table
    box = picture.bounding_box()
    assert box["width"] > 200
    assert box["height"] > 200


def test_a_case_shows_its_model_lengths_input_and_what_is_expected(open_page: Open) -> None:
    case = opened(open_page(f"#case={STRINGS.id}"))
    playwright.expect(case.get_by_label("Model")).to_contain_text("y0, y1 = Split (x)")
    playwright.expect(case.get_by_label("Input")).to_contain_text("'x': np.arange(6, 6,")
    playwright.expect(case.get_by_label("Expected")).to_have_text("'y0': np.array(['</script>'])")
    assert case.locator(".columns .terms div").all_inner_texts()[3:6] == [
        "shape\n(6, 4), static",
        "axis\n0",
        "lengths\n2, 4",
    ]


def test_a_case_of_a_refusal_says_that_it_is_expected(open_page: Open) -> None:
    case = opened(open_page(f"#case={REST.id}"))
    playwright.expect(case.get_by_label("Expected")).to_have_text("a refusal")
    playwright.expect(case.get_by_label("Model")).to_have_text(
        "Not expressible in onnx's text format."
    )


def test_a_case_that_was_not_known_has_no_model(open_page: Open) -> None:
    page = open_page(f"#case={LOOP.id}&engine=openvino")
    case = opened(page)
    case.get_by_text("Print it again").wait_for()  # the lines are there
    assert case.locator(".contents").inner_text() == ""


def test_a_case_without_parts_says_so(open_page: Open) -> None:
    assert "No picture" in opened(open_page(f"#case={REST.id}")).inner_text()


def test_the_reproduction_is_shown_and_copied(open_page: Open) -> None:
    page = open_page(f"#case={CHUNK.id}", permissions=["clipboard-read", "clipboard-write"])
    case = opened(page)
    script = documents.script(CHUNK.id, "onnxruntime")
    playwright.expect(case.get_by_label("Reproduction", exact=True)).to_have_text(script)
    case.get_by_role("button", name="Copy").first.click()
    case.get_by_text("Copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()") == script


def test_the_reproduction_is_copied_where_a_page_has_no_clipboard(
    open_page: Open, address: str
) -> None:
    page = open_page(locale="en-GB")  # a tab that no other test has
    page.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.goto("about:blank")
    page.goto(f"{address}#case={CHUNK.id}")
    case = opened(page)
    case.get_by_role("button", name="Copy").first.click()
    case.get_by_text("Copied").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").focus()
    page.keyboard.press("Control+V")
    pasted = page.get_by_role("searchbox").input_value()
    assert pasted == documents.script(CHUNK.id, "onnxruntime").replace("\n", " ").strip()


def test_a_link_opens_a_case_with_an_engine(open_page: Open) -> None:
    page = open_page(f"#case={LOOP.id}&engine=onnxslim")
    case = opened(page)
    assert case.locator("#case-title").inner_text() == LOOP.id
    result = case.locator(".result[open]")
    assert result.get_attribute("data-subject") == "onnxslim"
    case.get_by_role("button", name="Close").click()
    page.wait_for_url(lambda address: "case=" not in address)


def test_a_link_to_no_case_says_so(open_page: Open) -> None:
    assert "There is no such case" in opened(open_page("#case=<b>no</b>")).inner_text()


def test_going_back_closes_a_case(open_page: Open) -> None:
    page = open_page("#operator=onnx.Split-18")
    page.locator("#list a").first.click()
    opened(page)
    page.go_back()
    page.wait_for_selector("dialog", state="hidden")
    assert ids(page) == {LOOP.id, PLAIN.id}


def test_a_case_leads_to_the_next_one(open_page: Open) -> None:
    page = open_page("#operator=onnx.Split-18")
    page.locator("#list a").first.click()
    case = opened(page)
    assert case.get_by_role("button", name="Previous").is_disabled()
    case.get_by_role("button", name="Next").click()
    playwright.expect(case.locator("#case-title")).to_have_text(PLAIN.id)
    page.keyboard.press("Escape")
    playwright.expect(page).to_have_url(page.url.split("#")[0] + "#operator=onnx.Split-18")


def test_the_keyboard_is_enough(open_page: Open) -> None:
    page = open_page()
    press = page.keyboard.press
    press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the cases"
    press("Enter")
    press("Tab")
    assert page.evaluate("document.activeElement.name") == "q"
    page.keyboard.type("chunk-0")
    playwright.expect(page.locator("#list > li")).to_have_count(1)
    page.locator("#list a").focus()
    press("Enter")
    opened(page)
    assert page.evaluate("document.activeElement.id") == "case-title"
    press("Escape")
    page.wait_for_selector("dialog", state="hidden")
    assert page.evaluate("document.activeElement.textContent") == CHUNK.id


def test_the_arrow_keys_move_in_a_table(open_page: Open) -> None:
    page = open_page()
    cells = page.locator(".matrix td a")
    assert cells.evaluate_all("all => all.filter((cell) => cell.tabIndex === 0).length") == 1

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))

    cells.first.focus()
    for key, expected in (
        ("ArrowRight", "all 2 cases pass"),
        ("ArrowDown", "all 2 cases pass"),
        ("ArrowDown", "1 wrong"),
        ("ArrowDown", "1 refused but legal"),
        ("Home", "all 1 cases pass"),
    ):
        page.keyboard.press(key)
        assert focused() == expected


def test_what_has_the_focus_is_marked(open_page: Open) -> None:
    page = open_page()
    for _ in range(12):
        page.keyboard.press("Tab")
        width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2


@pytest.mark.parametrize("state", ["", f"#case={STRINGS.id}", f"#case={LOOP.id}"])
def test_nothing_is_wider_than_a_phone(open_page: Open, state: str) -> None:
    page = open_page(state, viewport=PHONE)
    if state:
        opened(page).locator("svg.ts-split").wait_for()
        inside = "dialog => [dialog.scrollWidth, dialog.clientWidth]"
        width, room = page.locator("dialog").evaluate(inside)
        assert width <= room
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_colours_follow_the_reader(open_page: Open, scheme: str) -> None:
    page = open_page(color_scheme=scheme)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = [int(part) for part in colour[4:-1].split(",")]
    assert all(part > 200 for part in brightness) == (scheme == "light")
    assert all(part < 60 for part in brightness) == (scheme == "dark")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_axe_finds_nothing(open_page: Open, scheme: str, viewport: dict[str, int]) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = open_page(color_scheme=scheme, viewport=viewport, bypass_csp=True)
    assert axe.run(page).response["violations"] == []
    page.locator("#list a").first.click()
    opened(page).locator("pre").first.wait_for()
    assert axe.run(page).response["violations"] == []


def test_the_tables_are_there_without_scripts(open_page: Open) -> None:
    page = open_page(java_script_enabled=False)
    assert page.locator(".findings > li").count() == 3
    assert page.locator("table").count() == 2
    assert not page.locator("#filters").is_visible()


def test_paper_is_white_even_in_the_dark(open_page: Open) -> None:
    page = open_page(color_scheme="dark")
    page.emulate_media(media="print")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(255, 255, 255)"
    assert not page.locator("#filters").is_visible()


def test_thousands_of_cases_are_shown_in_pieces(
    open_page: Open, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("large") / "run.html"
    path.write_text(documents.large_page(), encoding="ascii")
    page = open_page(where=path.as_uri())
    playwright.expect(page.locator("#count")).to_have_text("5,000 cases of 5,000")
    assert page.locator("#list > li").count() == 50
    page.get_by_role("button", name="Show 50 more").click()
    assert page.locator("#list > li").count() == 100
    assert (
        page.evaluate("[...document.querySelectorAll('#list a')].indexOf(document.activeElement)")
        == 50
    )
    page.locator("#list a").last.click()
    opened(page).locator("pre").first.wait_for()


def test_a_clean_run_says_so(open_page: Open, tmp_path: Path) -> None:
    path = tmp_path / "run.html"
    path.write_text(html(documents.clean(), documents.no_script), encoding="ascii")
    page = open_page(where=path.as_uri())
    assert page.locator("#worst").get_by_text("None: in this run no subject").is_visible()
    page.locator("#list a").first.click()
    assert opened(page).locator("details.result").count() == 0


def test_a_run_without_subjects_is_a_page_too(open_page: Open, tmp_path: Path) -> None:
    empty = dataclasses.replace(documents.small(), subjects=(), cases=(), results=())
    path = tmp_path / "run.html"
    path.write_text(html(empty, documents.no_script), encoding="ascii")
    playwright.expect(open_page(where=path.as_uri()).locator("#count")).to_have_text("No case of 0")
