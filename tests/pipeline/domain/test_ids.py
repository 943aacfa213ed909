"""Thread keys as text: what goes in comes out, and nothing else is accepted."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey, new_id

PARTS = st.text(min_size=1, max_size=40)


@given(channel=PARTS, account=PARTS, chat=PARTS, topic=st.none() | PARTS)
def test_every_key_survives_its_codec(channel: str, account: str, chat: str, topic: str | None) -> None:
    key = ThreadKey(channel=channel, account=account, chat=chat, topic=topic)
    assert ThreadKey.decode(key.encode()) == key


@given(
    one=st.tuples(PARTS, PARTS, PARTS, st.none() | PARTS),
    other=st.tuples(PARTS, PARTS, PARTS, st.none() | PARTS),
)
def test_two_keys_never_share_a_text(
    one: tuple[str, str, str, str | None], other: tuple[str, str, str, str | None]
) -> None:
    first = ThreadKey(channel=one[0], account=one[1], chat=one[2], topic=one[3])
    second = ThreadKey(channel=other[0], account=other[1], chat=other[2], topic=other[3])
    assert (first == second) == (first.encode() == second.encode())


def test_the_text_is_the_documented_one() -> None:
    key = ThreadKey(channel="telegram", account="mainbot", chat="-1001234", topic="77")
    assert key.encode() == "telegram:mainbot:-1001234:77"


@given(text=st.text(max_size=60))
def test_a_text_that_decodes_is_the_canonical_one(text: str) -> None:
    try:
        key = ThreadKey.decode(text)
    except InvalidInput:
        return
    assert key.encode() == text


@pytest.mark.parametrize("text", ["", "a", "a:b", "a:b:c:d:e", "a::c", "a:b:%3a", "a:b:c%"])
def test_a_broken_text_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidInput, match="thread key"):
        # The last example is legal before the canonical check: a lone percent sign is always escaped.
        ThreadKey.decode(text)


def test_an_empty_topic_is_not_a_topic() -> None:
    with pytest.raises(InvalidInput, match="topic"):
        ThreadKey(channel="web", account="local", chat="c", topic="")


def test_fresh_ids_carry_their_prefix_and_differ() -> None:
    ids = {new_id("ses") for _ in range(100)}
    assert len(ids) == 100
    assert all(fresh.startswith("ses_") for fresh in ids)


def test_a_forked_process_gives_other_ids_than_its_parent() -> None:
    program = (
        "import os\nfrom pipeline.domain.ids import new_id\nnew_id('x')\nchild = os.fork()\n"
        "if child: os.wait()\nprint(*[new_id('x') for _ in range(70)], flush=True)"
    )
    done = subprocess.run((sys.executable, "-c", program), capture_output=True, text=True, check=True)
    ids = done.stdout.split()
    assert len(ids) == len(set(ids)) == 140
