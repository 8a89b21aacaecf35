"""Brings the translations of the help up to date: `python scripts/messages.py`.

A text that has changed loses its translation. Both files of a catalogue are written: the .po, to be
edited, and the .mo, which gettext reads. Needs Babel, which Sphinx brings.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from tensorsplit.cli.app import COMMANDS, main
from tensorsplit.cli.language import CATALOGUES, DOMAIN, WORDS, paragraphs


def help_texts() -> Iterator[str]:
    """Yield each text of the help that is translated, as its paragraphs."""
    yield from WORDS
    context = click.Context(main)
    commands = filter(None, (main.get_command(context, name) for name in COMMANDS))
    for command in (main, *commands):
        yield from paragraphs(command.help or "")
        for parameter in command.params:
            yield from paragraphs(getattr(parameter, "help", None) or "")
    yield from (does for _, does in COMMANDS.values())


def update() -> None:
    """Write the catalogues anew, with the translations that they have."""
    from babel.messages import Catalog
    from babel.messages.mofile import write_mo
    from babel.messages.pofile import read_po, write_po

    for path in CATALOGUES.glob(f"*/LC_MESSAGES/{DOMAIN}.po"):
        with path.open("rb") as file:
            before = read_po(file)
        catalogue = Catalog(header_comment=before.header_comment, fuzzy=False)
        catalogue.mime_headers = before.mime_headers
        for text in dict.fromkeys(filter(None, help_texts())):
            old = before.get(text)
            catalogue.add(text, old.string if old else "")
            if old is None or not old.string:
                print(f"{path}: not translated: {text}")
        with path.open("wb") as file:
            write_po(file, catalogue, width=100)
        with path.with_suffix(".mo").open("wb") as file:
            write_mo(file, catalogue)


if __name__ == "__main__":
    update()
