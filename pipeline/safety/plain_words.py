"""The form of a text that the patterns of the crisis gate read: one spelling of a word however it is written.

Lower case, no accents on letters of European scripts, ' as the only apostrophe, single spaces. Emoji stay.
Letters that are spelled out (k i l l), digits in place of letters (k1ll) and drawn-out words (dieee) are
written plainly where the result is a word that the patterns know; all else stays as it is.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_APOSTROPHES: Final = dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u02b9\u00b4`\u2032\uff07"), "'")
_INVISIBLE: Final = dict.fromkeys((0x00AD, 0x200B, 0x200C, 0x200E, 0x200F, 0x2060, 0xFEFF))
"""Characters without a width. The joiner of emoji (U+200D) stays."""
_SPACES: Final = re.compile(r"[^\S\n]+")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_SPELLED: Final = re.compile(r"(?<![^\W_])[^\W_](?:[ .\-_*]{1,2}[^\W_](?![^\W_])){2,}")
"""At least three single letters in a row."""
_DISGUISED: Final = re.compile(r"[^\W_]*(?:[0-9@$!|*]|([^\W\d_])\1\1)[\w@$!|*]*")
"""A word with a digit or sign in place of a letter, or with a letter three times in a row."""
_TWO: Final = re.compile(r"(?:\b2 |(?<=[a-z])2 ?)(?=(?:die|kill|end|hang|live|disappear)\b)")
"""A 2 in place of "to"."""
_MIXED: Final = re.compile(
    "[a-z][a-z\u0370-\u052f]*[\u0370-\u052f][a-z\u0370-\u052f]*|[\u0370-\u052f]+[a-z][a-z\u0370-\u052f]*"
)
"""A word with letters of the Latin and of another script, which look alike."""
_LOOK_ALIKE: Final = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0445\u0443\u0456\u0455\u0458\u043a\u043c\u0442\u043d\u0432\u03b1\u03bf\u03b5\u03b9\u03ba\u03bd\u03c1\u03c4\u03c5",
    "aeopcxyisjkmthbaoeikvptu",
)
"""Cyrillic and Greek letters that look like Latin ones."""
_MOST_STARS: Final = 3
"""A word of this many letters for each star is still readable."""
_SIGNS: Final = frozenset("0123456789@$!|*")
_DRAWN_OUT: Final = re.compile(r"(.)\1\1")
_LETTERS: Final = str.maketrans("013457@$!|l", "oieastasiii")
_REPEATED: Final = re.compile(r"(.)\1+")
_KNOWN: Final = (
    "kill", "killing", "killed", "myself", "suicide", "suicidal", "die", "dead", "life", "unalive",
    "commit", "hang", "self", "harm", "overdose", "alive", "death", "cutting", "want", "wanna",
    "end", "ending", "live", "living",
    "selbstmord", "suizid", "tonight", "pills", "goodbye", "quiero",
    "sterben", "umbringen", "leben", "mourir", "tuer", "vivre", "morir", "matarme", "vivir",
)  # fmt: skip
_PHRASES: Final = {
    "killmyself": "kill myself",
    "killingmyself": "killing myself",
    "iwanttodie": "i want to die",
    "wanttodie": "want to die",
    "iwannadie": "i wanna die",
    "wannadie": "wanna die",
    "endmylife": "end my life",
    "ikms": "kms",
}


_MISTYPED: Final = {
    "kil": "kill", "killl": "kill", "myslef": "myself", "mysef": "myself", "mysel": "myself",
    "myslf": "myself", "wnat": "want", "wana": "wanna", "wnna": "wanna", "sucide": "suicide",
    "suicidle": "suicidal", "tonite": "tonight", "2nite": "tonight", "2night": "tonight",
    "tmrw": "tomorrow", "nich": "nicht", "kiero": "quiero", "mourrir": "mourir", "unalived": "unalive",
    "ima": "i'm going to", "finna": "going to", "boutta": "about to",
    "sewerslide": "suicide", "sewercide": "suicide", "suislide": "suicide",
    "killmyself": "kill myself", "killingmyself": "killing myself", "wanttodie": "want to die",
    "wannadie": "wanna die", "iwanttodie": "i want to die", "endmylife": "end my life",
}  # fmt: skip
"""Short words as people type them."""
_LONG: Final = (
    "suicide", "suicidal", "myself", "overdose", "worthless", "hopeless", "goodbye", "tonight", "killing",
    "umbringen", "selbstmord", "suizid", "suicider", "suicidarme",
)  # fmt: skip
"""Words of danger that are understood with one letter wrong, missing, doubled or in another place."""
_WELL_TYPED: Final = frozenset(("filling", "killings", "kidding", "billing", "kissing", "umringen"))
_STEM: Final = 6
_FIRST: Final = "".join(sorted({word[0] for word in _LONG}))
_WORD: Final = re.compile(rf"(?<![a-z0-9])(?:{'|'.join(_MISTYPED)}|[{_FIRST}][a-z0-9]{{5,15}})(?![a-z0-9])")
"""What may be a mistyped word: one of the short ones, or a longer one with the beginning of a long one."""


def plain_words(text: str) -> str:
    """The plain form of `text`, in time proportional to its length."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).translate(_INVISIBLE)
        text = text.translate(_APOSTROPHES).casefold()
        text = unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text)))
        text = _MIXED.sub(lambda found: found[0].translate(_LOOK_ALIKE), text)
    else:
        text = text.casefold().replace("`", "'")
    if "  " in text or not text.isprintable():
        text = _SPACES.sub(" ", text)
    if "2" in text:
        text = _TWO.sub(" to ", text).replace("  ", " ")
    text = _SPELLED.sub(lambda found: _joined(found[0]), text)
    text = _WORD.sub(_typed_well, text)
    if _SIGNS.isdisjoint(text) and _DRAWN_OUT.search(text) is None:
        return text
    return _DISGUISED.sub(lambda found: _undisguised(found[0]), text)


