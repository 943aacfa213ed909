"""The copy of a message in which attacks are looked for: what a reader sees, whatever it is made of.

It is never stored or shown: it loses accents, scripts and layout. What is stored is
`pipeline.intake.cleaning`'s.
"""

from __future__ import annotations

import re
import unicodedata

from pipeline.intake.cleaning import MAX_MESSAGE_CHARS

_LOOKALIKES = str.maketrans(
    # Cyrillic, Greek and other letters that are drawn as a Latin letter is.
    "авеһіјкмнорстухѕѵԁԛԝАВЕНІЈКМОРСТУХЅαεικνορτυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧıɑɡɩոսօ",
    "abehijkmhopctyxsvdqwABEHIJKMOPCTYXSaeiknoptuxwcjABEZHIKMNOPTYXiaginuo",
)
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_BLANKS = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_SPELLED = re.compile(r"(?<!\w)\w(?:[ \n._*·|/\\-]{1,3}\w(?!\w)){7,}")
"""Eight or more letters, each on its own."""
_FILLERS = "\u115f\u1160\u3164\uffa0"
"""Hangul's letters that are drawn as nothing."""


def for_detection(text: str) -> str:
    """`text` in Latin letters without accents, without anything invisible, with single spaces and line
    ends; as much of it as a message may have."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if text.isascii():
        seen = _UNSEEN.sub("", text)[:MAX_MESSAGE_CHARS]
    else:
        # The marks go before: sorting a long row of them takes normalisation quadratic time.
        plain = unicodedata.normalize("NFKD", _without_marks(text)[:MAX_MESSAGE_CHARS])
        # One sign may become eighteen.
        seen = _without_marks(plain[: 2 * MAX_MESSAGE_CHARS]).translate(_LOOKALIKES)
    return _LINES.sub("\n", _BLANKS.sub(" ", seen)).strip()


def spelled_out(text: str) -> str:
    """Words that stand l e t t e r by l e t t e r in a copy made by `for_detection`, each run of them as one
    word on a line; empty where there are none."""
    return "\n".join(
        "".join(char for char in run.group() if char.isalnum()) for run in _SPELLED.finditer(text)
    )


def _without_marks(text: str) -> str:
    """Without combining marks, format characters and controls."""
    return "".join(filter(_is_seen, text))


def _is_seen(char: str) -> bool:
    if char <= "~":
        return char >= " " or char in "\t\n\x0b\x0c"
    return unicodedata.category(char) not in ("Mn", "Me", "Cf", "Cc", "Cs") and char not in _FILLERS
