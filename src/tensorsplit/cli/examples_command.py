"""``tensorsplit examples``: the models and data that the documentation uses."""

from __future__ import annotations

from pathlib import Path

import click

import tensorsplit
from tensorsplit.cli.files import WritingCommand, outputs, write_files
from tensorsplit.cli.screen import examples as shown_examples
from tensorsplit.cli.screen import say
from tensorsplit.core.errors import UNWRITABLE, SplitError, count_of


@click.command(cls=WritingCommand, epilog=shown_examples("examples", "examples demo/models"))
@click.argument("folder", type=click.Path(path_type=Path), default="examples")
def examples(*, folder: Path) -> None:
    """Write the models and data that the documentation uses into a folder.

    FOLDER is `examples` if it is not given. Files that are there with the same content stay.
    """
    found = sorted(
        path for path in _home().iterdir() if path.is_file()
    )  # pip compiles into a folder
    files = {folder / path.name: path.read_bytes() for path in found}
    for target, content in files.items():
        if target.exists() and not (target.is_file() and target.read_bytes() == content):
            raise SplitError(
                UNWRITABLE,
                f"{target} is there, with other content",
                "remove it, or give another FOLDER",
                parameter="folder",
            )
    outputs().folders.append(folder)
    write_files(files)
    say(f"{folder}: {count_of(len(files), 'file')}")


def _home() -> Path:
    """Return the folder of the examples: in the package, or beside its source."""
    package = Path(tensorsplit.__file__).parent
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"
