"""Escape any names as mermaid ids and labels."""

from __future__ import annotations

import re
from typing import Final

MAX_LABEL: Final = 80
"""Characters of one label; longer text is cut off."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
# What ends a quoted text, begins an entity, a tag or a directive, or is read as Markdown.
_ENTITY: Final = {
    **{letter: f"#{ord(letter)};" for letter in "#%`\\*~$"},
    '"': "#quot;",
    "&": "#amp;",
    "<": "#lt;",
}
_LIST_MARK: Final = re.compile(r"^(\d+)\.(?=\s)|^([-+])(?=\s)")
# Before it reads a diagram, mermaid takes `style…:…#…;` for a line of CSS, at any place.
_TIGHT_COLON: Final = re.compile(r":(?!\s)")


def identifier(prefix: str, *parts: str) -> str:
    """An id for a name of several parts; different names get different ids.

    Lower-case letters, digits and underscores are unchanged, every other character becomes `X…X` with its
    code point, and `Z` separates two parts. The prefix avoids keywords such as `end`.
    """
    return prefix + "_" + "Z".join("".join(map(_letter, part)) for part in parts)


def label(text: str, *notes: str) -> str:
    """A quoted label: the text, cut to MAX_LABEL characters, and each note on a separate line."""
    short = text if len(text) <= MAX_LABEL else f"{text[: MAX_LABEL - 1]}…"
    lines = [*short.splitlines(), *notes]
    return '"' + "<br/>".join(map(_line, lines or [""])) + '"'


def _letter(letter: str) -> str:
    return letter if letter in _PLAIN else f"X{ord(letter):x}X"


def _line(text: str) -> str:
    visible = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    escaped = "".join(_ENTITY.get(letter, letter) for letter in visible)
    without_colons = _TIGHT_COLON.sub("#58;", escaped)
    return _LIST_MARK.sub(_marked, without_colons) or " "


def _marked(found: re.Match[str]) -> str:
    """The list mark escaped, as mermaid reads `1. x` and `- x` as Markdown lists."""
    return f"{found[1]}#46;" if found[1] else f"#{ord(found[2])};"
