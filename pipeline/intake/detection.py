"""Make the copies of a message that are searched for attacks: the text as a reader sees it.

A copy is never stored or shown, because it has no accents, scripts and layout. `pipeline.intake.cleaning`
makes the text that is stored.
"""

from __future__ import annotations

import base64
import html
import re
import unicodedata
from collections.abc import Iterator

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS

_LOOKALIKES = str.maketrans(
    # Cyrillic, Greek and other letters that look like a Latin letter.
    "авеһіјкмнорстухѕѵԁԛԝАВЕНІЈКМОРСТУХЅαεικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡɩոսօ",
    "abehijkmhopctyxsvdqwABEHIJKMOPCTYXSaeiknoptuxwcjABEZHIKMNOPTYXiaginuo",
)
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_SPELLED = re.compile(r"(?<!\w)\w(?:[ \n._*·|/\\-]{1,3}\w(?!\w)){7,}")
"""Eight or more letters, each on its own."""
_SPELLED_WORD = re.compile(r"(?<!\w)\w(?:[ ._*·|/\\-]\w(?!\w)){2,}")
"""Three or more letters with one sign between them: two signs separate words."""
_BETWEEN = re.compile(r"(?<=\w)[._*\u00b7|/\\~+-]{1,3}(?=\w)")
_LEET = re.compile(r"[^\W\d_][0134578@$]|[0134578@$][^\W\d_]")
_LETTERS = str.maketrans("0134578@$", "oieastbas")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,4000}={0,2}")
_MOST_ENCODED = 20
_PLAIN = re.compile(r"(?:(?:[A-Za-z] )?[A-Za-z]{2,23}(?:'[A-Za-z]{1,4})?[,.;:!?]{0,3}(?: |\Z))+")
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Hangul letters that are invisible."""


def is_plain(text: str) -> bool:
    """Whether `text` is ordinary prose in which nothing can be disguised: words of letters, no long one, no
    two letters on their own in a row, and signs only at their ends. True only if every copy that this module
    makes has the words of `text`."""
    return len(text) <= MAX_MESSAGE_CHARS and _PLAIN.fullmatch(text) is not None


def for_detection(text: str) -> str:
    """`text` in Latin letters without accents, without anything invisible, with single spaces and line
    ends; as much of it as a message may have."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        seen = _UNSEEN.sub("", text)[:MAX_MESSAGE_CHARS]
    else:
        # Marks are removed first: normalisation sorts a long row of them in quadratic time.
        plain = unicodedata.normalize("NFKD", _without_marks(text)[:MAX_MESSAGE_CHARS])
        # Normalisation may turn one character into eighteen.
        seen = _without_marks(plain[: 2 * MAX_MESSAGE_CHARS]).translate(_LOOKALIKES)
    return _LINES.sub("\n", _BLANKS.sub(" ", seen)).strip()


def undisguised(text: str, copy: str) -> Iterator[str]:
    """Copies of `text` besides `copy` (its `for_detection`) with disguises undone: HTML entities, digits for
    letters, signs between or inside words, and words in base64. Each copy is made only where `text` shows
    signs of that disguise."""
    plain = text[:MAX_MESSAGE_CHARS]
    if "&" in plain:
        read = html.unescape(plain)
        if read != plain:
            plain, copy = read, for_detection(read)
            yield copy
    yield from _decoded(plain)
    read = copy.translate(_LETTERS) if _LEET.search(copy) else copy
    if read != copy:
        yield read
    if _BETWEEN.search(copy):
        yield _BETWEEN.sub(" ", read)
        yield _BETWEEN.sub("", read)


def _decoded(text: str) -> Iterator[str]:
    for number, found in enumerate(_ENCODED.finditer(text)):
        if number == _MOST_ENCODED:
            return
        run = found.group().rstrip("=").replace("-", "+").replace("_", "/")
        try:
            words = base64.b64decode(run + "=" * (-len(run) % 4)).decode()
        except ValueError:
            continue
        if words.isprintable() or "\n" in words:
            yield for_detection(words)


def spelled_out(text: str) -> str:
    """The words spelled l e t t e r by l e t t e r in a copy made by `for_detection`, each run of them as one
    word on a line; empty without any."""
    return "\n".join(
        "".join(char for char in run.group() if char.isalnum()) for run in _SPELLED.finditer(text)
    )


def spelled_words(text: str) -> str:
    """A copy, as `for_detection` makes it, of a raw text with each spelled-out word joined; empty without
    any. A gap that is wider than the one between the letters ends a word."""
    raw = text[:MAX_MESSAGE_CHARS]
    read = _SPELLED_WORD.sub(lambda word: "".join(filter(str.isalnum, word.group())), raw)
    return "" if read == raw else for_detection(read)


def _without_marks(text: str) -> str:
    """`text` without combining marks, format characters and controls."""
    return "".join(filter(_is_seen, text))


def _is_seen(char: str) -> bool:
    if char <= "~":
        return char >= " " or char in "\t\n\x0b\x0c"
    return unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc", "Cs") and char not in _FILLERS
