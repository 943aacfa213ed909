"""The transcriber behind an address, against a real HTTP server that speaks the protocol."""

from __future__ import annotations

import asyncio
import logging
import math
import wave
from collections.abc import AsyncIterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.support.transcription_server import SEGMENT, VERBOSE, Behaviour, FakeTranscriptionServer
from tests.voice.clips import CLIPS, samples_of, wav
from voice.audio.decoder_client import Decoder
from voice.errors import (
    AudioRefused,
    RecogniserError,
    TranscriberBusy,
    TranscriberUnavailable,
    TranscriptionTimeout,
)
from voice.settings import TranscriptionSettings
from voice.transcriber import Recording
from voice.transcription.languages import language_code
from voice.transcription.remote_transcriber import EndpointTranscriber

SECRET = "sk-very-secret"
SHORT = CLIPS["lj001-0002"]
SETTINGS = TranscriptionSettings(model_dir=Path("/nowhere"), deadline_floor_s=60.0, queue_limit=0)


in_one_loop = pytest.mark.asyncio(loop_scope="module")
"""Of the tests that share `decoder`."""


class LastingDecoder(Decoder):
    """Outlives the transcribers that it is given to."""

    async def close(self) -> None:
        """Nothing: see `end`."""

    async def end(self) -> None:
        """What `close` does elsewhere."""
        await super().close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def decoder() -> AsyncIterator[Decoder]:
    made = LastingDecoder(SETTINGS)
    yield made
    await made.end()


@pytest_asyncio.fixture(loop_scope="module")
async def server() -> AsyncIterator[FakeTranscriptionServer]:
    async with FakeTranscriptionServer() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="module")
async def endpoint(server: FakeTranscriptionServer, decoder: Decoder) -> AsyncIterator[EndpointTranscriber]:
    made = transcriber(server, decoder)
    yield made
    await made.close()


def transcriber(server: FakeTranscriptionServer, decoder: Decoder, **settings: Any) -> EndpointTranscriber:
    return EndpointTranscriber(
        "openai/whisper-1",
        api_base=server.api_base,
        api_key=lambda: SECRET,
        settings=replace(SETTINGS, **settings),
        decoder=decoder,
    )


