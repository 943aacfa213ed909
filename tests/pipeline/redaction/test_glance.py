"""A glance at a text is enough where nothing in it can be a secret; it never says so of one that has one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.redaction.known import KnownSecrets
from pipeline.redaction.patterns import FOUND, KEY_NAMES, may_hold_secret
from pipeline.redaction.redactor import Redactor
from tests.pipeline.redaction.secrets_made import Made, made_secrets
from tests.support.tables import each

_VALUE = "a1B2c3D4" * 5
_PIECES = st.sampled_from(
    ["AKIA", "ASIA", "ghs_", "github_pat_", "glpat-", "npm_", "hf_", "rk_test_", "sk_live_", "sk-", "AIza",
     "xoxe-", "xapp-", "123456:", "MabcdefghijABCDEFGHIJ01234", ".abcdef.", "eyJ", ".", "://", "u:", "@", "h",
     "pa\u017f\u017fword", "AP\u0130_KEY", "ap\u0131key", "ACCESS_KEY_ID", "SecretKey", "passwd",
     "Authorization:", "bearer", "=", " ", "\n", '"', "x", "A" * 16, _VALUE]
)  # fmt: skip


@given(pieces=st.lists(_PIECES, max_size=8))
@settings(max_examples=500, deadline=None)
def test_whatever_is_found_is_seen_at_a_glance(pieces: list[str]) -> None:
    text = "".join(pieces)
    if FOUND.search(text):
        assert may_hold_secret(text)
    # The stream takes no glance at the whole.
    redactor = Redactor(lambda: ("a-configured-secret",))
    stream = redactor.stream()
    assert redactor.text(text) == stream.feed(text) + stream.finish()


@each("made", [one for one in made_secrets(80) if one.kind != "private_key"])
def test_every_kind_of_secret_is_seen_at_a_glance(made: Made) -> None:
    assert may_hold_secret(f"x {made.text} y")


@each("name", [*KEY_NAMES, "authorization", "bearer"])
def test_every_name_before_a_secret_is_seen_at_a_glance(name: str) -> None:
    assert may_hold_secret(f"the {name.upper()} is: {_VALUE}")
    assert may_hold_secret(name.replace("_", ""))


@each("text", ["", "You said: hi", '{"seconds": 0.012, "event": "turn ended"}', "日本語"])
def test_ordinary_text_is_given_back_as_the_same_object(text: str) -> None:
    assert Redactor(lambda: ("a-configured-secret",)).text(text) is text


def test_a_configured_secret_is_seen_in_every_spelling() -> None:
    known = KnownSecrets(('a"quote\\and-more',))
    assert known.is_in('x a"quote\\and-more')
    assert known.is_in("a%22quote%5Cand-more")
    assert not known.is_in('a"quote\\and-less')