def _typed_well(found: re.Match[str]) -> str:
    return _well_typed(found[0])


@functools.lru_cache(maxsize=4_096)
def _well_typed(word: str) -> str:
    """The word of danger behind a mistyped word; the word as it is if there is none."""
    if word in _MISTYPED:
        return _MISTYPED[word]
    # With the same beginning it is another form of the word, and not mistyped.
    if len(word) < _STEM or word in _WELL_TYPED or word[:_STEM] in _STEMS:
        return word
    for one in (word, *_shortened(word)):
        if (known := _BY_SHORTENED.get(one)) and word[:1] == known[:1]:
            return known
    return word


def _shortened(word: str) -> Iterator[str]:
    """The word without one of its letters."""
    return (word[:at] + word[at + 1 :] for at in range(len(word)))


_STEMS: Final = frozenset(word[:_STEM] for word in _LONG)
_BY_SHORTENED: Final = {one: word for word in _LONG for one in (word, *_shortened(word))}


def _joined(spelled: str) -> str:
    """The word that was spelled out; the text as it is if the patterns do not know it."""
    joined = "".join(char for char in spelled if char.isalnum())
    if joined in _PHRASES:
        return _PHRASES[joined]
    before = "i " if joined.startswith("i") and len(joined) > 1 else ""
    rest = joined[1:] if before else joined
    for prefix, word in (("", joined), (before, rest)):
        if word in _PHRASES:
            return prefix + _PHRASES[word]
        if word == "kms" or _folded(word) in _BY_FOLD:
            return prefix + _BY_FOLD.get(_folded(word), word)
    return spelled


def _undisguised(word: str) -> str:
    """The known word behind a disguised one; the word as it is if there is none."""
    core = word.rstrip("!|*$@")
    if "*" in core and (starred := _without_stars(core)):
        return starred + word[len(core) :]
    for one in (word, core):
        if known := _BY_FOLD.get(_folded(one)):
            return known + word[len(one) :]
        if known := _PHRASES_BY_FOLD.get(_folded(one)):
            return known
    return word


def _without_stars(word: str) -> str:
    """The known word of which stars hide letters; empty if there is none."""
    if word.count("*") * _MOST_STARS > len(word):
        return ""
    for known in _KNOWN:
        if len(known) == len(word) and all(
            one in ("*", other) for one, other in zip(word, known, strict=True)
        ):
            return known
    return ""


def _folded(word: str) -> str:
    """One spelling for all disguises of a word: letters for digits, i for l, no letter twice in a row."""
    return _REPEATED.sub(r"\1", word.translate(_LETTERS).replace("*", ""))


_BY_FOLD: Final = {_folded(word): word for word in _KNOWN}
_PHRASES_BY_FOLD: Final = {_folded(word): phrase for word, phrase in _PHRASES.items()}
