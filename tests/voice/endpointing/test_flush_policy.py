"""When a buffer is a message: the verdict on values, without a clock that runs."""

from __future__ import annotations

import pytest

from tests.support.tables import each
from voice.endpointing.flush_policy import Flush, FlushSettings, Idle, Verdict, Wait, decide
from voice.endpointing.speech_buffer import FlushReason, SpeechBuffer

SETTINGS = FlushSettings()
REQUEST = "Please summarise this"
DANGLING = "the weather is nice and"
SENTENCE = "Hello there my friend."


def buffer(
    *texts: str, at: float = 0.0, complete: bool = False, gap: bool = False, speaking: bool = False
) -> SpeechBuffer:
    made = SpeechBuffer(
        generation="g", created_at=0.0, last_activity=0.0, complete=complete, gap=gap, speaking=speaking
    )
    for text in texts:
        made = made.with_chunk(text, sequence=None, ended_at=at)
    return made


def flush(reason: FlushReason) -> Flush:
    return Flush(reason=reason)


@pytest.mark.parametrize(
    ("now", "verdict"),
    [
        (0.0, Wait(until=1.5)),
        (1.49, Wait(until=1.5)),
        (1.5, flush("complete_thought")),
        (2.99, flush("complete_thought")),
        (3.0, flush("silence")),
        (14.9, flush("silence")),
        (15.0, flush("max_time")),
    ],
)
def test_a_complete_thought_waits_for_the_pause(now: float, verdict: Verdict) -> None:
    assert decide(buffer(REQUEST), now, SETTINGS) == verdict


@each("now, verdict", [(0.0, Wait(until=3.0)), (1.5, Wait(until=3.0)), (3.0, flush("silence"))])
@each("text", [DANGLING, "yes", "Yes.", "Stop!", "thank you", "I paid $3."])
def test_what_dangles_or_is_short_waits_for_the_silence(text: str, now: float, verdict: Verdict) -> None:
    assert decide(buffer(text), now, SETTINGS) == verdict


def test_a_sentence_of_the_least_length_waits_for_nothing() -> None:
    assert decide(buffer(SENTENCE), 0.0, SETTINGS) == flush("sentence")


@pytest.mark.parametrize(("length", "verdict"), [(19, Wait(until=3.0)), (20, flush("sentence"))])
def test_twenty_characters_are_enough_and_nineteen_are_not(length: int, verdict: Verdict) -> None:
    text = "a" * (length - 1) + "."
    assert decide(buffer(text), 0.0, SETTINGS) == verdict


@pytest.mark.parametrize(
    "text", ["Yesterday I paid $3.", "I would like to see Dr.", "Well, I thought that..."]
)
def test_a_dot_that_may_mean_something_else_is_no_reason_to_flush_at_once(text: str) -> None:
    assert isinstance(decide(buffer(text), 0.0, SETTINGS), Wait)


def test_a_number_with_a_dot_goes_after_the_pause() -> None:
    assert decide(buffer("Yesterday I paid $3."), 1.5, SETTINGS) == flush("complete_thought")


@pytest.mark.parametrize("now", [0.0, 3.0, 15.0, 1000.0])
@pytest.mark.parametrize("complete", [True, False])
def test_what_is_empty_is_never_flushed(now: float, complete: bool) -> None:
    assert decide(buffer(complete=complete), now, SETTINGS) == Idle()


def test_speech_marked_as_complete_goes_at_once_however_short() -> None:
    assert decide(buffer("ok", complete=True), 0.0, SETTINGS) == flush("complete")


@pytest.mark.parametrize(
    "held",
    [buffer(SENTENCE, gap=True), buffer("ok", complete=True, gap=True), buffer("yes", gap=True)],
)
def test_a_gap_holds_back_everything_but_the_deadline(held: SpeechBuffer) -> None:
    for now in (0.0, 1.5, 3.0, 14.9):
        assert decide(held, now, SETTINGS) == Wait(until=15.0)
    assert decide(held, 15.0, SETTINGS) == flush("max_time")


@pytest.mark.parametrize("text", [REQUEST, DANGLING, SENTENCE, "yes"])
def test_while_somebody_speaks_only_the_deadline_counts(text: str) -> None:
    for now in (0.0, 1.5, 3.0, 14.9):
        assert decide(buffer(text, speaking=True), now, SETTINGS) == Wait(until=15.0)
    assert decide(buffer(text, speaking=True), 15.0, SETTINGS) == flush("max_time")


def test_anyone_who_speaks_and_marks_it_complete_is_not_kept_waiting() -> None:
    assert decide(buffer("ok", complete=True, speaking=True), 0.0, SETTINGS) == flush("complete")


def test_the_pause_is_counted_from_the_last_words_and_the_deadline_from_the_first() -> None:
    late = buffer("Please summarise", "this", at=13.0)
    assert late.created_at == 0.0
    assert decide(late, 14.0, SETTINGS) == Wait(until=14.5)
    assert decide(buffer("Please summarise", "this", at=14.0), 14.0, SETTINGS) == Wait(until=15.0)


def test_the_last_digit_of_a_sum_does_not_make_it_wait() -> None:
    assert decide(buffer(REQUEST, at=0.1), 1.5999999999999996, SETTINGS) == flush("complete_thought")


def test_too_much_text_is_flushed_as_if_its_time_were_over() -> None:
    settings = FlushSettings(max_chars=30)
    assert isinstance(decide(buffer("a" * 30), 0.0, settings), Wait)
    assert decide(buffer("a" * 31), 0.0, settings) == flush("max_time")
    assert decide(buffer("a" * 31, speaking=True, gap=True), 0.0, settings) == flush("max_time")


@pytest.mark.parametrize(
    "wrong",
    [{"pause_s": 0}, {"pause_s": 4}, {"silence_s": 16}, {"max_s": 1}, {"min_chars": -1}, {"max_chars": 0}],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="speech: "):
        FlushSettings(**wrong)
