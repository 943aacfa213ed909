"""The frames between the gateway and the worker, in any cut and any nonsense."""

from __future__ import annotations

import io
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import each
from voice.audio.protocol import decoded_from_wire, segment_from_wire
from voice.errors import NOT_WORKING, AudioRefused, TranscriberUnavailable
from voice.streaming.vad_protocol import probabilities_from_wire
from voice.synthesis.protocol import spoken_from_wire
from voice.transcript import SpeechChunk, Transcript
from voice.transcription.protocol import segments_from_wire, transcript_from_wire, transcript_to_wire
from voice.workers.frames import (
    BrokenFrame,
    FrameReader,
    WorkerFrame,
    error_from_wire,
    error_to_wire,
    read_frame,
)

frames = st.builds(
    lambda text, body: WorkerFrame(header={"kind": text, "job": 1}, body=body),
    st.text(),
    st.binary(max_size=99),
)


@given(sent=st.lists(frames, max_size=6), cuts=st.integers(1, 37))
def test_frames_survive_any_cut_of_the_stream(sent: list[WorkerFrame], cuts: int) -> None:
    stream = b"".join(frame.encode() for frame in sent)
    reader = FrameReader(max_body_bytes=99)
    received = [
        frame for start in range(0, len(stream), cuts) for frame in reader.feed(stream[start : start + cuts])
    ]
    assert received == sent


@given(sent=st.lists(frames, max_size=3))
def test_a_blocking_reader_sees_the_same_frames_and_then_the_end(sent: list[WorkerFrame]) -> None:
    stream = io.BytesIO(b"".join(frame.encode() for frame in sent))
    assert [read_frame(stream, max_body_bytes=99) for _ in sent] == sent
    assert read_frame(stream, max_body_bytes=99) is None


def test_a_stream_that_ends_inside_a_frame_has_ended() -> None:
    whole = WorkerFrame(header={"kind": "transcribe"}, body=b"abc").encode()
    for end in range(len(whole)):
        assert read_frame(io.BytesIO(whole[:end]), max_body_bytes=99) is None


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xff" * 16,
        b"\x00\x00\x00\x02\x00\x00\x00\x00[]",
        b"\x00\x00\x00\x01\x00\x00\x00\x00{",
        b"\0\0\0\0" * 2,
        b"\x00\x01\x00\x00\x00\x00\x00\x00" + b"[" * 65_536,
    ],
)
def test_nonsense_is_a_broken_frame_and_not_a_request_for_memory(nonsense: bytes) -> None:
    with pytest.raises(BrokenFrame):
        list(FrameReader(max_body_bytes=99).feed(nonsense))


def test_a_transcript_crosses_unchanged() -> None:
    transcript = Transcript(
        chunks=(
            SpeechChunk(text="Grüße", start_s=0.5, end_s=1.5, confidence=0.75, no_speech_probability=0.25),
        ),
        language="de",
        language_probability=0.5,
        audio_seconds=2.0,
        truncated=True,
    )
    assert transcript_from_wire(transcript_to_wire(transcript)) == transcript


def test_a_transcript_with_a_missing_field_is_a_broken_frame() -> None:
    with pytest.raises(BrokenFrame, match="language"):
        transcript_from_wire({"chunks": []})


def test_a_refusal_keeps_its_code_and_words_and_anything_else_is_the_recognisers_fault() -> None:
    refused = error_from_wire(error_to_wire(AudioRefused("damaged", "It is broken.")))
    assert (type(refused), refused.code, str(refused)) == (AudioRefused, "damaged", "It is broken.")
    assert isinstance(error_from_wire({"code": "surprise"}), TranscriberUnavailable)
    kept = error_from_wire(error_to_wire(TranscriberUnavailable(detail="/models lacks\nmodel.bin")))
    assert (str(kept), kept.detail) == (NOT_WORKING, "/models lacks model.bin")


def answer(*, chunk: dict[str, Any] | None = None, **piece: Any) -> dict[str, Any]:
    words = {"text": "hi", "start_s": 0, "end_s": 1.5, "confidence": 0.9, "no_speech_probability": 0.0}
    heard = {"chunks": [{**words, **(chunk or {})}], "language": "en", "language_probability": 0.7, **piece}
    return {"kind": "heard", "pieces": [heard]}


def test_an_answer_about_pieces_is_read() -> None:
    (piece,) = segments_from_wire(answer(), count=1)
    assert (piece.language, piece.language_probability) == ("en", 0.7)
    assert [(chunk.text, chunk.start_s, chunk.end_s) for chunk in piece.chunks] == [("hi", 0.0, 1.5)]
    (silent,) = segments_from_wire(answer(chunks=[], language="", language_probability=0), count=1)
    assert silent.chunks == ()


