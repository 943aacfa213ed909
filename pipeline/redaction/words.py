"""Apply the patterns word by word to a text that comes in chunks.

A word is held until its end arrives, so the chunks make no difference; a very long word is released in steps
of half the limit. Between words, the state says whether the next word is the value of a `password =`.
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
"""The most of a word that is held. The beginning of a pattern is far shorter than half of this."""
_HALF = HELD_CHARS // 2
_PLAIN_CHARS = 16
"""A run of up to this many letters is a word, not a key."""

# ASCII and the letters of European languages; scripts without spaces are not held back.
_WORDS_AND_GAPS = re.compile(r"(?P<word>[!-~\u00c0-\u024f]+)|[^!-~\u00c0-\u024f]+")
_QUOTES = "\"'`\\"
_SIGNS = (":=", "=>", "=", ":")
_SCHEMES = frozenset({"basic", "bearer", "bot", "token"})
"""The schemes of an `Authorization` header; the value follows them."""
_USER_FLAGS = ("-u", "--user", "--proxy-user")
"""Flags of curl; a name, a colon and a password follow them."""
_ANNOUNCING = (*OPENERS, *_SCHEMES, "cookie", "curl", *_USER_FLAGS)
_LAST = frozenset("".join((";", *_SIGNS, _QUOTES, *(word[-1] + word[-1].upper() for word in _ANNOUNCING))))
"""The last characters of words after which a secret may follow."""
_VALUE = re.compile(
    rf"[=:>]{{0,2}}[{re.escape(_QUOTES)}]*(?P<value>{VALUE_CLASS}{{{MIN_VALUE_CHARS},}}={{0,2}})"
)
_COOKIE = re.compile(r"[\"']?[^=;\s]{1,128}=(?P<value>[^;\s\"']{8,})")
_USER = re.compile(r"[\"']?[^:\s]{1,128}:(?P<value>[^\s\"']{1,256})")
_BY_STATE = {"cookie": _COOKIE, "user": _USER}
_VALUE_TAIL = re.compile(f"{VALUE_CLASS}*")


class WordStream:
    """Redacts a text in chunks, with the same result as for the whole text."""

    def __init__(self) -> None:
        self._word = ""
        """The part of the current word that is held."""
        self._before = ""
        """The character before it, if that belongs to the same word."""
        self._secret_tail: re.Pattern[str] | None = None
        """Matches the rest of a secret whose beginning has been replaced already."""
        self._expects = ""
        """`sign` after a name such as `password`, `value` after the sign, `cookie` in a header of cookies,
        `user` after curl's flag."""
        self._in_curl = False
        """Whether the line calls curl."""

    def feed(self, text: str) -> str:
        """The redacted text that is safe to show now."""
        out: list[str] = []
        for part in _WORDS_AND_GAPS.finditer(text):
            found = part.group()
            if part.lastgroup is None:
                self._end_word(out)
                if (self._expects or self._in_curl) and found.strip(" \t"):
                    self._expects, self._in_curl = "", False
                out.append(found)
            elif len(self._word) + len(found) < HELD_CHARS:
                self._word += found
            else:
                self._grow(found, out)
        return "".join(out)

    def finish(self) -> str:
        """The rest of the redacted text."""
        out: list[str] = []
        self._end_word(out)
        self._expects, self._in_curl = "", False
        return "".join(out)

    def _grow(self, part: str, out: list[str]) -> None:
        for at in range(0, len(part), _HALF):
            self._word += part[at : at + _HALF]
            while len(self._word) >= HELD_CHARS:
                used = self._scan(self._word[:HELD_CHARS], out, whole=False)
                self._before = self._word[used - 1]
                self._word = self._word[used:]

    def _end_word(self, out: list[str]) -> None:
        if not self._word and not self._before:
            return
        word = self._word
        is_known_plain = not (self._before or self._expects or self._secret_tail is not None)
        if is_known_plain and (len(word) < MIN_CHARS or not _needs_search(word)):
            out.append(word)
        else:
            self._scan(word, out, whole=True)
        self._expects = self._next(word) if word[-1:] in _LAST else ""
        self._word, self._before, self._secret_tail = "", "", None

    def _next(self, word: str) -> str:
        """The state after the word, whose last character is in `_LAST`; see `_expects`."""
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

    # -- one word, or the beginning of one -----------------------------------------------------
    def _scan(self, word: str, out: list[str], *, whole: bool) -> int:
        """Append `word` without its secrets to `out`. Returns how many characters were used: all, or the
        front half with the secrets that begin there."""
        text, front = self._before + word, len(self._before)
        limit = len(text) + 1 if whole else front + _HALF
        at = front
        if not front and self._expects:
            at = self._value(text, out)
        if self._secret_tail is not None:
            at = self._rest_of_secret(text, at)
        if _needs_search(text) and may_hold_secret(text):
            at = self._without_secrets(text, at, limit, out, whole=whole)
        end = max(at, min(limit, len(text)))
        out.append(text[at:end])
        return end - front

    def _without_secrets(self, text: str, at: int, limit: int, out: list[str], *, whole: bool) -> int:
        while (match := FOUND.search(text, at)) is not None and match.start() < limit:
            secret = secret_within(match)
            if secret is None:
                # Output the name and the sign; the text after them may be a secret of another kind.
                out.append(text[at : match.start("value")])
                at = match.start("value")
                continue
            start, end, instead = secret
            out += (text[at:start], instead)
            at = end
            if end == len(text) and not whole:
                self._secret_tail = TAILS.get(match.lastgroup or "")
        return at

    def _rest_of_secret(self, text: str, at: int) -> int:
        rest = self._secret_tail.match(text, at) if self._secret_tail is not None else None
        end = at if rest is None else rest.end()
        if end < len(text):
            self._secret_tail = None
        return end

    def _value(self, word: str, out: list[str]) -> int:
        """Replace the expected value at the front of `word`. Returns the index after it, or 0."""
        if self._expects == "sign" and word[0] not in "=:":
            return 0
        if pattern := _BY_STATE.get(self._expects):
            return self._other_value(pattern, word, out)
        found = _VALUE.match(word)
        if found is None or not is_value(found["value"], after=word[found.end() :][:1]):
            return 0
        out += (word[: found.start("value")], MARK)
        if found.end() == len(word):
            self._secret_tail = _VALUE_TAIL
        return found.end()

    def _other_value(self, pattern: re.Pattern[str], word: str, out: list[str]) -> int:
        """Replace a cookie's value, or the password after a user's name. Returns the index after it, or 0."""
        found = pattern.match(word)
        if found is None or (self._expects == "cookie" and not is_value(found["value"])):
            return 0
        out += (word[: found.start("value")], MARK)
        return found.end()


def _needs_search(word: str) -> bool:
    """Whether `word` is long enough for a secret and is not a plain word."""
    return len(word) >= MIN_CHARS and (len(word) > _PLAIN_CHARS or not word.isalpha())
