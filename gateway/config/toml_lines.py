"""Find the line of each table and key of a TOML text, for messages: the parser of Python does not tell.

The text is known to be valid. Where a key is written in an unusual way, it has no line.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
_TABLE = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]")
_SETTING = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
_PART = re.compile(_KEY)
_MULTILINE = re.compile(r'"""|\'\'\'')


def key_lines(text: str) -> Mapping[tuple[str, ...], int]:
    """The number of the line of each table and key, from 1. The n-th table of an array is the part `n`."""
    found: dict[tuple[str, ...], int] = {}
    counts: Counter[tuple[str, ...]] = Counter()
    table: tuple[str, ...] = ()
    for number, line in _lines_outside_of_texts(text):
        if header := _TABLE.match(line):
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] += 1
                table = (*table, str(counts[table]))
            found.setdefault(table, number)
        elif key := _SETTING.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def _lines_outside_of_texts(text: str) -> Iterator[tuple[int, str]]:
    """The numbered lines, without those that begin inside a text of several lines."""
    delimiter = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if not delimiter:
            yield number, line
        for mark in _MULTILINE.findall(line):
            if not delimiter:
                delimiter = mark
            elif mark == delimiter:
                delimiter = ""


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))
