"""The settings of ``check`` in ``[tool.tensorsplit]`` of ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec

from tensorsplit.core.errors import USAGE, SplitError


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, rename={"target": "for"}):
    """The table; all of it is optional.

    Attributes:
        target: The engine that ``--for`` names, or a profile beside the file; written ``for``.
        ignore: Codes that are not reported, as by ``--ignore``.
        strict: Whether warnings count as errors.
    """

    target: str | None = None
    ignore: tuple[str, ...] = ()
    strict: bool = False


def read_settings() -> Settings:
    """Read the table of the nearest file above the current folder; TS703 if it is wrong."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        return Settings()
    for path in (each / "pyproject.toml" for each in (folder, *folder.parents)):
        if not path.is_file():
            continue
        try:
            tables = tomllib.loads(path.read_text("utf-8")).get("tool", {})
            if "tensorsplit" in tables:
                found = msgspec.convert(tables["tensorsplit"], Settings)
                if found.target is None or not found.target.endswith(".json"):
                    return found
                return msgspec.structs.replace(found, target=str(path.parent / found.target))
        except (OSError, ValueError, TypeError, msgspec.MsgspecError) as error:
            fix = "[tool.tensorsplit] may have for = 'ENGINE', ignore = ['CODE'], strict = true"
            raise SplitError(USAGE, f"{path}: {error}", fix) from None
    return Settings()
