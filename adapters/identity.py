"""Derive message ids from the platform's identity of an event. The inbox removes duplicates."""

from __future__ import annotations

import hashlib

_HEX_DIGITS = 20


def derived_message_id(channel: str, account: str, native_id: str) -> str:
    """The same id for every redelivery: `m_` and 80 bits of a hash over the three parts, in hex.

    The parts are length-prefixed, so that different triples never give the same text.
    """
    parts = [part.encode("utf-8", "surrogatepass") for part in (channel, account, native_id)]
    hashed = b"".join([piece for part in parts for piece in (len(part).to_bytes(8, "big"), part)])
    return f"m_{hashlib.sha256(hashed).hexdigest()[:_HEX_DIGITS]}"
