"""Codes that people type: their form and their hash."""

from __future__ import annotations

import hashlib
import secrets

CODE_CHARS = 8
_ALPHABET = "ACDEFHJKMNPQRTUVWXY3479"
"""Leaves out characters that are easily confused: 0 O, 1 I L, 2 Z, 5 S, 8 B, 6 G."""


def new_code() -> str:
    """A random code: one of 23 to the power of 8."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(CODE_CHARS))


def is_code(words: str) -> bool:
    """Whether `words` have the form of a code, also of a mistyped one."""
    return len(_plain(words)) == CODE_CHARS


def hash_of(code: str) -> str:
    """The hash that the store keeps of a code. Case, spaces and hyphens do not matter."""
    plain = _plain(code)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def _plain(words: str) -> str:
    return "".join(letter for letter in words.upper() if letter.isalnum())
