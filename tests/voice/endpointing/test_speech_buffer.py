"""Chunks in order, joined as they are written, and back from the buffers."""

# ruff: noqa: RUF001 - the signs of many scripts

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from pipeline.domain.clock import ManualClock
from tests.support.tables import each
from voice.endpointing.speech_buffer import KeptBuffer, Numbering, SpeechBuffer
from voice.text import joined


@each(
    "chunks, text",
    [
        (["hello", "there"], "hello there"),
        (["hello", "."], "hello."),
        (["hello", ".", "And then", "?!"], "hello. And then?!"),
        (["he said", "“hello", "”", "."], "he said “hello”."),
        (["five", "%"], "five%"),
        (["今日は", "天気が", "いいです", "。"], "今日は天気がいいです。"),
        (["你好", "，", "世界"], "你好，世界"),
        (["我用", "Python", "写程序"], "我用 Python 写程序"),
        (["오늘은", "날씨가"], "오늘은 날씨가"),
        (["wait", "-", "what"], "wait - what"),
        (["one"], "one"),
        ([], ""),
        (["", "one", "", "two", ""], "one two"),
    ],
)
def test_chunks_are_joined_as_their_script_is_written(chunks: list[str], text: str) -> None:
    assert joined(chunks) == text


def empty() -> SpeechBuffer:
    return SpeechBuffer(generation="g", created_at=0.0, last_activity=0.0)


@pytest.mark.parametrize("seed", range(5))
def test_chunks_are_in_the_order_of_their_numbers(seed: int) -> None:
    order = list(range(12))
    random.Random(seed).shuffle(order)
    buffer = empty()
    for number in order:
        buffer = buffer.with_chunk(f"w{number}", sequence=number, ended_at=0.0)
    assert buffer.content == " ".join(f"w{number}" for number in range(12))


def test_a_chunk_without_a_number_is_behind_what_is_there() -> None:
    buffer = empty()
    for text, sequence in (("b", 1), ("c", None), ("d", None), ("a", 0), ("e", 2), ("f", None)):
        buffer = buffer.with_chunk(text, sequence=sequence, ended_at=0.0)
    assert buffer.content == "a b c d e f"


def test_an_older_chunk_moves_the_beginning_and_not_the_end() -> None:
    buffer = SpeechBuffer(generation="g", created_at=5.0, last_activity=5.0)
    buffer = buffer.with_chunk("late", sequence=None, ended_at=4.0)
    assert (buffer.created_at, buffer.last_activity) == (4.0, 5.0)


def test_a_number_is_taken_once() -> None:
    numbering: Numbering | None = Numbering()
    for number in (0, 2, 1, 5):
        assert numbering is not None
        numbering = numbering.take(number)
    assert numbering == Numbering(next=3, beyond=frozenset({5}))
    for number in (0, 1, 2, 5):
        assert numbering.take(number) is None


def test_what_was_given_up_is_taken_when_it_comes_late_and_holds_nothing_back() -> None:
    numbering = Numbering(next=3, beyond=frozenset({5, 7})).give_up()
    assert numbering == Numbering(next=8, missing=frozenset({3, 4, 6}))
    late = numbering.take(4)
    assert late == Numbering(next=8, missing=frozenset({3, 6}))
    assert late.take(4) is None
    assert late.take(8) == Numbering(next=9, missing=frozenset({3, 6}))


def test_numbers_from_anywhere_cost_no_memory() -> None:
    far = Numbering().take(10**15)
    assert far is not None
    given_up = far.give_up()
    assert given_up.next == 10**15 + 1
    assert len(given_up.missing) <= 1000


def kept(clock: ManualClock) -> KeptBuffer:
    buffer = SpeechBuffer(
        generation="abc", created_at=clock.monotonic() - 2, last_activity=clock.monotonic() - 1, language="de"
    )
    buffer = buffer.with_chunk("Hallo \ud800 Welt", sequence=4, ended_at=clock.monotonic())
    buffer = buffer.with_chunk("und", sequence=None, ended_at=clock.monotonic())
    return KeptBuffer(
        thread_id="web:main:ann",
        buffer=buffer,
        numbering=Numbering(next=3, beyond=frozenset({4})),
        reason=None,
    )


async def test_a_loaded_buffer_uses_the_time_of_the_new_process() -> None:
    here, there = ManualClock(), ManualClock()
    await here.advance(100)
    await there.advance(1000)
    there.step_wall(here.now() - there.now() + 7)
    one = kept(here)
    body = json.loads(json.dumps(one.to_body(here)))
    again = KeptBuffer.from_body(body, there)
    assert (again.thread_id, again.numbering, again.reason) == (one.thread_id, one.numbering, None)
    assert (again.buffer.chunks, again.buffer.content) == (one.buffer.chunks, one.buffer.content)
    assert again.buffer.gap
    assert again.buffer.created_at == pytest.approx(1000 - 2 - 7)
    assert again.buffer.last_activity == pytest.approx(1000 - 7)


async def test_a_wall_clock_that_was_set_back_makes_no_one_wait() -> None:
    here, there = ManualClock(), ManualClock()
    there.step_wall(-3600)
    again = KeptBuffer.from_body(kept(here).to_body(here), there)
    assert again.buffer.created_at == there.monotonic()
    assert again.buffer.last_activity == there.monotonic()


@pytest.mark.parametrize(
    "damage",
    [
        {"generation": None, "chunks": None},
        {"numbering": []},
        {"created_at": "yesterday"},
        {"reason": "boredom"},
        {"chunks": [["a"]]},
    ],
)
def test_what_is_no_buffer_is_refused_by_name(damage: dict[str, Any]) -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="not a speech buffer"):
        KeptBuffer.from_body({**kept(clock).to_body(clock), **damage}, clock)
    with pytest.raises(ValueError, match="not a speech buffer"):
        KeptBuffer.from_body({}, clock)
