"""What the commands say, in the language of the user: fixed words, numbers of things, code names.

The sentences that the library makes of values stay in English. ``python scripts/messages.py`` finds
the texts by the calls of these functions, so that they are written out in each call.
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterable

from tensorsplit.cli.language import CATALOGUES, DOMAIN, catalogue, is_english
from tensorsplit.core.errors import KINDS, SplitError, Words, show_int

_CODE = re.compile(r"(?<=\[)TS\d{3}(?=\])")
_GUESS = re.compile(r"did you mean (\S+?)\? ?")


OF_CLICK: tuple[str | tuple[str, str], ...] = (
    *("Missing argument", "Missing option", "Missing command.", "Missing parameter: {param_name}"),
    *("No such option {name!r}.", "No such option: {name}", "No such command {name!r}."),
    *("Invalid value: {message}", "Invalid value for {param_hint}: {message}"),
    *("Option {name!r} does not take a value.", "{value} is not in the range {range}."),
    "{value!r} is not a valid {number_type}.",
    "{value!r} is not a valid boolean. Recognized values: {states}",
    *("Choose from:\n\t{choices}", "file", "directory", "path"),
    *("{name} {filename!r} does not exist.", "{name} {filename!r} is a directory."),
    ("{value!r} is not {choice}.", "{value!r} is not one of {choices}."),
    ("Got unexpected extra argument ({args})", "Got unexpected extra arguments ({args})"),
    ("Option {name!r} requires an argument.", "Option {name!r} requires {nargs} arguments."),
    ("Did you mean {possibility}?", "(Did you mean one of: {possibilities}?)"),
)
"""What click says of wrong usage; of texts in two forms, the second is for several things."""


def tr(text: str, /, **values: object) -> str:
    """Translate a text: return it in the language of the user, with these values in its braces."""
    return catalogue().gettext(text).format(**values)


def amount(number: int, word: str) -> str:
    """Return a number of things: ``1 node``, ``2 nodes``."""
    return (
        catalogue().ngettext(f"{{n}} {word}", f"{{n}} {word}s", number).format(n=show_int(number))
    )


WORDS = Words(tr, amount)
"""The words of the user, for what the library makes of fixed words and values."""


def known(text: str) -> str:
    """Return a text that the library gives, as the user reads it if the catalogue has it."""
    return catalogue().gettext(text) if text else ""


def joined(names: Iterable[str]) -> str:
    """Return names with "and" between them."""
    return tr(" and ").join(names)


def worded(error: SplitError) -> str:
    """Return the message of a refusal, with the fixed words in the language of the user."""
    return error.worded(WORDS)


def named(message: str) -> str:
    """Return a message with the name of each code beside it; in English, codes stand alone."""
    if is_english():
        return message
    guessed = _GUESS.sub(lambda found: tr("did you mean {word}?", word=found[1]), message)
    return _CODE.sub(lambda found: f"{found[0]} {_title(found[0])}".rstrip(), guessed)


def _title(code: str) -> str:
    """Return the name of a code, empty if there is no such code."""
    if code in KINDS:
        return known(KINDS[code].title)
    from tensorsplit.model.check.checks import CHECKS  # loads the libraries for models

    return known(CHECKS[code].title) if code in CHECKS else ""


def translate_click() -> None:
    """Have what click says be in the language of the user; it asks gettext, as the system does."""
    if is_english():
        return
    chosen = os.environ.get("TENSORSPLIT_LANG")
    if chosen:
        os.environ["LANGUAGE"] = chosen
    gettext.bindtextdomain(DOMAIN, CATALOGUES)
    gettext.textdomain(DOMAIN)
