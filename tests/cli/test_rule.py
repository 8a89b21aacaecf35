"""``tensorsplit rule``: every code has a page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorsplit.core.errors import KINDS
from tensorsplit.model.check.checks import CHECKS
from tensorsplit.pages.codes import codes_page
from tests.cli.conftest import Command

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def test_the_page_of_a_refusal(tensorsplit: Command) -> None:
    assert tensorsplit("rule", "ts304").out == (
        "TS304  num_outputs leaves a negative last part  error\n"
        "\n"
        "All parts but the last have ceil(d/n) elements; they must not need more than d\n"
        "together.\n"
        "\n"
        "D1  A count n that would leave a negative last part (ceil(d/n) * (n-1) > d) is\n"
        "    refused.\n"
        "\n"
        "    ts.split(np.zeros(5), num_outputs=4)\n"
        "\n"
        "[TS304] onnx.Split-18, parameter 'num_outputs': 4 parts of ceil(5/4) = 2 leave\n"
        "-1 for the last part of the dimension 5; give explicit lengths, such as split =\n"
        "[2, 1, 1, 1]\n"
    )


def test_the_page_has_a_link_where_the_documentation_is_published(
    tensorsplit: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorsplit.core.errors.DOCUMENTATION", "https://docs.test")
    assert tensorsplit("rule", "ts304").out.endswith("\n\nhttps://docs.test/errors.html#ts304\n")


def test_the_page_of_a_check_as_json(tensorsplit: Command) -> None:
    page = json.loads(tensorsplit("rule", "TS825", "--format", "json").out)
    assert (page["code"], page["severity"]) == ("TS825", "note")
    assert [note["name"] for note in page["decisions"]] == ["D1", "D3", "D6"]


def test_the_pages_of_several_codes_follow_each_other(tensorsplit: Command) -> None:
    codes = ("TS825", "ts304")
    text = tensorsplit("rule", *codes).out
    assert text == "\n".join(tensorsplit("rule", code).out for code in codes)
    read = json.loads(tensorsplit("rule", *codes, "--format", "json").out)
    assert read == [json.loads(tensorsplit("rule", code, "--format", "json").out) for code in codes]
    markdown = tensorsplit("rule", *codes, "--format", "markdown").out
    assert [line for line in markdown.splitlines() if line.startswith("#")] == [
        "### TS825",
        "### TS304",
    ]
    assert "\n\n### TS304\n" in markdown


def test_the_list_as_json_has_the_page_of_every_code(tensorsplit: Command) -> None:
    pages = json.loads(tensorsplit("rule", "--format", "json").out)
    assert [page["code"] for page in pages] == [*KINDS, *CHECKS]


def test_the_list_has_every_code(tensorsplit: Command) -> None:
    lines = tensorsplit("rule").out.splitlines()
    assert [line.split()[0] for line in lines if line.startswith("TS")] == [*KINDS, *CHECKS]


def test_what_is_no_code(refused: Callable[..., str]) -> None:
    assert "'TS1' is not a code" in refused("TS703", "rule", "TS1")


def test_the_documentation_is_what_the_command_prints(tensorsplit: Command) -> None:
    page = PAGE.read_text("utf-8")
    assert page == codes_page(), "run python scripts/pages.py docs"
    assert tensorsplit("rule", "TS304", "--format", "markdown").out in page
    for code in (*KINDS, *CHECKS):
        assert f"\n### {code}\n" in page
