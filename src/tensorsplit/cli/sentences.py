"""Texts of the commands in the user's language: fixed words, numbers of things, code names.

``python scripts/messages.py`` finds the texts by the calls of these functions, so that they are
written out in each call. The library makes its messages in English, with the values in them;
`localized` finds the text that one was made of in ``locale/refusals.txt``, which the same script
writes.
"""

from __future__ import annotations

import gettext
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

from tensorsplit.cli.language import CATALOGUES, DOMAIN, catalogue, is_english
from tensorsplit.core.errors import KINDS, SplitError, Words, show_int

_CODE = re.compile(r"(?<=\[)TS\d{3}(?=\])")
_GUESS = re.compile(r"did you mean (\S+?)\? ?")
_AMOUNT = re.compile(r"(\d\S*) ([a-z ]+)")
_LISTED = re.compile("( and | or |, )")
_BETWEEN = re.compile("(?<=.)(: |; | [(])(?=.)")
_LATIN_WORD = re.compile("[a-z]{2,}")
_WORDS_IN_A_ROW = re.compile("(?:^| )[a-z]+(?: [a-z]+){2}")
_QUOTED = re.compile("'[^']*'|\"[^\"]*\"")
_SOME_LETTERS, _MANY_LETTERS = 8, 20


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
"""Click's messages for wrong usage; of texts in two forms, the second is for several things."""


def tr(text: str, /, **values: object) -> str:
    """Translate a text: return it in the language of the user, with these values in its braces."""
    return catalogue().gettext(text).format(**values)


def amount(number: int, word: str) -> str:
    """Return a number of things: ``1 node``, ``2 nodes``."""
    return (
        catalogue().ngettext(f"{{n}} {word}", f"{{n}} {word}s", number).format(n=show_int(number))
    )


def localized(text: str) -> str:
    """Return a message of the library in the language of the user; what is not known stays."""
    return text if is_english() else _localized(text)


@lru_cache(maxsize=1024)
def _localized(text: str) -> str:
    """Translate the text with the most fixed words that may have become this one.

    One with few words, such as ``it is {0}``, counts only where there are no two texts in a row.
    The name of an engine may be before a text.
    """
    if guess := _GUESS.match(text):  # which `named` translates
        return guess[0] + _localized(text[guess.end() :])
    wordy, short = _refusals()
    found = _found(text, wordy)
    if not found and text.isascii():  # else it may have been translated before
        found, is_whole = _pair(text)
        found = found if is_whole else _found(text, short) or found
    name, _, rest = text.partition(" ")
    return found or (f"{name} {found}" if (found := _found(rest, wordy)) else text)


def _found(text: str, refusals: Mapping[str, Sequence[str]]) -> str:
    """Return the translation of the first refusal that fits; empty if none does."""
    for source, fixed in refusals.items():
        if text.startswith(fixed[0]) and text.endswith(fixed[-1]) and all(map(text.count, fixed)):
            for old in _values_in(text, fixed):
                new = [*map(_value, old)]
                is_known = not any(map(_is_sentence, set(new).intersection(old)))
                if is_known or _letters(fixed) > _MANY_LETTERS:
                    return catalogue().gettext(source).format(*new)
    return ""


def _values_in(text: str, fixed: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the possible values between fixed words: the first as short as can be, or as long.

    A value may hold what is between two of them, such as a semicolon.
    """
    before: Sequence[str] | None = None
    for value in ("(.*?)", "(.*)"):
        found = re.fullmatch(value.join(map(re.escape, fixed)), text, re.DOTALL)
        if found is not None and found.groups() != before:
            before = found.groups()
            yield before


def _is_sentence(text: str) -> bool:
    """Return whether a text is more than values: some words in a row, other than in quotes."""
    return bool(_WORDS_IN_A_ROW.search(_QUOTED.sub("", text)))


def _pair(text: str) -> tuple[str, bool]:
    """Translate two texts in a row, ``one: two``, ``one; two`` or ``one (two)``; else return "".

    Of several ways, that which leaves the fewest words, and none that divides what is in brackets.
    Returns whether the second text is known.
    """
    found = []
    for at in _BETWEEN.finditer(text):
        one, between, two = text[: at.start()], at[0], text[at.end() :]
        is_remark = between == " ("
        if one.count("(") != one.count(")") or (is_remark and not two.endswith(")")):
            continue
        two = two.removesuffix(")") if is_remark else two
        words, others = _localized(one), _localized(two)
        if (words, others) != (one, two):
            more = tr(" ({more})", more=others) if is_remark else f"{tr(between)}{others}"
            found.append((f"{words}{more}", others != two))
    return min(found, key=lambda way: len(_LATIN_WORD.findall(way[0])), default=("", False))


def _value(text: str) -> str:
    """Translate a value that is a text, a number of things, or some things with "and" or "or"."""
    if found := _AMOUNT.fullmatch(text):
        one = f"{{n}} {found[2].removesuffix('s')}"
        return catalogue().ngettext(one, f"{{n}} {found[2]}", 2).format(n=found[1])
    words, things = _localized(text), _LISTED.split(text)
    if words == text and not any(map(_is_sentence, things[::2])):
        return "".join(tr(each) if each in (" and ", " or ") else each for each in things)
    return words


@cache
def _refusals() -> tuple[Mapping[str, Sequence[str]], ...]:
    """Return the texts of refusals with their fixed words: those with many, those with few.

    What has more comes first.
    """
    texts = (CATALOGUES / "refusals.txt").read_text(encoding="utf-8").splitlines()
    fixed = {text: re.split(r"{\d+}", text) for text in texts}
    ordered = sorted(texts, key=lambda text: (-_letters(fixed[text]), -len(text)))
    wordy = {text: fixed[text] for text in ordered if _letters(fixed[text]) >= _SOME_LETTERS}
    return wordy, {text: fixed[text] for text in ordered if text not in wordy}


def _letters(fixed: Iterable[str]) -> int:
    """Return how many letters there are in the fixed words of a text."""
    return sum(map(str.isalpha, "".join(fixed)))


WORDS = Words(tr, amount, localized)
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
    """Translate click's texts, too: it asks gettext for them, as the system does."""
    if is_english():
        return
    chosen = os.environ.get("TENSORSPLIT_LANG")
    if chosen:
        os.environ["LANGUAGE"] = chosen
    gettext.bindtextdomain(DOMAIN, CATALOGUES)
    gettext.textdomain(DOMAIN)
