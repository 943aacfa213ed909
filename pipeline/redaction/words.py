"""The patterns over a text that comes in pieces, word by word.

A word is held until its end is seen, so the pieces do not matter; of a very long one the front half is let
go in steps. Between words it remembers whether the next one is the value of a `password =`.
"""

from __future__ import annotations

import re

from pipeline.redaction.known import MARK
from pipeline.redaction.patterns import (
    FOUND,
    MIN_CHARS,
    MIN_VALUE_CHARS,
    OPENERS,
    TAILS,
    VALUE_CLASS,
    is_value,
    may_hold_secret,
    secret_within,
)

HELD_CHARS = 4_096
"""The most that is held of a word. The beginning of a pattern is far shorter than half of it."""
_HALF = HELD_CHARS // 2
_PLAIN_CHARS = 16
"""Up to so many letters are a word and no key."""

# ASCII and the letters of European languages; scripts without spaces are not held back.
_PIECES = re.compile(r"(?P<word>[!-~\u00c0-\u024f]+)|[^!-~\u00c0-\u024f]+")
_QUOTES = "\"'`\\"
_SIGNS = (":=", "=>", "=", ":")
_SCHEMES = frozenset({"basic", "bearer", "bot", "token"})
"""Of an `Authorization` header: the value comes behind them."""
_USER_FLAGS = ("-u", "--user", "--proxy-user")
"""Of curl: a name, a colon and a password come behind them."""
_ANNOUNCING = (*OPENERS, *_SCHEMES, "cookie", "curl", *_USER_FLAGS)
_LAST = frozenset("".join((";", *_SIGNS, _QUOTES, *(word[-1] + word[-1].upper() for word in _ANNOUNCING))))
"""What a word ends with behind which a secret may come."""
_VALUE = re.compile(
    rf"[=:>]{{0,2}}[{re.escape(_QUOTES)}]*(?P<value>{VALUE_CLASS}{{{MIN_VALUE_CHARS},}}={{0,2}})"
)
_COOKIE = re.compile(r"[\"']?[^=;\s]{1,128}=(?P<value>[^;\s\"']{8,})")
_USER = re.compile(r"[\"']?[^:\s]{1,128}:(?P<value>[^\s\"']{1,256})")
_BY_STATE = {"cookie": _COOKIE, "user": _USER}
_VALUE_TAIL = re.compile(f"{VALUE_CLASS}*")


