"""The fair queue: bounded, in turns, and honest about who is heard when."""

from __future__ import annotations

import copy
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.transcription.fair_queue import Ahead, FairQueue, Rank, Speed, WaitingSegment

entries = st.builds(
    lambda speaker, number, rank, seconds: WaitingSegment(
        recording=(speaker, number), speaker=speaker, rank=rank, seconds=float(seconds), payload=object()
    ),
    st.sampled_from("abc"),
    st.integers(0, 2),
    st.sampled_from(Rank),
    st.integers(1, 20),
)


def entry(
    speaker: str, *, rank: Rank = Rank.NOTE, seconds: float = 5.0, recording: str | None = None
) -> WaitingSegment[str]:
    name = recording or speaker
    return WaitingSegment(recording=name, speaker=speaker, rank=rank, seconds=seconds, payload=name)


def filled(*waiting: WaitingSegment[str], max_seconds: float = 1e9) -> FairQueue[str]:
    queue = FairQueue[str](max_seconds=max_seconds)
    assert all(queue.add(one) for one in waiting)
    return queue


def taken(queue: FairQueue[str]) -> list[str]:
    order = []
    while batch := queue.take_batch(recognisers=99):
        order += [one.payload for one in batch]
    return order


@given(waiting=st.lists(entries, max_size=25))
def test_what_the_queue_foretells_is_what_it_gives_and_nothing_is_lost(
    waiting: list[WaitingSegment[object]],
) -> None:
    queue = FairQueue[object](max_seconds=1e9)
    for one in waiting:
        assert queue.add(one)
    foretold = list(queue.in_order())
    given_out = [queue.take_batch(recognisers=99)[0] for _ in waiting]
    assert given_out == foretold
    assert set(given_out) == set(waiting)
    assert queue.take_batch() == ()


@given(waiting=st.lists(entries, max_size=25))
def test_between_two_turns_of_a_speaker_everybody_else_who_waits_has_one(
    waiting: list[WaitingSegment[object]],
) -> None:
    queue = FairQueue[object](max_seconds=1e9)
    for one in waiting:
        queue.add(one)
    order = list(queue.in_order())
    for rank in Rank:
        line = [one.speaker for one in order if one.rank is rank]
        for position, speaker in enumerate(line):
            rest = line[position + 1 :]
            if speaker in rest:
                assert set(rest[: rest.index(speaker)]) == set(rest) - {speaker}
    per_speaker: dict[tuple[str, Rank], list[WaitingSegment[object]]] = {}
    for one in order:
        per_speaker.setdefault((one.speaker, one.rank), []).append(one)
    for theirs in per_speaker.values():
        assert all(waiting.index(first) < waiting.index(second) for first, second in pairwise(theirs))


@given(waiting=st.lists(entries, max_size=25), limit=st.integers(1, 60))
def test_more_than_the_limit_waits_only_where_one_recording_waits_alone(
    waiting: list[WaitingSegment[object]], limit: int
) -> None:
    queue = FairQueue[object](max_seconds=float(limit))
    for one in waiting:
        queue.add(one)
        for live in (True, False):
            inside = [kept for kept in queue.in_order() if (kept.rank is Rank.FINAL) is live]
            seconds = sum(kept.seconds for kept in inside)
            assert seconds <= limit or len({kept.recording for kept in inside}) == 1


@given(waiting=st.lists(entries, max_size=25), recognisers=st.integers(1, 4))
def test_a_batch_is_one_or_two_of_a_kind_and_never_live_speech(
    waiting: list[WaitingSegment[object]], recognisers: int
) -> None:
    queue = FairQueue[object](max_seconds=1e9)
    for one in waiting:
        queue.add(one)
    while batch := queue.take_batch(recognisers=recognisers):
        assert len(batch) in (1, 2)
        if len(batch) == 2:
            assert batch[0].rank is batch[1].rank is not Rank.FINAL
            assert len(queue) + 2 > recognisers


def test_speakers_take_turns_however_much_one_of_them_sends() -> None:
    many = [entry("a", recording=f"a{number}") for number in range(4)]
    queue = filled(*many, entry("b"), entry("c"))
    assert taken(queue) == ["a0", "b", "c", "a1", "a2", "a3"]


def test_live_speech_comes_before_notes_and_notes_before_the_rest_of_long_ones() -> None:
    queue = filled(entry("long", rank=Rank.REST), entry("note"), entry("live", rank=Rank.FINAL))
    assert taken(queue) == ["live", "note", "long"]


def test_a_stream_of_short_notes_cannot_stop_a_long_one() -> None:
    queue = filled(entry("long", rank=Rank.REST), *(entry(f"s{number}") for number in range(8)))
    assert taken(queue).index("long") == 4


def test_a_long_recording_that_waits_alone_is_never_too_long_but_the_next_one_is() -> None:
    queue = filled(
        entry("a", seconds=20.0, rank=Rank.REST), entry("a", seconds=20.0, rank=Rank.REST), max_seconds=30.0
    )
    assert not queue.add(entry("b", seconds=1.0))
    assert queue.add(entry("live", seconds=20.0, rank=Rank.FINAL))


def test_two_notes_go_together_only_when_others_could_not_take_the_second() -> None:
    assert len(filled(entry("a"), entry("b")).take_batch(recognisers=2)) == 1
    assert len(filled(entry("a"), entry("b")).take_batch(recognisers=1)) == 2
    assert len(filled(entry("a"), entry("b", seconds=25.0)).take_batch(recognisers=1)) == 1


def test_an_entry_that_is_put_back_is_the_next_and_alone() -> None:
    queue = filled(entry("a"), entry("b"))
    (first,) = queue.take_batch(recognisers=2)
    queue.put_back(first)
    assert len(copy.deepcopy(queue).take_batch(recognisers=1)) == 1
    assert taken(queue) == ["a", "b"]


def test_a_recording_is_withdrawn_whole_and_the_others_stay() -> None:
    queue = filled(entry("a"), entry("a", rank=Rank.REST), entry("b"))
    assert len(queue.withdraw("a")) == 2
    assert taken(queue) == ["b"]
    assert queue.withdraw("a") == ()


def test_what_is_ahead_counts_recordings_and_seconds() -> None:
    queue = filled(entry("a", seconds=3.0), entry("b", seconds=4.0), entry("a", rank=Rank.REST, seconds=9.0))
    assert queue.ahead() == {
        "a": Ahead(recordings=0, seconds=0.0),
        "b": Ahead(recordings=1, seconds=3.0),
    }


def test_the_estimate_starts_from_the_stated_speed_and_follows_what_is_measured() -> None:
    speed = Speed()
    assert speed.eta_s(100.0, workers=2) == pytest.approx(100 * Speed.FIRST_GUESS / 2)
    for _ in range(50):
        speed.learn(wall_s=5.0, speech_s=10.0)
    assert speed.eta_s(100.0, workers=2) == pytest.approx(25.0, rel=0.01)
    speed.learn(wall_s=1.0, speech_s=0.0)
    assert speed.eta_s(100.0, workers=2) == pytest.approx(25.0, rel=0.01)
