"""The libraries that are optional: which extra brings each, and what to say where one is missing.

NumPy is the only library that is always there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

from tensorsplit.core.errors import EXTRA_MISSING, LIBRARY, SplitError

NAME = "tensorsplit"

EXTRAS = {
    "models": ("defusedxml", "ml_dtypes", "msgspec", "onnx", "onnx_ir", "packaging"),
    "cli": ("click", "platformdirs", "rich"),
    "files": ("distributed", "fsspec", "safetensors", "zarr"),
    "report": ("jinja2",),
    "onnxruntime": ("onnxruntime",),
    "openvino": ("openvino",),
    "torch": ("torch",),
}
"""What each extra brings that this package imports, by the names of the modules."""

_BROUGHT = {
    **{module: extra for extra, modules in EXTRAS.items() for module in modules},
    **dict.fromkeys(("google", "sympy"), "models"),  # by onnx, and by onnx-ir
    **dict.fromkeys(("dask", "numcodecs"), "files"),  # by distributed, and by zarr
}


def install_command(extra: str) -> str:
    """Return the command that adds an extra to this installation.

    It names the package as this one was installed: a checkout or a wheel by its path, a repository
    by its address, and what came from a package index by its name.

    Example:
        >>> install_command("files")
        "pip install '/home/me/tensorsplit[files]'"
    """
    import shlex

    option, source, address = _origin()
    quoted = shlex.quote(f"{source}[{extra}]{address}")
    return f"pip install {option}{quoted}"


@cache
def _origin() -> tuple[str, str, str]:
    """Return pip's option for an editable installation, and what goes before and after an extra."""
    import json
    from importlib import metadata

    try:
        text = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return _beside(Path(__file__).parents[3])
    return _recorded(json.loads(text)) if text else ("", NAME, "")


def _beside(folder: Path) -> tuple[str, str, str]:
    """Return the origin of a package that is not installed but imported from its checkout."""
    is_checkout = (folder / "pyproject.toml").is_file() and (folder / "src" / NAME).is_dir()
    return ("-e ", str(folder), "") if is_checkout else ("", NAME, "")


def _recorded(record: dict[str, Any]) -> tuple[str, str, str]:
    """Return the origin that an installer recorded (PEP 610); the name where it is gone."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    url = str(record["url"])
    repository = record.get("vcs_info")
    if repository:
        return "", NAME, f" @ {repository['vcs']}+{url}@{repository['commit_id']}"
    parts = urlsplit(url)
    if parts.scheme != "file":
        return "", NAME, f" @ {url}"
    path = Path(url2pathname(parts.path))
    if not path.exists():
        return "", NAME, ""
    is_editable = record.get("dir_info", {}).get("editable", False)
    return "-e " if is_editable else "", str(path), ""


def import_refusal(error: ImportError, extra: str = "") -> SplitError | None:
    """Return the refusal for a library that can't be imported; None for modules of this package.

    Args:
        error: The failure.
        extra: The extra that is missing, where several bring the library.

    Returns:
        TS711, with the command that installs the extra, for a library that is not installed; TS704
        for one that is installed and can't be imported.
    """
    module = error.name or ""
    root = module.partition(".")[0]
    if root in ("", NAME):
        return None
    extra = extra or _BROUGHT.get(root, "")
    if isinstance(error, ModuleNotFoundError) and module == root and extra:
        return SplitError(EXTRA_MISSING, f"{root} is not installed", install_command(extra))
    return SplitError(LIBRARY, f"{root} can't be imported: {error}")


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Refuse with `import_refusal` where a library is missing that the block imports.

    Args:
        extra: The extra that brings the library.

    Raises:
        SplitError: TS711 if it is not installed, TS704 if it can't be imported.
    """
    try:
        yield
    except ImportError as error:
        refusal = import_refusal(error, extra)
        if refusal is None:
            raise
        raise refusal from None


def stand_in(name: str, refusal: SplitError) -> Callable[..., object]:
    """Return a function that refuses every call, for one whose module can't be loaded."""

    def call(*_: object, **__: object) -> Any:
        raise copy(refusal)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Can't be called here: {refusal.problem}; {refusal.fix}."
    return call
