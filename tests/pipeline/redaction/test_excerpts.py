"""The beginning of a text: cut behind its secrets, never through one, and at the price of what is shown."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.redaction.known import KnownSecrets
from pipeline.redaction.redactor import _MOST_CLEAN, Excerpt, Redactor, StreamingRedactor
from tests.pipeline.redaction.secrets_made import Made, made_secrets
from tests.support.tables import each

CONFIGURED = ("Zq7-horse-battery-staple", "two words and 9 more", "k3ys/with+signs==", "Ünïcode-sécret-99")
KNOWN = Redactor(lambda: CONFIGURED)
CUT = 120
LEAST = 6
"""A beginning of so many characters is more than an owner needs to tell which secret it was."""
SWALLOWED = 65_536


def _filler(chars: int) -> str:
    """So many characters of words, with a space at the end."""
    return "".join("a word and "[-1 - at % 11] for at in range(chars))[::-1]


@pytest.mark.parametrize("secret", CONFIGURED)
def test_no_half_of_a_configured_secret_is_left_at_any_cut(secret: str) -> None:
    for before in range(CUT - len(secret) - 2, CUT + 3):
        text = _filler(before) + secret + " and more" * 100
        found = KNOWN.excerpt(text, CUT)
        assert found.text == KNOWN.text(text)[:CUT]
        assert secret[:LEAST] not in found.text
        assert secret[:LEAST] not in KNOWN.line(text, CUT)
        # The same where somebody else has cut the text, at every place of the secret.
        torn = KNOWN.excerpt(text[:CUT], CUT, is_cut=True)
        assert secret[:LEAST] not in torn.text
        assert not torn.whole


@each("made", made_secrets(13, seed=3))
def test_no_half_of_what_looks_like_a_secret_is_left_at_any_cut(made: Made) -> None:
    for before in range(CUT - len(made.text) - 2, CUT + 3):
        text = _filler(max(0, before)) + made.text + "\nand more" * 30
        assert KNOWN.excerpt(text, CUT).text == KNOWN.text(text)[:CUT]


@pytest.mark.parametrize("secret", CONFIGURED)
def test_a_secret_on_the_outer_edge_is_not_halved_where_others_bring_it_into_sight(secret: str) -> None:
    material = "-----BEGIN PRIVATE KEY-----\n" + "A" * (CUT + SWALLOWED)
    for inside in range(len(secret) + 1):
        text = material[: CUT + SWALLOWED - inside - 1] + "\n" + secret + " and more" * 1_000
        found = KNOWN.excerpt(text, CUT)
        assert KNOWN.text(text).startswith(found.text)
        assert secret[:LEAST] not in found.text
        assert not found.whole


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from([*CONFIGURED, "password = ", "hunter2hunter", "-----BEGIN", " ", "\n", "a"])),
    st.integers(0, 80),
)
def test_an_excerpt_is_the_beginning_of_the_redacted_text(parts: list[str], chars: int) -> None:
    text = "".join(parts)
    whole, found = KNOWN.text(text), KNOWN.excerpt(text, chars)
    assert found.text == whole[:chars]
    assert found.whole == (len(whole) <= chars)


def test_an_excerpt_with_room_for_a_long_text_is_the_text_to_its_end() -> None:
    # What may begin a secret is held back until the text has ended.
    text = _filler(5_000) + "password:"
    assert KNOWN.excerpt(text, len(text)) == Excerpt(text, whole=True)
    assert KNOWN.excerpt(text, len(text) - 1) == Excerpt(text[:-1], whole=False)


def test_a_bounded_number_of_clean_texts_is_remembered() -> None:
    redactor = Redactor(lambda: CONFIGURED)
    assert all(redactor.is_clean(f"thread {number}") for number in range(_MOST_CLEAN + 10))
    assert len(redactor._clean) == 10
    assert not redactor.is_clean(CONFIGURED[0])


def test_a_line_is_one_line_and_says_where_it_is_cut() -> None:
    assert KNOWN.line(" one\n two\t three ", 13) == "one two three"
    assert KNOWN.line("one\n two three", 12) == "one two thr…"
    assert "two words" not in KNOWN.line("so: two\n  words and\n\t9 more; and that is it", 80)


@pytest.mark.parametrize("chars", [300, 1_000, 5_000, 20_000])
def test_a_line_shows_the_beginning_of_a_text_without_a_space(chars: int) -> None:
    minified = '{"rows":[' + '{"id":17,"name":"a"},' * (chars // 20) + "]}"
    assert KNOWN.line(minified, 80) == minified[:79] + "…"
    assert KNOWN.line(f"so: {minified}", 80) == f"so: {minified[:75]}…"
    assert KNOWN.line("\n" * 300 + minified, 80) == minified[:79] + "…"


@pytest.mark.parametrize("secret", CONFIGURED)
def test_a_line_shows_no_half_of_a_secret_in_a_text_without_a_space(secret: str) -> None:
    for before in range(CUT - len(secret) - 2, CUT + 3):
        for behind in (100, 5_000):
            assert secret[:LEAST] not in KNOWN.line("." * before + secret + "." * behind, CUT)


def test_ten_megabytes_cost_what_is_shown_of_them() -> None:
    fed = 0

    class Counting(StreamingRedactor):
        def feed(self, chunk: str) -> str:
            nonlocal fed
            fed += len(chunk)
            return super().feed(chunk)

    class Watched(Redactor):
        def stream(self) -> StreamingRedactor:
            return Counting(KnownSecrets(CONFIGURED))

    chosen = random.Random(1)
    words = " ".join(chosen.choice(("tree", "stone", "x" * 300)) for _ in range(200_000))
    for text in (words[:10_000_000], "x" * 10_000_000, "-----BEGIN PRIVATE KEY-----\n" + "A" * 10_000_000):
        fed = 0
        Watched().excerpt(text, 5_000)
        assert fed <= 5_000 + SWALLOWED
