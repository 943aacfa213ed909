"""Which links are live, and what their words say."""

from __future__ import annotations

from adapters.formatting.links import WEB, resolve
from tests.support.tables import each

_ALL = WEB | {"mailto", "tg"}


@each(
    "label, address, shown",
    [
        ("here", "https://example.com/a", ("here", "https://example.com/a")),
        ("", "https://example.com/a", ("https://example.com/a", "https://example.com/a")),
        ("example.com", "https://example.com/a", ("example.com", "https://example.com/a")),
        ("www.example.com", "https://example.com", ("www.example.com", "https://example.com")),
        ("example.com", "https://docs.example.com", ("example.com", "https://docs.example.com")),
        ("bank.com", "https://evil.com", ("bank.com (evil.com)", "https://evil.com")),
        ("https://bank.com/x", "https://evil.com", ("https://bank.com/x (evil.com)", "https://evil.com")),
        ("https://localhost", "https://evil.com", ("https://localhost (evil.com)", "https://evil.com")),
        ("docs.bank.com", "https://bank.com", ("docs.bank.com (bank.com)", "https://bank.com")),
        ("bank\u3002com", "https://evil.com", ("bank\u3002com (evil.com)", "https://evil.com")),
        ("b\u202ea", "https://evil.com", ("ba", "https://evil.com")),
        ("a", "https://evil.com/a b|c>", ("a", "https://evil.com/ab%7Cc%3E")),
        ("a", "HTTPS://Example.com", ("a", "https://Example.com")),
        ("mail", "mailto:a@example.com", ("mail", "mailto:a@example.com")),
        ("boss@bank.com", "mailto:x@evil.com", ("boss@bank.com (evil.com)", "mailto:x@evil.com")),
        ("a", "tg://resolve?domain=x", ("a", "tg://resolve?domain=x")),
        ("a", "tg://user?id=1", ("a (tg://user?id=1)", "")),
        ("a", "javascript:alert(1)", ("a (javascript:alert(1))", "")),
        ("a", "https://bank.com@evil.com/", ("a (https://bank.com@evil.com/)", "")),
        ("a", "https://user:pass@evil.com", ("a (https://user:pass@evil.com)", "")),
        ("a", "http://localhost:8080", ("a (http://localhost:8080)", "")),
        ("a", "https://evil.com:99999/", ("a (https://evil.com:99999/)", "")),
        ("a", "https://[::1", ("a (https://[::1)", "")),
        ("a", "/relative", ("a (/relative)", "")),
        ("a", "", ("a", "")),
        ("", "", ("", "")),
    ],
)
def test_a_link_is_live_or_written_out_and_names_its_host(
    label: str, address: str, shown: tuple[str, str]
) -> None:
    assert resolve(label, address, schemes=_ALL) == shown


def test_a_scheme_that_a_channel_does_not_open_is_written_out() -> None:
    assert resolve("mail", "mailto:a@example.com", schemes=WEB) == ("mail (mailto:a@example.com)", "")


def test_an_address_that_is_too_long_to_judge_is_written_out() -> None:
    address = "https://example.com/" + "x" * 1000
    assert resolve("a", address, schemes=WEB) == (f"a ({address})", "")
