"""Bodies as text: how every store keeps the plain JSON data it is given.

Writing the text at the call makes the stored body independent of the caller's object. Not a
schema: what a body means is the business of whoever writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.domain.errors import StorageError


def encode_body(body: Mapping[str, Any]) -> str:
    """`body` as compact JSON text that UTF-8 can hold. Raises StorageError when it is not plain data."""
    try:
        text = _COMPACT.encode(dict(body))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"a body must be plain JSON data, and this one is not: {error}") from error
    if not text.isascii() and _has_lone_surrogate(text):
        return _ASCII.encode(dict(body))
    return text


def decode_body(text: str) -> dict[str, Any]:
    """A fresh copy of the body behind `encode_body`'s text."""
    body: dict[str, Any] = json.loads(text)
    return body


FORGOTTEN = '{"text":""}'
"""What is left of a body that was forgotten: it shows nothing."""


def storable_text(text: str) -> str:
    """`text` with whatever UTF-8 cannot hold replaced by a question mark: for foreign error texts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


_COMPACT = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain)
# Lone surrogates survive only as escapes, so a body that has one pays for the longer form.
_ASCII = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"), default=_plain)
