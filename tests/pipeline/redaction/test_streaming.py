"""Secrets never leak, whole or cut anywhere; a stream says what the whole text would say."""

from __future__ import annotations

import base64
import random
import time
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.redaction.known import MARK
from pipeline.redaction.redactor import Redactor
from tests.pipeline.redaction.secrets_made import Made, leaks, made_secrets
from tests.support.tables import each

MADE = made_secrets(300)
AROUND = (("", ""), ("Here it is: ", " and so on."), ('{"a": "', '"}'), ("见", "。好"), ("x\n", "\ny"))
CONFIGURED = ("7f3c9a1e-configured secret value", 'a"quote\\and-more', "ünïcödé-geheim-9")


@each("made", MADE[:40])
def test_a_secret_cut_anywhere_in_two_is_redacted_as_if_whole(made: Made) -> None:
    redactor = Redactor()
    for before, after in AROUND:
        text = before + made.text + after
        whole = redactor.text(text)
        assert MARK in whole
        assert not leaks(whole, made.secret), whole
        for cut in range(len(text) + 1):
            stream = redactor.stream()
            first = stream.feed(text[:cut])
            assert whole.startswith(first)
            assert first + stream.feed(text[cut:]) + stream.finish() == whole


@each("made", MADE)
def test_no_secret_survives_any_chunking(made: Made) -> None:
    redactor, chosen = Redactor(), random.Random(made.text)
    for before, after in AROUND[:3]:
        text = before + made.text + after
        whole = redactor.text(text)
        assert not leaks(whole, made.secret), whole
        for cut in range(0, len(text) + 1, max(1, len(text) // 20)):
            stream = redactor.stream()
            assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish() == whole
        for longest in (1, 3, 17):
            assert _in_chunks(redactor, text, chosen, longest) == whole


def _in_chunks(redactor: Redactor, text: str, chosen: random.Random, longest: int) -> str:
    stream, shown, at = redactor.stream(), "", 0
    while at < len(text):
        size = chosen.randint(1, longest)
        shown += stream.feed(text[at : at + size])
        at += size
    return shown + stream.finish()


@pytest.mark.parametrize("secret", CONFIGURED)
def test_a_configured_secret_is_found_in_every_spelling(secret: str) -> None:
    redactor = Redactor(lambda: CONFIGURED)
    for spelling in (
        secret,
        quote(secret, safe=""),
        base64.b64encode(f"user:{secret}".encode()).decode(),
        base64.urlsafe_b64encode(f"x{secret}".encode()).decode(),
    ):
        for text in (f"a {spelling} b", f"見{spelling}見", spelling):
            whole = redactor.text(text)
            assert MARK in whole
            assert not any(spelling[at : at + 8] in whole for at in range(8, len(spelling) - 8))
            for cut in range(len(text) + 1):
                stream = redactor.stream()
                assert stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.finish() == whole


def test_a_configured_secret_that_begins_another_is_replaced_with_it() -> None:
    redactor = Redactor(lambda: ("abcdefgh", "abcdefgh-and-more"))
    assert redactor.text("x abcdefgh-and-more y") == "x abcd[REDACTED] y"
    assert redactor.text("x abcdefgh-and-mor y") == "x [REDACTED]-and-mor y"


_PIECES = st.sampled_from(
    ["-", "-----", "-----BEGIN ", "PRIVATE KEY-----", "\n", "\\n", " ", "=", ":", '"', "\\", "password",
     "Bearer", "eyJ", "abcdefgh", "abcdefgh-and", "a1b2c3d4e5f6", "A" * 24, "sk-", "://u:", "@h", "x",
     "é", "見", ".", "token"]
)  # fmt: skip


@given(pieces=st.lists(_PIECES, max_size=14), cuts=st.lists(st.integers(0, 120), max_size=6))
@settings(max_examples=300, deadline=None)
def test_however_a_text_is_cut_the_stream_says_what_the_whole_says(
    pieces: list[str], cuts: list[int]
) -> None:
    redactor = Redactor(lambda: ("abcdefgh", "abcdefgh-and-more"))
    text = "".join(pieces)
    whole = redactor.text(text)
    stream, shown, at = redactor.stream(), "", 0
    for cut in sorted(cuts):
        shown += stream.feed(text[at:cut]) if cut > at else ""
        at = max(at, cut)
    assert shown + stream.feed(text[at:]) + stream.finish() == whole
    assert redactor.text(whole) == whole


@pytest.mark.parametrize("at", [0, 100, 2030, 2047, 4060, 4090, 4096, 9001])
def test_a_secret_within_an_endless_word_is_found_wherever_it_is(at: int) -> None:
    redactor = Redactor()
    for before, secret, after in (
        ("", "ghp_" + "a1B2" * 9, ""),
        ("https://u:", "hunter2secret9", "@example.org"),
        ("", "sk-" + "Ab3" * 1500, ""),
    ):
        text = "-" * at + "/" + before + secret + after + "/" + "-" * 5000
        whole = redactor.text(text)
        assert not leaks(whole, secret), at
        for chunk in (1000, 4095, 4097):
            stream = redactor.stream()
            parts = [stream.feed(text[n : n + chunk]) for n in range(0, len(text), chunk)]
            assert "".join(parts) + stream.finish() == whole


@each("unit", [
     "a", "eyJ", "eyJ-", "eyJaaaaaaaaaaaaa.", "://a:", "://a:b", "sk-a", "token=", "1:", "12345678:",
     "-----BEGIN ", "-", "PRIVATE KEY-----", "xoxb-", "AKIA", "password ", "Bearer ", "\\n", "M.", "a@",
     "token=a1", "gsk_a", "SG.a", "a.atlasv1.", "1Q~", "Cookie: a=", "curl -u a:",
     "hooks.slack.com/services/", "0123456789abcdef", "access-sandbox-", "A3-"])  # fmt: skip
def test_a_text_made_to_be_slow_is_not(unit: str) -> None:
    chars = 1_000_000 if unit == "token=" else 60_000  # what made it slow once; the others less
    text = unit * (chars // len(unit))
    begun = time.process_time()
    Redactor(lambda: CONFIGURED).text(text)
    # A safety net of more than ten times what it takes.
    assert time.process_time() - begun < 10
