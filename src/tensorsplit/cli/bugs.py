"""Bugs of this package: what is one, and the report of it."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from tensorsplit import __version__, native
from tensorsplit.core.errors import printable

_PACKAGES = (
    *("numpy", "ml-dtypes", "onnx", "onnx-ir", "protobuf", "msgspec", "click", "rich"),
    *("onnxruntime", "openvino"),
)
_READERS = ("google", "onnx", "onnx_ir")
"""What reads models, and may raise whatever it likes for one that is malformed."""

_LONGEST_LINE = 300


def library_at_fault(error: BaseException) -> str:
    """Return the library that raised an error about a model; empty for a bug of this package."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    modules = [str(frame.f_globals.get("__name__", "")) for frame in frames]
    roots = [module.partition(".")[0] for module in modules]
    others = [root for root in roots if root not in sys.stdlib_module_names]
    for root in (type(error).__module__.partition(".")[0], *others[-1:]):
        if root in _READERS:
            return root
    return ""


def report_of(error: BaseException) -> str:
    """Return the report of a bug: what it takes to find it, and no data but names and messages."""
    lines = [
        f"A bug in tensorsplit {__version__}: {type(error).__name__}: {error}",
        "",
        f"python: {sys.version}",
        f"platform: {platform.platform()}",
        f"copies: {native.refused or native.in_use}",
        *(f"{name}: {version}" for name, version in _versions()),
        f"command: tensorsplit {shlex.join(sys.argv[1:])}",
        "",
        *"".join(traceback.format_exception(error)).splitlines(),
    ]
    return "".join(f"{printable(line)[:_LONGEST_LINE]}\n" for line in lines)


def save_report(text: str) -> Path | None:
    """Write a report to a new file among the temporary ones, whole; None if that can't be done."""
    draft = ""
    try:
        number, draft = tempfile.mkstemp(".part", "tensorsplit-bug-")
        with open(number, "w", encoding="utf-8") as file:  # noqa: PTH123 - open already
            file.write(text)
        path = Path(draft).with_suffix(".txt")
        os.link(draft, path)  # which never replaces a file
    except OSError:
        path = None
    if draft:
        with contextlib.suppress(OSError):
            Path(draft).unlink()
    return path


def _versions() -> Iterator[tuple[str, str]]:
    for name in _PACKAGES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            yield name, "not installed"
