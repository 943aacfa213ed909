"""Text in one form for comparison: lower case, without accents, look-alike letters and invisible characters.

Takes time in proportion to the text. Not here: undoing encodings (`disguises`).
"""

from __future__ import annotations

import re
import unicodedata

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff]+"
)
"""Characters without a shape, among them those that change the direction of text."""
_MARKS = re.compile(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a\ufe20-\ufe2f]+"
)
_CONTROLS = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]+")
_ASCII_CONTROLS = bytes(code for code in range(128) if _CONTROLS.match(chr(code)))
_ASCII_LOWER = bytes(range(256)).lower()
_LETTERS = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "đ": "d", "æ": "ae", "œ": "oe", "’": "'", "ʼ": "'"})
_LOOK_ALIKES = {
    # Cyrillic, Greek, Armenian and phonetic letters that look like a Latin letter, in lower case.
    **dict(zip("авеһіјкмнорстухѕѵԁԛԝгьпҽӏ", "abehijkmhopctyxsvdqwrbnel", strict=True)),
    **dict(zip("αβεηικμνορτυχωϲϳγ", "abenikmvoptuxwcjy", strict=True)),
    **dict(zip("ɑɡɩոսօɪʟʀᴀᴄᴅᴇᴊᴋᴍɴᴏᴘᴛᴜᴠᴡᴢʏʙɢʜꜱꜰ", "agiouoilracdejkmnoptuvwzybghsf", strict=True)),
}
_TO_LATIN = str.maketrans(_LOOK_ALIKES)
_MIXED = re.compile(
    r"\b(?=[^\W\d_]*[a-z])(?=[^\W\d_]*[\u0370-\u058f\u0250-\u02af\u1d00-\u1dbf])[^\W\d_]{1,60}"
)
"""A word of Latin letters and look-alike letters: `ignоre` with a Cyrillic o."""
_FOREIGN = re.compile("[\u0370-\u058f]")
_LATIN = re.compile("[a-z]")
_FEW = 0.3
"""Fewer foreign letters than this share of all letters are look-alikes in a Latin text, if all can be."""


def plain(text: str) -> str:
    """`text` in lower case, with single spaces and line ends, without accents, controls and invisible
    characters, and with look-alike letters replaced in words that also have Latin ones."""
    if text.isascii():
        # In one step, which is faster than a search for controls.
        text = text.encode().translate(_ASCII_LOWER, _ASCII_CONTROLS).decode("ascii")
    else:
        # Marks are removed first: normalisation sorts a long row of them in quadratic time.
        text = _MARKS.sub("", INVISIBLE.sub("", text))
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold().translate(_LETTERS)
        text = _CONTROLS.sub("", _latin(text)).casefold()
    lines = text.splitlines()
    if len(lines) == 1:
        return " ".join(lines[0].split())
    return "\n".join(filter(None, (" ".join(line.split()) for line in lines)))


def _latin(text: str) -> str:
    text = _MIXED.sub(lambda word: word.group().translate(_TO_LATIN), text)
    foreign = _FOREIGN.findall(text)
    if foreign and len(foreign) < _FEW * len(_LATIN.findall(text)) and all(map(_LOOK_ALIKES.get, foreign)):
        return text.translate(_TO_LATIN)
    return text
