"""``tensorsplit examples``: the models and data that the documentation uses."""

from __future__ import annotations

from pathlib import Path

import click

import tensorsplit
from tensorsplit.cli.files import FOLDER, WritingCommand, write_files
from tensorsplit.cli.screen import examples as shown_examples
from tensorsplit.cli.screen import say
from tensorsplit.cli.sentences import amount
from tensorsplit.storage.drafts import sweep


@click.command(cls=WritingCommand, epilog=shown_examples("examples", "examples demo/models"))
@click.argument("folder", type=FOLDER, default="examples")
def examples(*, folder: Path) -> None:
    """Write the models and data that the documentation uses into a folder.

    FOLDER is `examples` if it is not given. Files that are there with the same content stay.
    """
    found = [path for path in _home().iterdir() if path.is_file()]  # pip compiles into a folder
    files = {folder / path.name: path.read_bytes() for path in sorted(found)}
    missing = {path: content for path, content in files.items() if not _holds(path, content)}
    write_files(missing)
    sweep(folder)  # what a run left that was killed when all were there
    say(f"{folder}: {amount(len(files), 'file')}")


def _holds(path: Path, content: bytes) -> bool:
    """Return whether a file is there with this content; OSError that names it."""
    try:
        return path.is_file() and path.read_bytes() == content
    except OSError as error:  # the system says of no descriptor which file it is
        raise OSError(error.errno, error.strerror, str(path)) from None


def _home() -> Path:
    """Return the folder of the examples: in the package, or beside its source."""
    package = Path(tensorsplit.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"
