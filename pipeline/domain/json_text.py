"""Encoders of plain data as JSON text that are made once.

`json.JSONEncoder.encode` makes the encoder in C again for each text, which costs more than a short text.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable
from typing import Any

Pieces = Callable[[Any, int], Iterable[str]]
"""The pieces of the JSON text of a value, which `"".join` puts together; the second argument is 0. Raises
TypeError, ValueError or RecursionError for what is not plain data."""


def encoder(
    *,
    ascii_only: bool = False,
    nan: bool = False,
    separators: tuple[str, str] = (",", ":"),
    sort_keys: bool = False,
    default: Callable[[Any], Any] | None = None,
) -> Pieces:
    """What gives the text of `json.JSONEncoder(...).encode` with these settings. `separators` are those of
    items and of a key; `default` gives plain data for anything else. Data that holds itself is a
    RecursionError."""
    slow = json.JSONEncoder(
        ensure_ascii=ascii_only,
        allow_nan=nan,
        check_circular=False,
        separators=separators,
        sort_keys=sort_keys,
        default=default,
    )
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # an interpreter without the module in C
        return lambda value, _level: slow.iterencode(value)
    quoted = json.encoder.encode_basestring_ascii if ascii_only else json.encoder.encode_basestring
    skip_keys = False
    names = (slow.key_separator, slow.item_separator)
    pieces: Pieces = make(None, slow.default, quoted, None, *names, sort_keys, skip_keys, nan)
    return pieces
