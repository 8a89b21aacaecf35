"""The reports of a run: the same order in each, everything escaped, nothing from elsewhere."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import hashlib
import json
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tensorsplit.cli.screen import show
from tensorsplit.conformance.case import CaseSplit
from tensorsplit.conformance.document import OUTCOMES, Document, Result, SubjectInfo
from tensorsplit.conformance.known import Deviation
from tensorsplit.conformance.report import Matrix, html, markdown
from tensorsplit.conformance.report.summary import Counts, OutcomeChange, Summary, observation
from tests.conformance import documents
from tests.conformance.documents import CHUNK, LOOP, PLAIN, REST, STRINGS

DOCS = Path(__file__).parents[2] / "docs"
KNOWN = Deviation(
    "openvino-int64",
    "openvino",
    ">=2026.4.1",
    ("wrong",),
    (LOOP.id,),
    "int64 is computed in 32 bits",
    "https://example.org/issues/7",
)


def drawn(document: Document, width: int = 80) -> str:
    text = StringIO()
    Console(file=text, width=width, highlight=False, markup=False).print(Matrix(document))
    return text.getvalue()


def data_of(page: str) -> Any:
    run, scripts = (unpacked(page, name) for name in ("run", "scripts"))
    lines = scripts["lines"]
    texts = {
        (case, subject): "\n".join(lines[number] for number in numbers)
        for case, theirs in scripts["scripts"].items()
        for subject, numbers in theirs.items()
    }
    results = [{"case": case["id"], **said} for case in run["cases"] for said in case["results"]]
    places = [said.pop("severity") for said in results]
    shown = {"lines": lines, "scripts": texts, "contents": scripts["contents"]}
    return {**run, "results": results, "severities": places, **shown}


def unpacked(page: str, name: str) -> Any:
    found = re.search(rf'<script type="application/gzip" id="{name}">(.*?)</script>', page, re.S)
    assert found is not None
    return json.loads(gzip.decompress(base64.b64decode(found[1])))


def before(text: str, *words: str) -> bool:
    places = [text.index(word) for word in words]
    return places == sorted(places)


def with_detail(detail: str) -> Document:
    """A run of one case whose engine says anything it likes."""
    said = Result(PLAIN.id, "openvino", "crash", detail=detail, expected=detail, output=detail)
    run = documents.small()
    return dataclasses.replace(run, cases=(PLAIN,), results=(said,))


class TestTerminal:
    def test_the_worst_come_first_and_by_name(self) -> None:
        text = drawn(documents.small())
        assert before(text, "wrong, memory  2", "crash  1", "wrong  1", "refused but legal  1")
        for case in (STRINGS, REST, CHUNK, LOOP):
            assert case.id in text
        assert "SIGFPE: The process died while the model was loaded." in text

    def test_a_new_deviation_is_told_from_a_known_one_and_stands_before_it(self) -> None:
        text = drawn(documents.small())
        assert before(text, REST.id, STRINGS.id)
        lines = [line.rstrip() for line in text.splitlines()]
        assert f"    {CHUNK.id}  new" in lines
        assert f"    {STRINGS.id}" in lines
        assert lines[-1].endswith("2 known deviations, 3 new")

    def test_operators_stand_against_subjects_with_their_versions(self) -> None:
        rows = [line.split() for line in drawn(documents.small()).splitlines()]
        assert ["tensorsplit", "onnxruntime", "openvino", "onnxslim"] in rows
        assert ["2.4.6", "1.31.1", "2026.4.1", "0.1.80"] in rows
        assert ["onnx.SplitToSequence-11", "1", "0", "C1", "1", "1"] in rows
        assert ["openvino.VariadicSplit-1", "1", "-", "0", "M1", "-"] in rows
        assert ["all", "5", "3", "C1", "2", "M2", "W1", "3", "R1"] in rows

    @pytest.mark.parametrize("width", [80, 120, 200])
    def test_it_fits_the_width_with_any_number_of_subjects(self, width: int) -> None:
        lines = drawn(documents.large(600), width).splitlines()
        assert max(map(len, lines)) <= width
        for name in ("tensorsplit", "onnx-version-converter", "onnxsim"):
            assert any(name in line for line in lines)

    def test_it_is_readable_when_it_is_piped(self, capsys: pytest.CaptureFixture[str]) -> None:
        show(Matrix(documents.small()))
        text = capsys.readouterr().out
        assert "\x1b" not in text
        assert max(map(len, text.splitlines())) <= 80
        long = dataclasses.replace(PLAIN, id=f"{PLAIN.id}/{'x' * 100}")
        crash = Result(long.id, "openvino", "crash")
        show(Matrix(dataclasses.replace(documents.small(), cases=(long,), results=(crash,))))
        assert f"    {long.id}" in capsys.readouterr().out

    def test_what_an_engine_says_can_not_steer_the_terminal(self) -> None:
        assert "\x1b" not in drawn(with_detail("\x1b[2J\x07gone\nnext [red]line"))

    @pytest.mark.parametrize("detail", ["", "It died.", "It was ended by SIGSEGV."])
    def test_a_signal_is_named_once(self, detail: str) -> None:
        run = with_detail(detail)
        died = dataclasses.replace(run.results[0], signal="SIGSEGV", output="", expected="")
        text = drawn(dataclasses.replace(run, results=(died,)))
        assert text.count("SIGSEGV") == 1
        assert detail in text


def test_every_outcome_has_a_sign_and_a_key_of_its_own() -> None:
    assert len({outcome.sign for outcome in OUTCOMES}) == len(OUTCOMES)
    assert len({outcome.key for outcome in OUTCOMES}) == len(OUTCOMES)


def test_outcomes_are_graver_or_less_but_those_that_are_fine() -> None:
    order = "memory crash wrong accepted-but-illegal lost-refusal hang refused-but-legal"
    order += " unsupported-type pass untested skipped"
    assert [outcome.key for outcome in OUTCOMES] == order.split()
    assert [outcome.severity for outcome in OUTCOMES] == [*range(8), 8, 8, 8]


def test_a_lost_refusal_is_counted_and_shown_in_every_report() -> None:
    run = documents.clean()
    name = next(entry.name for entry in run.subjects if entry.kind == "tool")
    lost = Result(PLAIN.id, name, "lost-refusal", "the model that it returns gives y")
    kept = [entry for entry in run.results if (entry.case, entry.subject) != (PLAIN.id, name)]
    run = dataclasses.replace(run, results=(lost, *kept))
    terminal, page = drawn(run), html(run, documents.no_script)
    assert before(terminal, "lost refusal  1", PLAIN.id, "L1", "L lost refusal", "1 new")
    assert before(markdown(run), "| lost refusal |", "### Lost refusal", f"  - `{PLAIN.id}`")
    assert run.to_json()["results"][0]["verdict"] == "lost-refusal"
    assert Document.from_json(run.to_json()) == run
    said = data_of(page)
    assert "lost-refusal" in [outcome["key"] for outcome in said["outcomes"]]
    assert [entry["case"] for entry in said["results"] if entry["verdict"] != "pass"] == [PLAIN.id]
    assert before(page, ".o-lost-refusal", 'id="i-lost-refusal"', "1 lost refusal")


def write_page(run: Path, folder: Path) -> None:
    script = DOCS.parent / "scripts" / "pages.py"
    subprocess.run([sys.executable, script, folder, "--run", run], check=True)


class TestMarkdown:
    def test_each_known_deviation_is_told_by_itself(self) -> None:
        run = documents.small()
        known = {PLAIN.id: "a", STRINGS.id: "b", LOOP.id: "a"}
        results = tuple(
            dataclasses.replace(each, verdict="crash", memory=False, deviation=known[each.case])
            if each.subject == "openvino" and each.case in known
            else each
            for each in run.results
        )
        entry = dataclasses.replace(KNOWN, id="a")
        text = markdown(dataclasses.replace(run, results=results), [entry])
        assert f"(2 cases, known as [`a`](<{KNOWN.link}>)" in text
        assert "(1 case, known as `b`" in text

    def test_what_differs_in_values_alone_is_told_together(self) -> None:
        details = ["y1 is 5", "y1 is -7.5e3", "y1 is lost"]
        run = documents.small()
        results = tuple(
            Result(each.id, "openvino", "crash", detail)
            for each, detail in zip((PLAIN, STRINGS, LOOP), details, strict=True)
        )
        run = dataclasses.replace(run, results=results)
        text = markdown(run)
        assert text.count("(2 cases, new") == text.count("(1 case, new") == 1
        assert drawn(run).count("more like it") == drawn(run).count("and 1 more like it") == 1

    def test_what_most_cases_have_comes_first(self) -> None:
        run = documents.small()
        first, *others = sorted((PLAIN.id, STRINGS.id, LOOP.id))
        results = [Result(first, "openvino", "crash", "alone")]
        results += [Result(each, "openvino", "crash", "y1 is lost") for each in others]
        text = markdown(dataclasses.replace(run, results=tuple(results)))
        assert before(text, "(2 cases, new", "(1 case, new")

    def test_what_an_engine_says_is_neither_markup_nor_html(self) -> None:
        text = markdown(with_detail("<script>x</script> **bold** | [a](b)\n# head"))
        assert "\\<script\\>" in text
        assert "\\*\\*bold\\*\\*" in text
        assert "\n# head" not in text

    @pytest.mark.thorough
    def test_the_page_in_docs_is_what_is_generated(self, tmp_path: Path) -> None:
        write_page(DOCS / "conformance.json.gz", tmp_path)
        written = (tmp_path / "conformance.md").read_text(encoding="utf-8")
        published = (DOCS / "conformance.md").read_text(encoding="utf-8")
        again = "python scripts/pages.py docs --run docs/conformance.json.gz"
        assert published == written, f"run {again}"


class TestPage:
    def test_every_result_is_in_its_data(self) -> None:
        run = documents.small()
        data = data_of(html(run, documents.script))
        told = run.to_json()
        assert data["results"] == told["results"]
        assert data["subjects"] == told["subjects"]
        for case, expected in zip(data["cases"], told["cases"], strict=True):
            shown = {name: value for name, value in case.items() if name in expected}
            assert shown == expected

    def test_its_outcomes_are_in_the_order_of_their_severity(self) -> None:
        run = documents.small()
        data = data_of(html(run, documents.script))
        for result, place in zip(data["results"], data["severities"], strict=True):
            memory = result.get("memory") and result["verdict"] in {"wrong", "accepted-but-illegal"}
            assert data["outcomes"][place]["key"] == ("memory" if memory else result["verdict"])

    def test_every_deviation_has_its_words_and_its_script(self) -> None:
        data = data_of(html(documents.small(), documents.script))
        results = {(said["case"], said["subject"]): said for said in data["results"]}
        assert results[LOOP.id, "openvino"] == {
            "case": LOOP.id,
            "subject": "openvino",
            "verdict": "wrong",
            "detail": "2147483648 came back as another number.",
            "output": "y0",
            "index": [1, 0, 0],
            "expected": "2147483648",
            "seen": "-2147483648",
            "deviation": "openvino-int64",
        }
        deviations = {(said.case, said.subject) for said in documents.small().deviations()}
        assert data["scripts"] == {key: documents.script(*key) for key in deviations}

    def test_the_contents_of_a_case_share_the_lines_of_its_scripts(self) -> None:
        texts = {"model": "case (x) =>\n{", "input": "", "expected": "'y0': 1,"}
        page = html(documents.small(), lambda *_: "{\n'y0': 1,", contents=lambda _: texts)
        data = data_of(page)
        assert data["lines"] == ["{", "'y0': 1,", "case (x) =>"]
        assert data["contents"][PLAIN.id] == {"model": [2, 0], "expected": [1]}
        assert set(data["contents"]) == {case.id for case in documents.small().cases}

    def test_a_split_that_is_none_has_no_picture(self) -> None:
        """One with an empty part has."""
        run, cut = documents.small(), CaseSplit((6, 4), 0, (0, 6), keepdims=True)
        cases = (dataclasses.replace(c, cut=cut) if c.id == PLAIN.id else c for c in run.cases)
        data = data_of(html(dataclasses.replace(run, cases=tuple(cases)), documents.no_script))
        pictured = {case["id"]: case.get("picture") for case in data["cases"]}
        assert pictured[REST.id] is None
        assert pictured[CHUNK.id] is None
        assert "part 0" in data["pictures"][pictured[PLAIN.id]].lower()
        picture = data["pictures"][pictured[STRINGS.id]]
        assert "onnx.Split-13: axis 0 (6) of (6, 4): 2 parts" in picture
        assert "<style" not in picture

    def test_a_link_that_is_no_web_address_is_left_out(self) -> None:
        known = dataclasses.replace(KNOWN, link="javascript:alert(1)")
        data = data_of(html(documents.small(), documents.no_script, [known]))
        assert data["known"] == {"openvino-int64": ["int64 is computed in 32 bits", ""]}

    def test_it_asks_the_network_for_nothing(self) -> None:
        page = html(documents.small(), documents.script, [KNOWN])
        markup = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.S)
        sources = re.findall(r'\b(?:src|href|srcset|action|data)="([^"]*)"', markup)
        assert sources
        assert all(source.startswith(("#", "data:")) for source in sources)
        assert "@import" not in page
        assert "url(" not in page

    def test_its_policy_names_its_own_style_and_script(self) -> None:
        page = html(documents.small(), documents.no_script)
        found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
        assert found is not None
        policy = unescape(found[1])
        assert policy.startswith("default-src 'none'; ")
        for element in ("style", "script"):
            texts = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
            digests = [base64.b64encode(hashlib.sha256(t.encode()).digest()) for t in texts]
            assert [f"{element}-src 'sha256-{d.decode()}'" in policy for d in digests] == [True]

    @pytest.mark.parametrize(
        "detail",
        ["</script><script>alert(1)</script>", "<!--<script>", "\"'&<img src=x>", "\ud800 \x00 ü"],
    )
    def test_what_an_engine_says_is_only_text(self, detail: str) -> None:
        page = html(with_detail(detail), lambda case, subject: detail)
        assert page.isascii()
        assert Elements.of(page) == Elements.of(html(with_detail("fine"), documents.no_script))
        data = data_of(page)
        assert [said["detail"] for said in data["results"]] == [detail]
        assert set(data["scripts"].values()) == {detail}

    def test_names_are_escaped_in_links_too(self) -> None:
        run = with_detail("no")
        odd = SubjectInfo('my "engine" & <co>', "engine", {"a<b": "1"})
        said = dataclasses.replace(run.results[0], subject=odd.name)
        page = html(dataclasses.replace(run, subjects=(odd,), results=(said,)), documents.no_script)
        assert "engine=my%20%22engine%22%20%26%20%3Cco%3E" in page

    @pytest.mark.thorough
    def test_a_large_run_is_a_page_of_less_than_5_megabytes(self) -> None:
        assert len(documents.large_page()) < 5_000_000

    def test_the_templates_are_ascii(self) -> None:
        folder = files("tensorsplit.conformance.report") / "templates"
        for file in folder.iterdir():
            assert file.read_text(encoding="utf-8").isascii(), file.name


class Elements(HTMLParser):
    """The elements of a page in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    @classmethod
    def of(cls, page: str) -> list[str]:
        parser = cls()
        parser.feed(page)
        return parser.found

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.found.append(tag)