@each(
    "nonsense",
    [
        {},
        {"kind": "heard", "pieces": []},
        {"kind": "heard", "pieces": [None]},
        {**answer(), "kind": "warm"},
        answer(language=None),
        answer(language="../../etc"),
        answer(language_probability=1.5),
        answer(chunks=None),
        answer(chunk={"text": 7}),
        answer(chunk={"text": "x" * 20_000}),
        answer(chunk={"end_s": -1}),
        answer(chunk={"start_s": 3.0}),
        answer(chunk={"confidence": math.nan}),
        answer(chunk={"confidence": True}),
        answer(chunk={"end_s": 10**400}),
        answer(chunk={"no_speech_probability": "0"}),
    ],
)
def test_an_answer_that_no_sound_recogniser_gives_is_a_broken_frame(nonsense: dict[str, Any]) -> None:
    with pytest.raises(BrokenFrame):
        segments_from_wire(nonsense, count=1)


@pytest.mark.parametrize(
    "nonsense",
    [
        {},
        {"streams": None},
        {"streams": [{"probabilities": [0.5]}]},
        {"streams": [{"probabilities": [0.5, math.nan]}]},
        {"streams": [{"probabilities": [0.5, 1.5]}]},
        {"streams": [{"probabilities": [0.5, 10**400]}]},
        {"streams": [{"probabilities": [0.5, "0"]}]},
    ],
)
def test_probabilities_that_are_none_are_a_broken_frame(nonsense: dict[str, Any]) -> None:
    with pytest.raises(BrokenFrame):
        probabilities_from_wire(nonsense, frames=[2])


@pytest.mark.parametrize(
    "nonsense",
    [
        {"seconds": math.inf},
        {"seconds": math.nan},
        {"seconds": 10**400},
        {"seconds": 60.1},
        {"pieces": math.inf},
        {"pieces": 1.5},
        {"pieces": True},
        {"container": "m3u8"},
    ],
)
def test_an_end_of_a_recording_that_is_none_is_a_broken_frame(nonsense: dict[str, Any]) -> None:
    sound = {"seconds": 60, "truncated": True, "container": "ogg", "pieces": 3}
    assert decoded_from_wire(sound, max_seconds=60.0).seconds == 60.0
    for wrong in ({**sound, **nonsense}, {}):
        with pytest.raises(BrokenFrame):
            decoded_from_wire(wrong, max_seconds=60.0)


@each(
    "nonsense",
    [
        {"index": math.inf},
        {"index": None},
        {"index": -1},
        {"spans": []},
        {"spans": None},
        {"spans": [[0, 10**400]]},
        {"spans": [[0, math.nan]]},
        {"spans": [[2, 1]]},
        {"kind": "decoded"},
    ],
)
def test_a_piece_that_is_none_is_a_broken_frame(nonsense: dict[str, Any]) -> None:
    header = {"kind": "piece", "index": 2, "spans": [[0, 1], [2, 2.5]]}
    piece = segment_from_wire(WorkerFrame(header=header, body=b"ab"))
    assert (piece.index, piece.spans) == (2, ((0.0, 1.0), (2.0, 2.5)))
    for wrong in (
        WorkerFrame(header={**header, **nonsense}, body=b"ab"),
        WorkerFrame(header=header, body=b"abc"),
    ):
        with pytest.raises(BrokenFrame):
            segment_from_wire(wrong)


def test_probabilities_are_read_stream_by_stream() -> None:
    streams = {"streams": [{"probabilities": [0, 1.0]}, {"probabilities": [0.25]}]}
    assert probabilities_from_wire(streams, frames=[2, 1]) == [(0.0, 1.0), (0.25,)]


@pytest.mark.parametrize(
    "nonsense",
    [
        {"seconds": math.nan},
        {"seconds": 10**400},
        {"waveform": "zz"},
        {"waveform": None},
        {"waveform": "00" * 257},
        {"body": b"RIFF"},
    ],
)
def test_a_voice_message_that_is_none_is_a_broken_frame(nonsense: dict[str, Any]) -> None:
    header = {"seconds": 1.5, "waveform": "00ff"}
    sound = spoken_from_wire(WorkerFrame(header=header, body=b"OggS"))
    assert (sound.seconds, sound.waveform, sound.data) == (1.5, b"\x00\xff", b"OggS")
    with pytest.raises(BrokenFrame):
        spoken_from_wire(WorkerFrame(header={**header, **nonsense}, body=nonsense.get("body", b"OggS")))
