"""JSON files that are read: refused with what is wrong, whatever is in them or in their place."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tensorsplit.storage import documents
from tests.refusals import refused

needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes here")


def read(path: Path) -> Any:
    return documents.read_json(path, what="is none", fix="give one", parameter="known")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "content", [{}, {"a": [1, -2.5, None, True]}, [], {"\N{SNOWMAN}\U0001f600": "\\ud800"}]
)
def test_what_is_json(tmp_path: Path, content: Any, compressed: bool) -> None:
    octets = json.dumps(content).encode()
    (tmp_path / "f").write_bytes(gzip.compress(octets) if compressed else octets)
    assert read(tmp_path / "f") == content


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "it is empty"),
        (b" \n", "it is empty"),
        (b"{", "line 1 column 2"),
        (b"[" * 100_000, "nested too deep"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"),
        (b'{"a": 1, "a": 2}', "'a' is twice"),
        (b'[{"b": {"a": 1, "c": 3, "a": 1}}]', "'a' is twice"),
        (b"[NaN]", "NaN is not a number"),
        (b"[-Infinity]", "-Infinity is not a number"),
        (b"[" + b"9" * 5000 + b"]", "4300"),
        (b"\xff\xfe[\x00", "utf-8"),
        (b'["\\ud800"]', "surrogates"),
        (b'{"\\uDFFF": 1}', "surrogates"),
        (gzip.compress(b"[]", mtime=0)[:-9], "cut short"),
        (gzip.compress(b"[]", mtime=0)[:5] + b"x" * 30, ""),
        (gzip.compress(bytes(1 << 10), mtime=0), "Expecting value"),
    ],
)
def test_what_is_no_json(tmp_path: Path, content: bytes, word: str) -> None:
    (tmp_path / "f").write_bytes(content)
    with refused("TS703", str(tmp_path / "f"), "is none", word, "give one", parameter="known"):
        read(tmp_path / "f")


def test_a_name_that_is_twice_among_very_many(tmp_path: Path) -> None:
    """Counting each name among all of them would take hours."""
    names = ", ".join(f'"{place % 400_000}": 0' for place in range(400_001))
    test_what_is_no_json(tmp_path, f"{{{names}}}".encode(), "'0' is twice")


@pytest.mark.parametrize("is_compressed", [False, True])
def test_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compressed: bool) -> None:
    monkeypatch.setattr(documents, "_MOST_BYTES", 1000)
    (tmp_path / "f").write_bytes(gzip.compress(b" " * 2000) if is_compressed else b" " * 2000)
    with refused("TS703", "more than 1000 bytes", parameter="known"):
        read(tmp_path / "f")


@needs_pipes
@pytest.mark.parametrize("kind", ["file", "compressed", "pipe"])
@pytest.mark.parametrize(("size", "is_refused"), [(1000, False), (1001, True)])
def test_as_much_as_may_be_and_a_byte_more(
    tmp_path: Path, kind: str, size: int, is_refused: bool
) -> None:
    path, content = tmp_path / "f", b"[1]".ljust(size)
    writer = threading.Thread(target=path.write_bytes, args=(content,))
    if kind == "pipe":
        os.mkfifo(path)
        writer.start()
    else:
        path.write_bytes(gzip.compress(content) if kind == "compressed" else content)
    how: Any = {"what": "is none", "fix": "give one", "parameter": "known", "most": 1000}
    if is_refused:
        with refused("TS703", "more than 1000 bytes"):
            documents.read_json(path, **how)
    else:
        assert documents.read_json(path, **how) == [1]
    if kind == "pipe":
        writer.join()


def test_a_mark_of_the_byte_order_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf[1]")
    assert read(tmp_path / "f") == [1]


def test_what_is_no_file(tmp_path: Path) -> None:
    with refused("TS703", "No such file", parameter="known"):
        read(tmp_path / "missing")
    with refused("TS703", "", parameter="known"):
        read(tmp_path)
    with refused("TS703", "", parameter="known"):
        read(tmp_path / "a\0b")


@needs_pipes
def test_what_is_never_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_SECONDS", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with refused("TS703", "nobody writes to this pipe", parameter="known"):
        read(tmp_path / "pipe")
    with refused("TS703", "it is a device", parameter="known"):
        read(Path(os.devnull))


@needs_pipes
def test_a_pipe_that_is_written_to_in_pieces(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = json.dumps(list(range(100_000))).encode()
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(content,))
    writer.start()
    assert read(tmp_path / "pipe") == list(range(100_000))
    writer.join()


@needs_pipes
def test_process_substitution() -> None:
    code = "import sys; from tests.storage.test_documents import *; print(read(Path(sys.argv[1])))"
    command = f"\"$0\" -c '{code}' <(sleep 0.3; echo '[1,'; sleep 0.3; echo '2]')"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        ["bash", "-c", command, sys.executable],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
    )
    assert done.stdout == "[1, 2]\n"


@pytest.mark.parametrize(
    ("octets", "kind"),
    [
        (b"", ""),
        (b"a\tline\r\nand another", "text"),
        (b"a line\x00", ""),
        (b"a line\xff", ""),
        (b"1234TFL3", "a TFLite model"),
        (b"12345TFL3", "text"),
        (b"PK\x03\x04TFL3", "a ZIP archive, as .npz, .pt and .keras files are"),
        (b"<?xml", "XML; the name of an OpenVINO IR ends in .xml"),
        (bytes(9), ""),
    ],
)
def test_what_a_file_looks_like(octets: bytes, kind: str) -> None:
    assert documents.likeness(octets) == kind
