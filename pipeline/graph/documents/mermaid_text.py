"""Ids and labels that mermaid takes as they are meant, whatever the names hold."""

from __future__ import annotations

import re
from typing import Final

MAX_LABEL: Final = 80
"""Characters of one label; the rest is cut off."""

_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
# What ends a quoted text, begins an entity, a tag or a directive, or is read as Markdown.
_ENTITY: Final = {
    **{letter: f"#{ord(letter)};" for letter in "#%`\\*~$"},
    '"': "#quot;",
    "&": "#amp;",
    "<": "#lt;",
}
_LIST_MARK: Final = re.compile(r"^(\d+)\.(?=\s)|^([-+])(?=\s)")
# Before it reads a diagram, mermaid takes `style…:…#…;` for a line of CSS, wherever it stands.
_TIGHT_COLON: Final = re.compile(r":(?!\s)")


def identifier(prefix: str, *parts: str) -> str:
    """An id for a name of several parts; different names get different ids.

    Lower-case letters, digits and underscores stand for themselves, everything else for `X…X` with its
    code point, and `Z` between two parts. The prefix keeps keywords such as `end` apart.
    """
    return prefix + "_" + "Z".join("".join(map(_letter, part)) for part in parts)


def label(text: str, *notes: str) -> str:
    """A quoted label: the text, cut to MAX_LABEL characters, and each note on a line of its own."""
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
    """`1. x` and `- x` would be taken for Markdown lists."""
    return f"{found[1]}#46;" if found[1] else f"#{ord(found[2])};"
