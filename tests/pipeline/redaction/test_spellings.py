"""A configured secret is found in every spelling in which programs write it down."""

from __future__ import annotations

import html
import json
from urllib.parse import quote, quote_plus

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.redaction.redactor import Redactor
from tests.support.tables import each

SECRET = "Zw/9+k<\"&'é\n7Q~ab"


def _lower(text: str) -> str:
    parts = text.split("%")
    return parts[0] + "".join(f"%{part[:2].lower()}{part[2:]}" for part in parts[1:])


SPELLINGS = {
    "as it is": SECRET,
    "lower case": SECRET.lower(),
    "upper case": SECRET.upper(),
    "json": json.dumps(SECRET)[1:-1],
    "python": repr(SECRET)[1:-1],
    "python in ascii": ascii(SECRET)[1:-1],
    "html": html.escape(SECRET),
    "html in numbers": html.escape(SECRET).replace("&#x27;", "&#39;").replace("&quot;", "&#34;"),
    "percent": quote(SECRET, safe=""),
    "percent in lower case": _lower(quote(SECRET, safe="")),
    "form": quote_plus(SECRET),
    "percent twice": quote(quote(SECRET, safe=""), safe=""),
    "percent in lower case twice": quote(_lower(quote(SECRET, safe="")), safe=""),
    "hexadecimal": SECRET.encode().hex(),
    "hexadecimal in upper case": SECRET.encode().hex().upper(),
}


@each("spelling", SPELLINGS.values())
def test_a_configured_secret_is_found_however_it_is_written(spelling: str) -> None:
    redactor = Redactor(lambda: (SECRET,))
    text = f"it says ({spelling}) and ends"
    shown = redactor.text(text)
    beginning = spelling[:4] if spelling[:4].isalnum() else ""  # not of an escape: it would spoil the text
    assert shown == f"it says ({beginning}[REDACTED]) and ends"
    stream = redactor.stream()
    assert "".join(map(stream.feed, text)) + stream.finish() == shown
    assert redactor.configured(text) == shown


@settings(max_examples=60)
@given(st.text(min_size=8, max_size=40))
def test_any_secret_has_its_spellings(secret: str) -> None:
    redactor = Redactor(lambda: (secret,))
    assert secret not in redactor.configured(f"<{secret}>")
    encoded = secret.encode("utf-8", "surrogatepass")
    assert encoded.hex() not in redactor.configured(encoded.hex())