@in_one_loop
async def test_speech_is_sent_as_wav_and_comes_back_with_times_and_confidence(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    heard = await endpoint.transcribe(Recording(data=SHORT.data, language="en"))
    (chunk,) = heard.chunks
    assert chunk.text == "Hello from the service."
    assert chunk.confidence == pytest.approx(math.exp(-0.25))
    assert chunk.no_speech_probability == 0.125
    assert 0 <= chunk.start_s < chunk.end_s <= 1.0
    assert (heard.language, heard.language_probability) == ("en", 1.0)
    (request,) = server.requests
    assert request.fields["model"] == "whisper-1"
    assert request.fields["language"] == "en"
    assert request.authorization == f"Bearer {SECRET}"
    with wave.open(BytesIO(request.file)) as sent:
        assert (sent.getframerate(), sent.getnchannels(), sent.getsampwidth()) == (16_000, 1, 2)
        assert sent.getnframes() > 16_000


@in_one_loop
async def test_silence_is_not_sent_to_the_endpoint(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    heard = await endpoint.transcribe(Recording(data=CLIPS["silence"].data))
    assert (heard.chunks, heard.language) == ((), "")
    with pytest.raises(AudioRefused):
        await endpoint.transcribe(Recording(data=b"#EXTM3U\nfile:///etc/passwd\n"))
    assert server.requests == []


@in_one_loop
async def test_times_are_those_of_the_recording_and_not_of_what_was_sent(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    late = wav(bytes(32_000 * 5) + samples_of(SHORT))
    (chunk,) = (await endpoint.transcribe(Recording(data=late))).chunks
    assert 4.0 < chunk.start_s < chunk.end_s < 7.0


@in_one_loop
async def test_a_service_without_probabilities_is_asked_plainly_from_then_on(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    server.plain_only = True
    heard = await endpoint.transcribe(Recording(data=SHORT.data, likely_language="de"))
    assert [chunk.text for chunk in heard.chunks] == ["Hello from the service."]
    assert heard.chunks[0].confidence == 0.8
    assert heard.language == "de"
    await endpoint.transcribe(Recording(data=SHORT.data))
    assert [one.fields["response_format"] for one in server.requests] == ["verbose_json", "json", "json"]


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, TranscriberUnavailable, "did not accept the key"),
        (404, TranscriberUnavailable, "does not know the model"),
        (413, TranscriberUnavailable, "refused the recording (413)"),
        (429, TranscriberBusy, "takes no more recordings now (429)"),
        (500, TranscriberUnavailable, "cannot be reached now (500)"),
        (503, TranscriberUnavailable, "cannot be reached now (503)"),
    ],
)
@in_one_loop
async def test_what_goes_wrong_there_is_reported_in_words_and_never_shows_the_key(
    server: FakeTranscriptionServer,
    endpoint: EndpointTranscriber,
    caplog: pytest.LogCaptureFixture,
    status: int,
    error: type[RecogniserError],
    words: str,
) -> None:
    server.script.append(Behaviour(status=status))
    with caplog.at_level(logging.DEBUG), pytest.raises(error) as caught:
        await endpoint.transcribe(Recording(data=SHORT.data))
    assert words in caught.value.detail
    assert endpoint.status() == caught.value.detail
    assert "whisper-1" not in str(caught.value)
    assert str(status) not in str(caught.value)
    assert not caught.value.permanent
    assert caught.value.__cause__ is None
    assert SECRET not in str(caught.value) + endpoint.status() + repr(endpoint) + caplog.text
    assert len(server.requests) == 1
    assert (await endpoint.transcribe(Recording(data=SHORT.data))).chunks != ()
    assert endpoint.status() == "ready"


@in_one_loop
async def test_a_service_that_does_not_answer_is_given_up_at_the_deadline(
    server: FakeTranscriptionServer, decoder: Decoder
) -> None:
    endpoint = transcriber(server, decoder, deadline_floor_s=2.0)
    server.script.append(Behaviour(hang=True))
    try:
        await endpoint.warm_up()
        with pytest.raises(TranscriptionTimeout):
            await endpoint.transcribe(Recording(data=SHORT.data))
    finally:
        await endpoint.close()


@in_one_loop
async def test_a_service_that_is_not_there_is_unavailable(
    server: FakeTranscriptionServer, decoder: Decoder
) -> None:
    endpoint = transcriber(server, decoder)
    await server.__aexit__()
    try:
        with pytest.raises(TranscriberUnavailable, match="again later") as caught:
            await endpoint.transcribe(Recording(data=SHORT.data))
        assert "cannot be reached now" in caught.value.detail
    finally:
        await endpoint.close()


@in_one_loop
async def test_closing_fails_the_call_under_way(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    server.script.append(Behaviour(hang=True))

    async def outcome() -> Exception | None:
        try:
            await endpoint.transcribe(Recording(data=SHORT.data))
        except RecogniserError as error:
            return error
        return None

    async with asyncio.TaskGroup() as group:
        call = group.create_task(outcome())
        await server.arrived.wait()
        await endpoint.close()
    assert isinstance(call.result(), TranscriberUnavailable)


@in_one_loop
async def test_what_is_only_shown_meanwhile_is_not_paid_for(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    with pytest.raises(TranscriberBusy):
        await endpoint.transcribe(Recording(data=samples_of(SHORT), form="pcm", urgency="partial"))
    assert server.requests == []


@in_one_loop
async def test_an_answer_full_of_nonsense_numbers_is_kept_within_bounds(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    odd = {**SEGMENT, "start": 90.0, "end": -4.0, "avg_logprob": 3.0, "no_speech_prob": 7.0}
    server.script.append(Behaviour(body={**VERBOSE, "language": "klingon", "segments": [odd]}))
    heard = await endpoint.transcribe(Recording(data=SHORT.data))
    (chunk,) = heard.chunks
    assert (chunk.confidence, chunk.no_speech_probability) == (1.0, 1.0)
    assert 0 <= chunk.start_s <= chunk.end_s <= heard.audio_seconds
    assert heard.language == ""


@in_one_loop
async def test_a_confidence_beyond_all_bounds_costs_no_words(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    server.script.append(Behaviour(body={**VERBOSE, "segments": [{**SEGMENT, "avg_logprob": 1e4}]}))
    (chunk,) = (await endpoint.transcribe(Recording(data=SHORT.data))).chunks
    assert (chunk.text, chunk.confidence) == ("Hello from the service.", 1.0)


@in_one_loop
async def test_words_outside_the_segments_are_heard(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    server.script.append(Behaviour(body={**VERBOSE, "segments": [{"id": 0, "start": 0.0, "end": 1.0}]}))
    heard = await endpoint.transcribe(Recording(data=SHORT.data))
    assert [chunk.text for chunk in heard.chunks] == ["Hello from the service."]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("english", "en"),
        ("German", "de"),
        ("pt-BR", "pt"),
        ("haitian creole", "ht"),
        ("klingon", ""),
        ("", ""),
    ],
)
def test_a_languages_name_is_read_as_its_code(name: str, code: str) -> None:
    assert language_code(name) == code


@in_one_loop
async def test_sentences_with_a_pause_between_them_are_sent_with_silence_and_keep_their_times(
    server: FakeTranscriptionServer, endpoint: EndpointTranscriber
) -> None:
    speech = samples_of(SHORT)
    segments = [
        {**SEGMENT, "start": 0.2, "end": 1.5, "text": "One."},
        {**SEGMENT, "start": 3.6, "end": 4.8, "text": "Two."},
    ]
    server.script.append(Behaviour(body={**VERBOSE, "segments": segments}))
    said = wav(speech + bytes(32_000 * 5) + speech)
    first, second = (await endpoint.transcribe(Recording(data=said))).chunks
    assert (first.text, second.text) == ("One.", "Two.")
    assert 0 <= first.start_s < first.end_s < 3.0
    assert 6.5 < second.start_s < second.end_s < 9.0
    (request,) = server.requests
    with wave.open(BytesIO(request.file)) as sent:
        seconds = sent.getnframes() / 16_000
    assert 4.0 < seconds < 6.0
