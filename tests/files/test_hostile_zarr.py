"""Zarr stores that lie are refused by name, in little memory, and nothing but that is printed."""

from __future__ import annotations

import contextlib
import gzip
import json
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

import tensorsplit as ts
from tests.interpreters import python

zarr_stores = pytest.importorskip("tensorsplit.files.zarr_stores")

ARRAYS: dict[int, dict[str, Any]] = {
    2: {"zarr_format": 2, "shape": [8], "chunks": [4], "dtype": "<f4", "order": "C"}
    | dict.fromkeys(("compressor", "filters", "fill_value")),
    3: {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [8],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"},
        "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    },
}
GROUPS = {2: {"zarr_format": 2}, 3: {"zarr_format": 3, "node_type": "group"}}
MANY = (1 << 18) + 1  # more values than are parsed

Maker = Callable[[Path], object]


def node(path: Path, kind: dict[int, Any], version: int, attributes: str = "{}") -> None:
    """An array or group, of which nothing but its documents is there."""
    path.mkdir(parents=True, exist_ok=True)
    if version == 3:
        text = json.dumps(kind[3] | {"attributes": "here"}).replace('"here"', attributes)
        (path / "zarr.json").write_text(text)
    else:
        name = ".zarray" if kind is ARRAYS else ".zgroup"
        (path / name).write_text(json.dumps(kind[2]))
        (path / ".zattrs").write_text(attributes)


def group(path: Path, *names: str, version: int = 3) -> None:
    node(path, GROUPS, version)
    for name in names:
        node(path / name, ARRAYS, version)


def consolidated(path: Path) -> None:
    group(path, "x")
    held = ",".join(f'"a{number}":{{}}' for number in range(MANY // 2))
    more = f'"consolidated_metadata":{{"metadata":{{{held}}}}}'
    (path / "zarr.json").write_text(json.dumps(GROUPS[3])[:-1] + f",{more}}}")


def crowded(path: Path) -> None:
    group(path)
    for number in range((1 << 12) + 1):
        (path / f"x{number}").mkdir()


def linked(path: Path, target: str | Path) -> None:
    group(path, *(f"y{number}" for number in range(20)))
    (path / "link").symlink_to(target)


def circular(path: Path) -> None:
    node(path, ARRAYS, 2)
    (path / "1").symlink_to("1")


def spoiled(path: Path) -> None:
    group(path, *(f"y{number}" for number in range(20)))
    for name in ("y3", "y7"):
        (path / name / "zarr.json").write_text("nope")


def both(path: Path) -> None:
    group(path, "x")
    node(path, GROUPS, 2)
    node(path / "y", ARRAYS, 2)


def coded(path: Path) -> None:
    packed = {"name": "gzip", "configuration": {"level": 1}}
    codecs = [*ARRAYS[3]["codecs"], *[packed] * 50_000]
    node(path, {3: ARRAYS[3] | {"codecs": codecs}}, 3)


def chunk(path: Path, version: int, octets: bytes) -> None:
    node(path, ARRAYS, version)
    place = path / ("0" if version == 2 else "c/0")
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(octets)


def nested(path: Path, groups: int) -> None:
    """Groups below the first: looking up each takes as many steps as it is deep, at least."""
    for _ in range(groups + 1):
        node(path, GROUPS, 3)
        path /= "g"
    node(path, ARRAYS, 3)


def of_version_2(path: Path, **changes: Any) -> None:
    path.mkdir()
    (path / ".zarray").write_text(json.dumps(ARRAYS[2] | changes))
    (path / "0").write_bytes(bytes(16))


def pickled(path: Path, **codecs: Any) -> None:
    """Strings whose codec zarr knows, so that it takes another one that runs code beside it."""
    strings = {"dtype": "|O", "fill_value": "", "filters": [STRINGS]}
    of_version_2(path, **strings | codecs)


def sharded(path: Path) -> None:
    """An array whose shard is to hold a chunk at the end of all 64-bit numbers."""
    inner = {"chunk_shape": [4], "codecs": ARRAYS[3]["codecs"], "index_codecs": ARRAYS[3]["codecs"]}
    codecs = [{"name": "sharding_indexed", "configuration": inner | {"index_location": "end"}}]
    grid = {"name": "regular", "configuration": {"chunk_shape": [8]}}
    node(path, {3: ARRAYS[3] | {"codecs": codecs, "chunk_grid": grid}}, 3)
    (path / "c").mkdir()
    (path / "c/0").write_bytes(struct.pack("<16x4Q", 2**64 - 8, 16, 0, 16))


STRINGS = {"id": "vlen-utf8"}
DELTA = {"id": "delta", "dtype": "<f4"}
PICKLES = {"id": "pickle", "protocol": 5}
ATTRIBUTES = {
    "long": ("TS716", f'{{"a":"{"x" * (11 << 20)}"}}'),
    "many": ("TS716", f'{{"a":[{",".join(["[]"] * MANY)}]}}'),
    "deep": ("TS705", f'{{"a":{"[" * 99999}{"]" * 99999}}}'),
    "list": ("TS705", "[1]"),
    "wide": ("right", f'{{"a":"\U0001f600{"x" * (9 << 20)}"}}'),  # four bytes for each letter
}
STORES: dict[str, tuple[str, Maker]] = {
    "arrays": ("TS716", crowded),
    "consolidated": ("TS716", consolidated),
    "loop": ("TS705", lambda path: linked(path, "..")),
    "itself": ("TS705", lambda path: linked(path, "link")),
    "outside": ("TS705", lambda path: linked(path, "/usr")),
    "circular": ("TS705", circular),
    "spoiled": ("TS705", spoiled),
    "both": ("right", both),
    "short 2": ("TS705", lambda path: chunk(path, 2, b"abc")),
    "short 3": ("TS705", lambda path: chunk(path, 3, b"abc")),
    "long 2": ("TS705", lambda path: chunk(path, 2, bytes(17))),
    "long 3": ("TS705", lambda path: chunk(path, 3, bytes(17))),
    "whole 2": ("right", lambda path: chunk(path, 2, bytes(16))),
    "whole 3": ("right", lambda path: chunk(path, 3, bytes(16))),
    "coded": ("TS705", coded),
    "filtered": ("TS705", lambda path: of_version_2(path, filters=[DELTA] * 50_000)),
    "nested": ("right", lambda path: nested(path, 64)),
    "too nested": ("TS716", lambda path: nested(path, 65)),
    "pickled by a filter": ("TS705", lambda path: pickled(path, filters=[STRINGS, PICKLES])),
    "pickled as a whole": ("TS705", lambda path: pickled(path, compressor=PICKLES)),
    "sharded": ("TS705", sharded),
    "heavy": ("TS705", lambda path: of_version_2(path, dtype="|V1000000000")),
}

SPLIT = """
import pathlib, re, shutil, sys
import tensorsplit as ts
for url in sys.argv[2:]:
    try:
        ts.files.split(url, sys.argv[1], num_outputs=2)
        print("right", end=" ")
        shutil.rmtree(sys.argv[1])
    except ts.SplitError as error:
        print(error.code, end=" ")
print(re.search("VmHWM:[^0-9]*([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1])
"""


def outcome(*sources: object, target: Path) -> list[str]:
    """What is said of each source; nothing is printed beside, left behind, or large in memory."""
    done = python(SPLIT, target, *sources)
    assert (done.stderr, done.returncode) == ("", 0)
    assert not list(target.parent.glob(".tensorsplit*"))
    *said, memory = done.stdout.split()
    assert int(memory) < 300_000  # kilobytes
    return said


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it says how much was taken")


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("is_array", [True, False])
def test_attributes(tmp_path: Path, version: int, is_array: bool) -> None:
    for name, (_, text) in ATTRIBUTES.items():
        path = tmp_path / f"{name}.zarr"
        node(path, ARRAYS if is_array else GROUPS, version, text)
        if not is_array:
            node(path / "x", ARRAYS, version)
    sources = [tmp_path / f"{name}.zarr" for name in ATTRIBUTES]
    wanted = [code for code, _ in ATTRIBUTES.values()]
    assert outcome(*sources, target=tmp_path / "out.zarr") == wanted


def test_what_groups_hold(tmp_path: Path) -> None:
    for name, (_, make) in STORES.items():
        make(tmp_path / f"{name}.zarr")
    sources = [tmp_path / f"{name}.zarr" for name in STORES]
    wanted = [code for code, _ in STORES.values()]
    assert outcome(*sources, target=tmp_path / "out.zarr") == wanted


def test_no_other_thread_writes_what_describes_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write into a draft that is gone, after Ctrl-C."""

    def failing(awaited: Any) -> None:
        awaited.close()
        raise AssertionError("zarr's thread is asked to write")

    both(tmp_path / "both.zarr")
    monkeypatch.setattr(zarr_stores, "sync", failing)
    ts.files.split(tmp_path / "both.zarr", tmp_path / "out.zarr", num_outputs=2)
    assert (tmp_path / "out.zarr").is_dir()


def test_arrays_of_either_version_are_found(tmp_path: Path) -> None:
    both(tmp_path / "both.zarr")
    ts.files.split(tmp_path / "both.zarr", tmp_path / "out.zarr", num_outputs=2)
    found = {path.parent.name for path in (tmp_path / "out.zarr").glob("*/*z*arr*")}
    assert found == {"x.0", "x.1", "y.0", "y.1"}


class _Server(BaseHTTPRequestHandler):
    """Answers that have no end, or grow as they are unpacked."""

    protocol_version = "HTTP/1.1"
    bomb = b""
    array = json.dumps(ARRAYS[2]).encode()
    both = json.dumps(GROUPS[3])[:-1].encode() + b', "attributes": {"node_type": "array"}}'
    asked: ClassVar[list[str]] = []
    failing = ("", 0)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_HEAD(self) -> None:
        """Answer as to GET."""
        self.do_GET()

    def answer_in_brief(self, status: int, **headers: str) -> None:
        """Answer without a body."""
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def answer_slowly(self, size: int) -> None:
        """Answer with a byte now and then."""
        self.send_response(200)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        with contextlib.suppress(OSError):
            for _ in range(100):
                self.wfile.write(b" ")
                time.sleep(0.1)

    def do_GET(self) -> None:
        """Answer by the name of the store, and the key in there."""
        answers: dict[str, bytes] = {
            "right/.zarray": self.array,
            "right/0": b"abcdefghijklmnop",
            "endless/.zarray": self.array,
            "endless/.zattrs": b"[],",
            "packed/.zarray": self.array,
            "packed/.zattrs": self.bomb,
            "chunk/.zarray": self.array,
            "chunk/1": b"zero",
            "listing/.zgroup": json.dumps(GROUPS[2]).encode(),
            "listing/": b'<a href="a">',
            "group/.zgroup": json.dumps(GROUPS[2]).encode(),
            "group/": b'<a href="x/">x</a><a href="../">up</a>',
            "group/x/.zarray": self.array,
            "lost/.zarray": self.array,
            "new/zarr.json": self.both,
            "new/.zgroup": json.dumps(GROUPS[2]).encode(),
            "new/": b'<a href="x/">x</a>',
            "new/x/zarr.json": json.dumps(ARRAYS[3]).encode(),
            "fan/zarr.json": json.dumps(GROUPS[3]).encode(),
            "fan/": b'<a href="a/">a</a><a href="b/">b</a><a href="old/">old</a>',
            "fan/a/zarr.json": json.dumps(GROUPS[3]).encode(),
            "fan/a": b'<a href="x/">x</a>',
            "fan/a/x/zarr.json": json.dumps(ARRAYS[3]).encode(),
            "fan/b/zarr.json": json.dumps(GROUPS[3]).encode(),
            "fan/b": b"",
            "fan/old/.zarray": self.array,
        }
        self.asked.append(self.path)
        store, _, _ = self.path.lstrip("/").partition("/")
        if store == "silent":
            time.sleep(1)
        if store in ("slow", "long"):
            self.answer_slowly({"slow": 1 << 10, "long": 1 << 60}[store])
            return
        if place := {"circle": self.path, "astray": "file:///etc/passwd"}.get(store):
            self.answer_in_brief(302, Location=place)
            return
        failing = {"/lost/0": 500, **dict([self.failing])}
        if status := 403 if store == "locked" else failing.get(self.path.rstrip("/")):
            self.answer_in_brief(status)
            return
        is_there = self.path.lstrip("/") in answers
        answer = answers.get(self.path.lstrip("/"), b"")
        is_endless = answer in (b"[],", b"zero", b'<a href="a">')
        self.send_response(200 if is_there else 404)
        if is_endless:
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.send_header("Content-Length", str(len(answer)))
        if answer is self.bomb:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        if self.command == "HEAD":
            return
        if not is_endless:
            self.wfile.write(answer)
            return
        with contextlib.suppress(OSError):
            piece = answer * (1 << 14)
            while True:
                self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Print nothing of a client that has gone, which another test would find."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(_Server, "bomb", gzip.compress(b"[" + b" " * (200 << 20), 9))
    server = _Quiet(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_servers(address: str, tmp_path: Path) -> None:
    pytest.importorskip("aiohttp")
    wanted = {
        "right": "right",
        "endless": "TS716",
        "packed": "TS716",
        "chunk": "TS705",
        "listing": "TS716",
        "group": "right",
        "nothing": "TS705",
    }
    sources = [f"{address}/{name}" for name in wanted]
    assert outcome(*sources, target=tmp_path / "out.zarr") == list(wanted.values())


def test_what_describes_arrays_of_version_2_is_not_asked_for_in_version_3(
    address: str, tmp_path: Path
) -> None:
    """Each request takes as long as the way to the server; groups may be of both versions."""
    pytest.importorskip("aiohttp")
    _Server.asked.clear()
    ts.files.split(f"{address}/new", tmp_path / "out.zarr", num_outputs=2)
    asked = {each.rpartition("/")[2] for each in _Server.asked if each.startswith("/new/x/")}
    assert {name for name in asked if name.startswith((".", "zarr"))} == {"zarr.json"}
    assert (tmp_path / "out.zarr" / ".zgroup").is_file()
    assert (tmp_path / "out.zarr" / "x.0" / "zarr.json").is_file()


def test_what_describes_an_array_is_asked_for_again_once_and_nothing_else_is(
    address: str, tmp_path: Path
) -> None:
    """Each of several threads would ask for all names that a document may have."""
    pytest.importorskip("aiohttp")
    _Server.asked.clear()
    ts.files.split(f"{address}/right", tmp_path / "out", num_outputs=2)
    documents = {"zarr.json": 1, ".zgroup": 1, ".zattrs": 1, ".zarray": 2}
    assert Counter(each.rpartition("/")[2] for each in _Server.asked) == documents | {
        "0": 1,
        "1": 1,
    }


def test_documents_of_version_2_are_not_asked_for_in_groups_without_any(
    address: str, tmp_path: Path
) -> None:
    """Each of thousands of groups would be asked for three, and the same number is not there."""
    pytest.importorskip("aiohttp")
    _Server.asked.clear()
    ts.files.split(f"{address}/fan", tmp_path / "out.zarr", num_outputs=2)
    below = {each for each in _Server.asked if each.startswith(("/fan/a/", "/fan/b/"))}
    documents = {each for each in below if "zarr" in each or "/." in each}
    assert documents == {f"/fan/{path}/zarr.json" for path in ("a", "a/x", "b")}
    found = {path.parent.name for path in (tmp_path / "out.zarr").rglob("*z*arr*")}
    assert found >= {"x.0", "x.1", "old.0", "old.1"}  # where nothing of version 3 is


@pytest.mark.parametrize(
    ("failing", "status", "said"),
    [
        ("b/zarr.json", 500, ": its server answers 500 Internal Server Error"),
        ("b", 500, ": its server answers 500 Internal Server Error"),
        ("b", 404, " does not list what it holds"),
    ],
)
def test_the_group_that_a_server_does_not_give_is_named(
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    status: int,
    said: str,
) -> None:
    """Several are asked for at the same time."""
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(_Server, "failing", (f"/fan/{failing}", status))
    with pytest.raises(ts.SplitError) as caught:
        ts.files.split(f"{address}/fan", tmp_path / "out.zarr", num_outputs=2)
    wanted = f"'{address}/fan/{failing}'{said}"
    assert (caught.value.code, caught.value.problem) == ("TS705", wanted)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("circle", "its server redirects again and again"),
        ("astray", "its server redirects to 'file:///etc/passwd', which can't be read"),
        ("locked", "its server answers 403 Forbidden"),
        ("lost", "its server answers 500 Internal Server Error"),
        ("silent", "its server does not answer"),
    ],
)
def test_what_a_server_did_is_said(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    pytest.importorskip("aiohttp")
    impatient = partial(zarr_stores._bounded_client)  # no client of other tests is taken for it
    monkeypatch.setattr(zarr_stores, "_bounded_client", impatient)
    monkeypatch.setattr(zarr_stores, "_SECONDS_WITHOUT_ANSWER", 0.2)
    with pytest.raises(ts.SplitError) as caught:
        ts.files.split(f"{address}/{name}", tmp_path / "out.zarr", num_outputs=2)
    assert (caught.value.code, caught.value.fix) == ("TS705", "check the URL and its server")
    assert caught.value.problem.endswith(said)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("slow", "TS705: '{}/slow/zarr.json': its server does not answer in 1 seconds"),
        ("long", "TS716: '{}/long' is described in more than 10485760 bytes"),
    ],
)
def test_a_server_that_has_much_to_say_or_says_it_slowly(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
) -> None:
    pytest.importorskip("aiohttp")
    monkeypatch.setattr(zarr_stores, "_SECONDS_TO_BEGIN", 1)
    monkeypatch.setattr(zarr_stores, "_BYTES_A_SECOND", 1 << 40)
    begin = time.monotonic()
    with pytest.raises(ts.SplitError) as caught:
        ts.files.split(f"{address}/{name}", tmp_path / "out.zarr", num_outputs=2)
    assert f"{caught.value.code}: {caught.value.problem}" == said.format(address)
    assert time.monotonic() - begin < 8
