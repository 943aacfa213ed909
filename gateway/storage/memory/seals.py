"""The keys of sealed bodies, as the other stores have them: a dictionary that all rows share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from gateway.storage.json_bodies import decode_body, encode_body
from gateway.storage.sealing import new_key, opened, sealed

Keys: TypeAlias = dict[str, bytes]
"""Each key under the id of its message or question."""


def kept_body(body: Mapping[str, Any], keys: Keys, name: str) -> str:
    """The body as text, sealed by a new key that is kept under `name`; unsealed for an empty name."""
    text = encode_body(body)
    if not name:
        return text
    keys[name] = new_key()
    return encode_body(sealed(body, keys[name]))


def readable(text: str, keys: Keys, name: str) -> dict[str, Any]:
    """The body, opened if it is sealed."""
    return opened(decode_body(text), keys.get(name))