@pytest.mark.parametrize(
    ("passed", "failed", "share"),
    [(2, 0, "100.0 %"), (9996, 4, "99.9 %"), (2, 1, "66.6 %"), (0, 3, "0.0 %"), (0, 0, "0.0 %")],
)
def test_only_all_passes_are_a_share_of_100(passed: int, failed: int, share: str) -> None:
    counts = Counts({"pass": passed, "wrong": failed, "skipped": 5})
    assert counts.share == share


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        ("wrong", "pass", "better"),
        ("pass", "crash", "worse"),
        ("pass", "untested", "alike"),
        ("refused-but-legal", "refused-but-legal", "alike"),
    ],
)
def test_a_newer_version_is_better_or_worse_or_alike(
    before: str, after: str, direction: str
) -> None:
    outcomes = {each.key: each for each in OUTCOMES}
    assert OutcomeChange(outcomes[before], outcomes[after], ("case",)).direction == direction


def test_versions_are_compared_by_the_cases_that_both_ran() -> None:
    """The old one skipped the remainder, the new one the strings."""
    run = documents.small()
    assert not Summary(run).successions
    old = next(subject for subject in run.subjects if subject.name == "onnxruntime")
    new = dataclasses.replace(old, name="onnxruntime 9.9.0", engine="onnxruntime")
    words = {PLAIN: "wrong", STRINGS: "skipped", CHUNK: "pass", LOOP: "pass", REST: "pass"}
    results = (Result(told.id, new.name, word) for told, word in words.items())
    both = dataclasses.replace(run, subjects=(*run.subjects, new), results=(*run.results, *results))
    (found,) = Summary(both).successions
    assert (found.before, found.after, found.compared) == (old, new, 3)
    assert found.to_json() == {
        "before": old.name,
        "after": new.name,
        "cases": [
            {"case": PLAIN.id, "before": "pass", "after": "wrong"},
            {"case": CHUNK.id, "before": "crash", "after": "pass"},
        ],
    }


@pytest.mark.parametrize(
    ("seen", "line"),
    [
        ({"detail": "it  refuses\n  that"}, "it refuses that"),
        ({"signal": "SIGFPE"}, "SIGFPE"),
        ({"detail": "no shape", "output": "y"}, "no shape (y)"),
        ({"output": "y", "index": (0, 2), "expected": "1", "seen": "2"}, "y[0, 2] is 2, not 1"),
        (
            {"detail": "bad", "output": "y", "expected": "1", "seen": "2"},
            "bad (y is 2, not 1)",
        ),
        ({"detail": "y is 2", "output": "y", "expected": "1", "seen": "2"}, "y is 2"),
        ({"detail": "y", "output": "y", "expected": "1", "seen": "2"}, "y (y is 2, not 1)"),
    ],
)
def test_a_deviation_is_a_line_that_says_each_thing_once(seen: dict[str, Any], line: str) -> None:
    assert observation(Result("case", "engine", "wrong", **seen)) == line
