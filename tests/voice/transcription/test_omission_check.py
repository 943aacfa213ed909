"""Words that the recogniser leaves out, noticed by the seconds of speech and heard in halves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from voice.transcript import SpeechChunk
from voice.transcription.engine_io import EngineJob, EngineResult
from voice.transcription.omission_check import CheckedEngine, cutting_frame

FRAME_BYTES = 1024
VOICE, PAUSE = b"\1", b"\0"
WORDS_A_SECOND = 4


def frames(*parts: tuple[float, bytes]) -> bytes:
    """Sound in which a voice speaks for so many seconds, or does not."""
    return b"".join(kind * (round(seconds * 31.25) * FRAME_BYTES) for seconds, kind in parts)


def activity(pcm: bytes) -> Sequence[float]:
    return [0.9 if pcm[at] else 0.1 for at in range(0, len(pcm), FRAME_BYTES)]


def spoken(job: EngineJob) -> list[float]:
    """The seconds of each sentence in a piece: what is between pauses."""
    parts = job.pcm.split(PAUSE * FRAME_BYTES)
    return [len(part) / 32_000 for part in parts if len(part) >= FRAME_BYTES]


@dataclass
class OneSentence:
    """An engine that hears the first sentence of each piece and stops, as Whisper sometimes does."""

    sentences: int = 1
    low_below_s: float = 0.0
    """Pieces shorter than this are heard with a low confidence."""
    asked: list[EngineJob] = field(default_factory=list)

    def transcribe(self, jobs: Sequence[EngineJob]) -> list[EngineResult]:
        self.asked += jobs
        return [self._heard(job) for job in jobs]

    def _heard(self, job: EngineJob) -> EngineResult:
        said = spoken(job)[: self.sentences]
        if not said:
            return EngineResult(chunks=(), language="", language_probability=0.0, low=False)
        chunk = SpeechChunk(
            text=f"{len(said)} said",
            start_s=job.spans[0][0],
            end_s=job.spans[-1][1],
            confidence=0.9,
            no_speech_probability=0.0,
        )
        return EngineResult(
            chunks=(chunk,),
            language="en",
            language_probability=0.9,
            low=job.seconds < self.low_below_s,
            tokens=round(WORDS_A_SECOND * sum(said)),
        )


def job(pcm: bytes, *, start_s: float = 10.0) -> EngineJob:
    return EngineJob(pcm=pcm, spans=((start_s, start_s + len(pcm) / 32_000),), prompt="before")


def test_a_sentence_that_was_left_out_behind_a_pause_is_heard_apart_and_keeps_its_place() -> None:
    engine = OneSentence()
    piece = job(frames((3.2, VOICE), (0.64, PAUSE), (3.2, VOICE)))
    (heard,) = CheckedEngine(engine, activity).transcribe([piece])
    assert [chunk.text for chunk in heard.chunks] == ["1 said", "1 said"]
    first, second = heard.chunks
    assert first.start_s == 10.0
    assert second.end_s == pytest.approx(17.04)
    assert first.end_s == second.start_s == pytest.approx(13.52, abs=0.04)
    assert heard.tokens == 26
    assert [(one.language, one.likely_language, one.prompt) for one in engine.asked[1:]] == [
        ("en", "en", "before"),
        ("en", "en", ""),
    ]


def test_three_sentences_of_which_one_was_heard_are_heard_all() -> None:
    pause = (0.48, PAUSE)
    piece = job(frames((2.56, VOICE), pause, (2.56, VOICE), pause, (2.56, VOICE)))
    (heard,) = CheckedEngine(OneSentence(), activity).transcribe([piece])
    assert len(heard.chunks) == 3


def test_speech_that_is_heard_whole_is_heard_once_and_the_detector_is_not_asked() -> None:
    engine = OneSentence(sentences=9)

    def never(pcm: bytes) -> Sequence[float]:
        raise AssertionError(f"asked about {len(pcm)} bytes")

    pieces = [job(frames((3.2, VOICE), (0.32, PAUSE), (3.2, VOICE)))] * 2
    CheckedEngine(engine, never).transcribe(pieces)
    assert engine.asked == pieces


def test_long_silence_beside_few_words_is_no_reason_to_hear_twice() -> None:
    engine = OneSentence()
    piece = job(frames((4.8, PAUSE), (1.6, VOICE), (4.8, PAUSE)))
    CheckedEngine(engine, activity).transcribe([piece])
    assert engine.asked == [piece]


def test_slow_speech_is_kept_as_it_was_heard_and_tried_at_most_six_times_more() -> None:
    class Slow(OneSentence):
        def _heard(self, job: EngineJob) -> EngineResult:
            heard = super()._heard(job)
            return EngineResult(
                chunks=heard.chunks,
                language="en",
                language_probability=0.9,
                low=False,
                tokens=round(job.seconds),
            )

    engine = Slow()
    (heard,) = CheckedEngine(engine, activity).transcribe([job(frames((19.2, VOICE)))])
    assert len(heard.chunks) == 1
    assert len(engine.asked) == 1 + 2 + 4


def test_words_that_halves_only_guess_do_not_replace_words_that_are_sure() -> None:
    engine = OneSentence(low_below_s=5.0)
    piece = job(frames((3.2, VOICE), (0.64, PAUSE), (3.2, VOICE)))
    (heard,) = CheckedEngine(engine, activity).transcribe([piece])
    assert len(heard.chunks) == 1


def test_where_no_one_speaks_nothing_is_tried_again() -> None:
    engine = OneSentence()
    piece = job(frames((9.6, PAUSE)))
    (heard,) = CheckedEngine(engine, activity).transcribe([piece])
    assert (heard.chunks, engine.asked) == ((), [piece])


@pytest.mark.parametrize(
    ("probabilities", "frame"),
    [
        ([0.9] * 40 + [0.1] * 10 + [0.9] * 40, 45),
        ([0.9] * 40 + [0.1] * 4 + [0.9] * 30 + [0.1] * 10 + [0.9] * 40, 79),
        ([0.9] * 40 + [0.5] * 5 + [0.9] * 40, 42),
        ([0.9] * 48, None),
        ([0.1] * 20 + [0.9] * 40 + [0.5] * 5 + [0.9] * 40, 62),
    ],
)
def test_the_cut_lies_in_the_longest_pause_that_leaves_words_on_both_sides(
    probabilities: list[float], frame: int | None
) -> None:
    assert cutting_frame(probabilities) == frame
