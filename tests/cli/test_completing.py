"""What shells offer for a word that is begun, by the protocol of their completion scripts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.shell_completion import BashComplete

from tensorsplit.cli import main, words
from tensorsplit.cli.files import outputs
from tensorsplit.model import profiles
from tests.cli.conftest import process


def offered(*words: str) -> list[str]:
    """What is offered for the last word; ``FILE`` stands for the names of files."""
    completing = BashComplete(main, {}, "tensorsplit", "_TENSORSPLIT_COMPLETE")
    found = completing.get_completions(list(words[:-1]), words[-1])
    return ["FILE" if item.type == "file" else item.value for item in found]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("che", ["check"]),
        ("check ", ["FILE"]),
        ("doc", ["doctor"]),
        ("doctor m.onnx --format j", ["json"]),
        (
            "check m.onnx --for on",
            ["FILE", "onnx-reference", "onnx2torch", "onnxruntime", "onnxruntime-web"],
        ),
        ("check m.onnx --format g", ["github"]),
        ("check --ignore TS82", [f"TS82{number}" for number in range(1, 10)]),
        ("lower --for port", ["FILE", "portable"]),
        ("convert m.onnx --verify --engine onnx-", ["onnx-reference"]),
        ("run m.onnx --engine a", ["auto"]),
        ("run m.onnx --compare op", ["openvino"]),
        ("explain onnx.Split-1", ["FILE", *(f"onnx.Split-{number}" for number in (1, 11, 13, 18))]),
        ("ops openvino.S", ["openvino.Split-1"]),
        ("diff onnx.Split-2 SplitTo", ["SplitToSequence"]),
        ("rule TS51", ["TS510", "TS511", "TS512", "TS513", "TS514"]),
        ("bench att", ["attention"]),
        ("bench --peer num", ["numpy"]),
        ("conformance --engine al", ["FILE", "all"]),
    ],
)
def test_what_is_offered(words: str, wanted: list[str]) -> None:
    assert offered(*words.split(" ")) == wanted


@pytest.mark.parametrize(
    ("shell", "word", "wanted"),
    [
        ("bash", "2", "plain,TS304\n"),
        ("zsh", "2", "plain\nTS304\n_\n"),
        ("fish", "TS304", "plain,TS304\n"),
    ],
)
def test_the_scripts_ask_the_command(shell: str, word: str, wanted: str) -> None:
    variables = {"COMP_WORDS": "tensorsplit rule TS304", "COMP_CWORD": word}
    ended = process(env={"_TENSORSPLIT_COMPLETE": f"{shell}_complete", **variables})
    assert ended == (0, wanted, "")


def test_a_file_that_a_word_names_is_read() -> None:
    """So no output may be it; other words and files of other kinds name none."""
    with click.Context(main).scope():
        for word in ("openvino", "mine.json", "mine.toml", "json"):
            assert words.TARGET.convert(word) == word
        assert words.ENGINE.convert("numpy") == "tensorsplit"
        assert words.ENGINE.convert("mine.json") == "mine.json"
        assert outputs().reads == [Path("mine.json")]


def test_what_is_remarked_of_several_targets_is_said_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remarks = {"a": ["old", "slow"], "b": ["slow", "new"]}
    monkeypatch.setattr(profiles, "load", lambda target: SimpleNamespace(remarks=remarks[target]))
    words.note_remarks(["a", "b", "a"])
    said = [f"tensorsplit: {word}" for word in ("old", "slow", "new")]
    assert capsys.readouterr().err.splitlines() == said