class WordStream:
    """Text in pieces, redacted as if it had come whole."""

    def __init__(self) -> None:
        self._word = ""
        """What is held of a word."""
        self._before = ""
        """The character before it, where that belongs to the same word."""
        self._going_on: re.Pattern[str] | None = None
        """What the rest of a secret is made of whose beginning is out already."""
        self._expects = ""
        """`sign` after a name such as `password`, `value` after the sign; `cookie` in a header of cookies,
        and `user` behind curl's flag."""
        self._in_curl = False
        """The line calls curl."""

    def feed(self, text: str) -> str:
        """What can be shown now."""
        out: list[str] = []
        for piece in _PIECES.finditer(text):
            if piece.lastgroup:
                self._grow(piece.group(), out)
            else:
                self._end_word(out)
                self._space(piece.group(), out)
        return "".join(out)

    def finish(self) -> str:
        """The rest."""
        out: list[str] = []
        self._end_word(out)
        self._expects, self._in_curl = "", False
        return "".join(out)

    def _grow(self, piece: str, out: list[str]) -> None:
        for at in range(0, len(piece), _HALF):
            self._word += piece[at : at + _HALF]
            while len(self._word) >= HELD_CHARS:
                used = self._scan(self._word[:HELD_CHARS], out, whole=False)
                self._before = self._word[used - 1]
                self._word = self._word[used:]

    def _end_word(self, out: list[str]) -> None:
        if not self._word and not self._before:
            return
        word = self._word
        if self._before or self._expects or self._going_on is not None or _is_looked_through(word):
            self._scan(word, out, whole=True)
        else:
            out.append(word)
        self._expects = self._next(word)
        self._word, self._before, self._going_on = "", "", None

    def _space(self, gap: str, out: list[str]) -> None:
        if (self._expects or self._in_curl) and gap.strip(" \t"):
            self._expects, self._in_curl = "", False
        out.append(gap)

    def _next(self, word: str) -> str:
        """What may come behind the word."""
        if word[-1:] not in _LAST:
            return ""
        name = word[-32:].rstrip(_QUOTES).lower()
        if name.endswith("curl"):
            self._in_curl = True
        if self._in_curl and name in _USER_FLAGS:
            return "user"
        if name.endswith("cookie:") or (self._expects == "cookie" and name.endswith(";")):
            return "cookie"
        sign = ""
        if name.endswith(_SIGNS):
            sign = next(sign for sign in _SIGNS if name.endswith(sign))
            name = name.removesuffix(sign).rstrip(_QUOTES)
        if not name:
            return "value" if sign and self._expects == "sign" else ""
        if name in _SCHEMES and self._expects == "value":
            return "value"
        if name.endswith("bearer"):
            return "value"
        if name.endswith(OPENERS):
            return "value" if sign else "sign"
        return ""

    # -- one word, or the front of one ---------------------------------------------------------
    def _scan(self, word: str, out: list[str], *, whole: bool) -> int:
        """Append `word` without its secrets to `out`; how much of it was used: all, or its front half and
        what begins there."""
        text, front = self._before + word, len(self._before)
        limit = len(text) + 1 if whole else front + _HALF
        at = front
        if not front and self._expects:
            at = self._value(text, out)
        if self._going_on is not None:
            at = self._rest_of_secret(text, at)
        if _is_looked_through(text) and may_hold_secret(text):
            at = self._without_secrets(text, at, limit, out, whole=whole)
        end = max(at, min(limit, len(text)))
        out.append(text[at:end])
        return end - front

    def _without_secrets(self, text: str, at: int, limit: int, out: list[str], *, whole: bool) -> int:
        while (match := FOUND.search(text, at)) is not None and match.start() < limit:
            secret = secret_within(match)
            if secret is None:
                # A name and a sign; what stands behind may be a secret of another kind.
                out.append(text[at : match.start("value")])
                at = match.start("value")
                continue
            start, end, instead = secret
            out += (text[at:start], instead)
            at = end
            if end == len(text) and not whole:
                self._going_on = TAILS.get(match.lastgroup or "")
        return at

    def _rest_of_secret(self, text: str, at: int) -> int:
        rest = self._going_on.match(text, at) if self._going_on is not None else None
        end = at if rest is None else rest.end()
        if end < len(text):
            self._going_on = None
        return end

    def _value(self, word: str, out: list[str]) -> int:
        """Take the value that was announced from the front of `word`; where to go on."""
        if self._expects == "sign" and word[0] not in "=:":
            return 0
        if pattern := _BY_STATE.get(self._expects):
            return self._other_value(pattern, word, out)
        found = _VALUE.match(word)
        if found is None or not is_value(found["value"], after=word[found.end() :][:1]):
            return 0
        out += (word[: found.start("value")], MARK)
        if found.end() == len(word):
            self._going_on = _VALUE_TAIL
        return found.end()

    def _other_value(self, pattern: re.Pattern[str], word: str, out: list[str]) -> int:
        """Take a cookie's value, or the password behind a user's name; where to go on."""
        found = pattern.match(word)
        if found is None or (self._expects == "cookie" and not is_value(found["value"])):
            return 0
        out += (word[: found.start("value")], MARK)
        return found.end()


def _is_looked_through(word: str) -> bool:
    """Whether it is long enough for a secret, and no plain word."""
    return len(word) >= MIN_CHARS and (len(word) > _PLAIN_CHARS or not word.isalpha())
