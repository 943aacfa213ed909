"""Encode bodies as JSON text, for every store.

Encoding at the call makes the stored body independent of the caller's object. This module defines no schema;
the caller defines what a body contains.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from pipeline.domain.errors import StorageError
from pipeline.domain.json_text import encoder


def encode_body(body: Mapping[str, Any]) -> str:
    """`body` as compact JSON text that UTF-8 can hold. Raises StorageError when it is not plain data."""
    try:
        text = "".join(_COMPACT(dict(body), 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise StorageError(f"a body must be plain JSON data, and this one is not: {error}") from error
    if not text.isascii() and _has_lone_surrogate(text):
        return "".join(_ASCII(dict(body), 0))
    return text


def encode_checked(body: Mapping[str, Any]) -> str:
    """As `encode_body`, in a third of the time, for a body that is known to be plain data, such as the
    records of a run, whose state is frozen. Other data would be changed silently."""
    try:
        return _CHECKED.encode(dict(body)).decode()
    except (TypeError, ValueError, RecursionError):
        # A lone surrogate, among others.
        return encode_body(body)


def encode_record(kind: str, body: Mapping[str, Any]) -> str:
    """The body of a record of a thread's log. The engine has checked what a step holds."""
    return encode_checked(body) if kind == "step" else encode_body(body)


def decode_body(text: str) -> dict[str, Any]:
    """A new copy of the body from `encode_body`'s text."""
    body: dict[str, Any]
    try:
        body = _DECODER.decode(text)
    except ValueError:
        # A lone surrogate, or a number out of range.
        body = json.loads(text)
    return body


SEALED = "sealed"
"""The field of a sealed body (`gateway.storage.sealing`) with what is sealed, in base64; empty where the key
is gone."""

SEALED_TEXT = f'{{"{SEALED}":'
"""The beginning of the text of each sealed body, and of no other."""

FORGOTTEN = '{"text":""}'
"""The body that replaces a forgotten one: it has no text."""


def storable_text(text: str) -> str:
    """`text` with question marks for characters that UTF-8 cannot hold, for foreign error texts."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _plain(value: object) -> object:
    # The type of frozen data first: `isinstance` is slow for an abstract class, and so is `dict` for a view.
    if type(value) is MappingProxyType:
        return value.copy()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not plain data")


def _has_lone_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


_CHECKED = msgspec.json.Encoder(enc_hook=_plain)
_DECODER = msgspec.json.Decoder()
_COMPACT = encoder(default=_plain)
# Lone surrogates can only be stored as escapes, so a body with one is stored in the longer form.
_ASCII = encoder(ascii_only=True, default=_plain)
