"""Find the configured secrets exactly, in all the encodings in which texts contain them.

Not here: text that only looks like a secret (`patterns`).
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MARK = "[REDACTED]"
SHOWN = 4
"""Characters of a secret that stay visible, so that its owner can identify it."""
MIN_CHARS = 8
"""Shorter values are ignored: they may be ordinary words of any text."""
_SHOWN_FROM_CHARS = 16
"""A shorter secret is hidden whole: four visible characters would reveal too much."""
_MIN_BASE64_CHARS = 12
_PERCENT = re.compile(r"%[0-9A-F]{2}")


class KnownSecrets:
    """A set of secrets, compiled for searching."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if len(secret) >= MIN_CHARS for form in _forms(secret)}
        # Longest first: the first alternative that matches wins, and must not leave part of a longer secret.
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        self.is_empty = not ordered
        """Whether there is nothing to search for."""
        self._longest = len(ordered[0]) if ordered else 0
        self._by_first: dict[str, tuple[str, ...]] = {}
        for form in ordered:
            self._by_first[form[0]] = (*self._by_first.get(form[0], ()), form)
        # Grouped by first character: at most positions, one comparison rules out all secrets.
        found = (
            f"{re.escape(first)}(?:{'|'.join(re.escape(form[1:]) for form in starting)})"
            for first, starting in self._by_first.items()
        )
        self._found = re.compile("|".join(found)) if ordered else None
        self._first = re.compile("|".join(map(re.escape, self._by_first)))
        """Matches where a secret may begin. Not used without secrets."""
        self.may_begin = self._first.search
        """Finds the first place where a secret may begin; None if `redact` changes nothing, now and later."""

    def is_in(self, text: str) -> bool:
        """Whether `redact` would change `text`."""
        return self._found is not None and self._found.search(text) is not None

    def redact(self, text: str) -> str:
        """`text` with every secret replaced."""
        return text if self._found is None else self._found.sub(_masked, text)

    def settled(self, text: str) -> int:
        """How many characters of `text` can be redacted now: the rest may be the beginning of a secret that
        is not complete yet."""
        if self._found is None:
            return len(text)
        at, first_open = 0, len(text) - self._longest + 1
        for match in self._found.finditer(text):
            # Includes the beginning of the match: a longer secret may begin there as well.
            place = self._open_place(text, max(at, first_open), match.start() + 1)
            if place is not None:
                return place
            at = match.end()
        place = self._open_place(text, max(at, first_open), len(text))
        return len(text) if place is None else place

    def _open_place(self, text: str, at: int, end: int) -> int | None:
        """The first index in `at` to `end` from which the rest of `text` is the beginning of a secret."""
        for first in self._first.finditer(text, at, end):
            place = first.start()
            for form in self._by_first[first.group()]:
                if len(text) - place < len(form) and form.startswith(text[place:]):
                    return place
        return None


def _nowhere(_text: str) -> None:
    """No secret begins."""


class KnownStream:
    """Redacts a text in chunks, with the same result as for the whole text."""

    def __init__(self, known: KnownSecrets) -> None:
        self._known = known
        self.held = ""
        """What may be the beginning of a secret."""
        self.may_begin = _nowhere if known.is_empty else known.may_begin
        """Finds the first place in a text where a secret may begin. If there is none and nothing is held,
        `feed` returns the text as it is."""

    def feed(self, text: str) -> str:
        """The redacted text that is safe to show now."""
        if self._known.is_empty:
            return text
        text = self.held + text
        if not self._known.may_begin(text):
            self.held = ""
            return text
        end = self._known.settled(text)
        self.held = text[end:]
        return self._known.redact(text[:end])

    def finish(self) -> str:
        """The rest of the redacted text."""
        rest, self.held = self.held, ""
        return self._known.redact(rest)


def masked(secret: str) -> str:
    """The replacement for `secret` in a text. An escaped beginning is not shown, because half an escape would
    corrupt the text around it."""
    shown = secret[:SHOWN] if len(secret) >= _SHOWN_FROM_CHARS else ""
    return (shown if shown.isascii() and shown.replace("-", "").isalnum() else "") + MARK


def _masked(match: re.Match[str]) -> str:
    return masked(match.group())


def _forms(secret: str) -> set[str]:
    """The secret as it is, and as JSON, Python, HTML, a URL, base64 and hexadecimal encode it."""
    data = secret.encode("utf-8", "surrogatepass")
    quoted = {_quoted(secret, safe=safe) for safe in ("", "/")} | {quote_plus(data)}
    forms = {
        secret,
        secret.lower(),
        secret.upper(),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        ascii(secret)[1:-1],
        html.escape(secret, quote=False),
        html.escape(secret),
        html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
        *quoted,
        *map(_lower_percent, quoted),
        # Encoded twice, as in an address within an address.
        *(quote(once, safe="") for once in quoted),
        *(quote(_lower_percent(once), safe="") for once in quoted),
        data.hex(),
        data.hex().upper(),
    }
    return forms | _base64_forms(data)


def _quoted(secret: str, *, safe: str) -> str:
    return quote(secret.encode("utf-8", "surrogatepass"), safe=safe)


def _lower_percent(text: str) -> str:
    return _PERCENT.sub(lambda match: match.group().lower(), text)


def _base64_forms(secret: bytes) -> set[str]:
    """The base64 characters that depend on the secret alone, for each of its positions in the encoded data:
    after 0, 1 or 2 other bytes of a group of three."""
    forms = set()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + secret).rstrip(b"=").decode("ascii")
        first = -(-before * 8 // 6)
        last = (before + len(secret)) * 8 // 6
        core = encoded[first:last]
        if len(core) >= _MIN_BASE64_CHARS:
            forms |= {core, core.replace("+", "-").replace("/", "_")}
    return forms
