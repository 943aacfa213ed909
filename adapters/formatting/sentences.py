"""Split text to be read aloud into sentences, in any script.

Not here: which text of an answer is read; see spoken.py.
"""

from __future__ import annotations

import re

MAX_CHARS = 300
"""About twenty seconds of speech. A longer sentence is cut."""
_CLOSERS = "\"'”’»」』）)\\]"  # noqa: RUF001 - quotes and brackets of several scripts are meant
_MARKS = ".!?…؟۔։।॥።။"  # noqa: RUF001 - marks of several scripts are meant
_WIDE_MARKS = "。！？｡．"  # noqa: RUF001 - as above
FULL_STOPS = frozenset(_MARKS + _WIDE_MARKS)
_END = re.compile(
    # A run of marks is read once, from its beginning: thousands of them cost no more than words.
    rf"(?<![{_MARKS}])[{_MARKS}]++[{_CLOSERS}]*+(?=\s)|[{_WIDE_MARKS}]++[{_CLOSERS}]*+|\n++"
)
_LAST_WORD = re.compile(r"[^\s(\"'“‘«]+$")  # noqa: RUF001 - quotes are meant
_ABBREVIATIONS = frozenset(
    {
        *("approx", "capt", "cf", "co", "col", "corp", "dept", "dr", "eg", "ed", "est", "etc", "fig", "figs"),
        *("gen", "gov", "ie", "inc", "jr", "lt", "ltd", "max", "min", "mr", "mrs", "ms", "mt", "nos", "pp"),
        *("prof", "rev", "sec", "sen", "sgt", "sr", "st", "vol", "vs"),
        *("bzw", "ca", "hrsg", "inkl", "mio", "mrd", "nr", "str", "tel", "usw", "vgl", "zb"),
        *("art", "av", "avda", "cie", "dra", "dt", "incl", "mlle", "mme", "num", "resp", "sra"),
    }
)
"""Abbreviations whose full stop ends no sentence; one that may end a sentence only makes a part longer."""
_CLAUSE_MARKS = frozenset(",;:、，；：–—")  # noqa: RUF001 - the full-width signs are meant


def sentences(text: str) -> tuple[str, ...]:
    """The sentences of `text`, stripped, each of at most MAX_CHARS characters. Sentences
    without a letter or a digit are left out. When text is added at the end, all sentences but the last
    stay the same."""
    found: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        if _ends(text, begin, end):
            found += _pieces(text[begin : end.end()].strip())
            begin = end.end()
    found += _pieces(text[begin:].strip())
    return tuple(one for one in found if any(char.isalnum() for char in one))


def _ends(text: str, begin: int, end: re.Match[str]) -> bool:
    """Whether the mark at `end` closes the sentence from `begin`."""
    if end.group() != ".":
        return True
    # Words are short: text further back belongs to earlier words.
    word = _LAST_WORD.search(text, max(begin, end.start() - 20), end.start())
    if word is None:
        return True
    after = text[end.end() : end.end() + 2].strip(" ")
    bare = word.group().replace(".", "").casefold()
    initial = len(bare) == 1 and bare.isalpha() and word.group() not in ("I", "a", "A")
    dotted = "." in word.group() and len(bare) <= 3 and bare.isalpha()
    return not (after[:1].islower() or initial or dotted or bare in _ABBREVIATIONS)


def _pieces(sentence: str) -> list[str]:
    """`sentence`, cut after a comma or else a word wherever it is too long. Each cut depends only on the
    text before MAX_CHARS."""
    pieces = []
    begin = 0
    while len(sentence) - begin > MAX_CHARS:
        at = _cut(sentence, begin)
        pieces.append(sentence[begin:at].strip())
        begin = at
    pieces.append(sentence[begin:].strip())
    return pieces


def _cut(sentence: str, begin: int) -> int:
    last = begin + MAX_CHARS
    for wanted in (_CLAUSE_MARKS, frozenset(" ")):
        for at in range(last, begin + MAX_CHARS // 3, -1):
            if sentence[at - 1] in wanted:
                return at
    return last
