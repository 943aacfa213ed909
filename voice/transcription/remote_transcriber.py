"""Transcribe with any remote service that implements OpenAI's transcription API, through litellm.

Files are decoded here first, by the same sandboxed decoder: limits apply, and silence is not sent.
Not here: retries (the user can press the button), choice of the service.

litellm is large, so it is imported by `warm_up` or the first call, in a thread.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import io
import logging
import math
import os  # only for the switches that litellm reads while it is imported
import urllib.request
import warnings
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, Protocol

from voice.audio.segments import Decoded, SpeechSegment
from voice.audio.spans import SpeechSpans
from voice.errors import (
    SHUTTING_DOWN,
    TranscriberBusy,
    TranscriberUnavailable,
    TranscriptionTimeout,
    VoiceError,
)
from voice.settings import TranscriptionSettings
from voice.text import joined
from voice.transcriber import Growing, OnProgress, Recording
from voice.transcript import SAMPLE_RATE, SpeechChunk, Transcript
from voice.transcription.languages import language_code

_AT_ONCE = 4
_MOST_SILENCE_S = 1.0
"""The longest pause sent between two segments: without a pause a recogniser joins separate sentences."""
_REQUEST_S = 300.0
"""Seconds of speech in one request: 10 MB, where services take 25."""
_SOCKET_TIMEOUT_S = 600
"""One value for all calls: litellm keeps one connection pool per distinct timeout. Deadlines are set here."""
_UNKNOWN_CONFIDENCE = 0.8
"""For a service without confidence values: high enough not to ask back, but not certain."""
_NO_KEY = "none"
"""Without a key, litellm would send an environment variable's key that is meant for OpenAI."""
_UNREACHED = "Recordings cannot be heard at the moment. Please send yours again later, or type your message."
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")


class SpeechDecoder(Protocol):
    """The needed part of `voice.audio.decoder_client.Decoder`."""

    async def decode(
        self,
        data: bytes,
        *,
        form: Literal["file", "pcm"] = "file",
        on_segment: Callable[[SpeechSegment], None],
    ) -> Decoded: ...

    async def warm_up(self) -> None: ...

    async def close(self) -> None: ...


class EndpointTranscriber:
    """Implements `Transcriber`. `model` is litellm's `provider/name`, `api_base` the service's address.

    `api_key` is called for each request and may raise TranscriberUnavailable. Neither the key nor
    a service's message about it is ever shown. `close` also closes the decoder. A `partial` is refused: it is
    not worth a paid call.
    """

    def __init__(
        self,
        model: str,
        *,
        api_base: str | None,
        api_key: Callable[[], str] | None,
        settings: TranscriptionSettings,
        decoder: SpeechDecoder,
    ) -> None:
        self._model = model
        self._api_base = api_base
        self._api_key = api_key
        self._settings = settings
        self._decoder = decoder
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._admitted = 0
        self._deadlines: set[asyncio.Timeout] = set()
        self._library: Any = None
        self._formats = ["verbose_json", "json"]
        """The response formats that the service offers, best first."""
        self._status = "not started"
        self._closed = False

    def __repr__(self) -> str:
        return f"EndpointTranscriber(model={self._model!r}, api_base={self._api_base!r})"

    async def transcribe(self, recording: Recording, *, on_progress: OnProgress | None = None) -> Transcript:
        self._refuse_when_closed()
        if recording.urgency == "partial" or self._admitted >= self._settings.queue_limit + _AT_ONCE:
            raise TranscriberBusy
        self._admitted += 1
        try:
            segments: list[SpeechSegment] = []
            decoded = await self._decoder.decode(
                recording.data, form=recording.form, on_segment=segments.append
            )
            async with self._turns:
                return await self._transcribe(recording, decoded, segments, on_progress)
        finally:
            self._admitted -= 1

    async def warm_up(self) -> None:
        self._refuse_when_closed()
        await self._decoder.warm_up()
        await self._litellm()
        self._status = "ready"

    async def close(self) -> None:
        self._closed = True
        for deadline in self._deadlines:
            deadline.reschedule(asyncio.get_running_loop().time())
        await self._decoder.close()
        if self._library is not None:
            # The pools are shared: a language model's client in use reconnects.
            await self._library.close_litellm_async_clients()
            self._library.in_memory_llm_clients_cache.flush_cache()
            self._library = None

    def status(self) -> str:
        return "closed" if self._closed else self._status

    async def _transcribe(
        self,
        recording: Recording,
        decoded: Decoded,
        segments: Sequence[SpeechSegment],
        on_progress: OnProgress | None,
    ) -> Transcript:
        chunks: list[SpeechChunk] = []
        language = ""
        groups = tuple(_groups(segments))
        for number, group in enumerate(groups, start=1):
            answer = await self._answer(recording, group)
            chunks += _chunks(answer, group)
            language = language or language_code(str(_field(answer, "language") or ""))
            if on_progress is not None and number < len(groups) and chunks:
                text = joined([chunk.text for chunk in chunks])
                on_progress(Growing(text=text, covered_s=group[-1].spans[-1][1]))
        if groups:
            self._status = "ready"
        spoken = language or recording.language or self._settings.language or recording.likely_language or ""
        return Transcript(
            chunks=tuple(chunks),
            language=spoken if chunks else "",
            # Services report no probability; a requested language is certain.
            language_probability=(1.0 if recording.language else _UNKNOWN_CONFIDENCE) if chunks else 0.0,
            audio_seconds=decoded.seconds,
            truncated=decoded.truncated,
        )

    async def _answer(self, recording: Recording, segments: Sequence[SpeechSegment]) -> Any:
        """The service's answer for some segments, in the best format it offers. Raises RecogniserError."""
        pcm = _with_pauses(segments)
        deadline_s = max(self._settings.deadline_floor_s, len(pcm) / 32_000)
        self._refuse_when_closed()
        litellm = await self._litellm()
        while True:
            wanted = self._formats[0]
            try:
                async with asyncio.timeout(deadline_s) as deadline:
                    self._deadlines.add(deadline)
                    try:
                        return await litellm.atranscription(**self._arguments(recording, pcm, wanted))
                    finally:
                        self._deadlines.discard(deadline)
            except TimeoutError:
                self._refuse_when_closed()
                raise self._noted(TranscriptionTimeout()) from None
            except VoiceError as error:
                raise self._noted(error) from None  # raised by `api_key`
            except Exception as error:  # noqa: BLE001 - litellm raises a family per provider
                if _status_of(error) in (400, 415, 422) and self._formats[0] != "json":
                    self._formats = ["json"]
                    continue
                # `from None` keeps a key that the original may quote out of logs.
                raise self._noted(self._failure(_status_of(error))) from None

    def _arguments(self, recording: Recording, pcm: bytes, response_format: str) -> dict[str, Any]:
        optional = {
            "language": recording.language or self._settings.language,
            "prompt": recording.prompt or None,
        }
        return {
            "model": self._model,
            "file": ("speech.wav", _wav(pcm), "audio/wav"),
            "api_base": self._api_base,
            "api_key": self._api_key() if self._api_key is not None else _NO_KEY,
            "response_format": response_format,
            "drop_params": True,
            "timeout": _SOCKET_TIMEOUT_S,
            "num_retries": 0,
            "max_retries": 0,
            **{name: value for name, value in optional.items() if value is not None},
        }

    def _failure(self, status: int | None) -> VoiceError:
        """The error with our text and the operator's remedy as its detail; of the service's own text only the
        status number, because that text may quote the key."""
        where = f"The transcription service of {self._model!r}"
        if status == 429:
            return TranscriberBusy(detail=f"{where} takes no more recordings now ({status}).")
        if status in (408, 504):
            return TranscriptionTimeout()
        if status in (401, 403):
            return TranscriberUnavailable(detail=f"{where} did not accept the key: check the key of voice.")
        if status == 404:
            return TranscriberUnavailable(
                detail=f"{where} does not know the model: check its name and address."
            )
        if status is not None and 400 <= status < 500:
            return TranscriberUnavailable(
                detail=f"{where} refused the recording ({status}): check model and address."
            )
        number = f" ({status})" if status is not None else ""
        return TranscriberUnavailable(_UNREACHED, detail=f"{where} cannot be reached now{number}.")

    async def _litellm(self) -> Any:
        if self._library is None:
            _ignore_its_warnings()
            try:
                self._library = await asyncio.to_thread(_import_litellm)
            except ImportError:
                raise self._noted(
                    TranscriberUnavailable(detail="The litellm library cannot be imported: reinstall it.")
                ) from None
        return self._library

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise TranscriberUnavailable(SHUTTING_DOWN)

    def _noted(self, error: VoiceError) -> VoiceError:
        self._status = error.for_operator
        return error


def _groups(segments: Sequence[SpeechSegment]) -> Iterator[list[SpeechSegment]]:
    """The segments in order, grouped into requests of at most 300 s."""
    group: list[SpeechSegment] = []
    for segment in segments:
        if group and sum(other.seconds for other in group) + segment.seconds > _REQUEST_S:
            yield group
            group = []
        group.append(segment)
    if group:
        yield group


def _pauses(segments: Sequence[SpeechSegment]) -> list[float]:
    """Seconds of silence sent after each segment; none after the last."""
    between = [after.spans[0][0] - before.spans[-1][1] for before, after in pairwise(segments)]
    return [*(min(_MOST_SILENCE_S, max(0.0, pause_s)) for pause_s in between), 0.0]


def _with_pauses(segments: Sequence[SpeechSegment]) -> bytes:
    """The samples to send: the segments with their pauses."""
    silences = (bytes(2 * round(pause_s * SAMPLE_RATE)) for pause_s in _pauses(segments))
    return b"".join(
        part for segment, silence in zip(segments, silences, strict=True) for part in (segment.pcm, silence)
    )


def _sent_spans(segments: Sequence[SpeechSegment]) -> list[tuple[float, float]]:
    """The spans of the sent samples in the recording: each pause belongs to the span before it."""
    spans: list[tuple[float, float]] = []
    for segment, pause_s in zip(segments, _pauses(segments), strict=True):
        *before, (start, end) = segment.spans
        spans += [*before, (start, end + pause_s)]
    return spans


def _chunks(answer: Any, segments: Sequence[SpeechSegment]) -> list[SpeechChunk]:
    """The words with their times in the recording: per segment where the service returns segments."""
    parts = _field(answer, "segments")
    if isinstance(parts, Sequence):
        times = SpeechSpans(_sent_spans(segments))
        chunks = [chunk for part in parts if (chunk := _chunk(part, times)) is not None]
        if chunks:
            return chunks
    text = str(_field(answer, "text") or "").strip()
    whole = SpeechChunk(
        text=text,
        start_s=segments[0].spans[0][0],
        end_s=segments[-1].spans[-1][1],
        confidence=_UNKNOWN_CONFIDENCE,
        no_speech_probability=0.0,
    )
    return [whole] if text else []


def _chunk(part: Any, times: SpeechSpans) -> SpeechChunk | None:
    text = str(_field(part, "text") or "").strip()
    if not text:
        return None
    log_probability = _finite(_field(part, "avg_logprob"))
    start_s = _number(_field(part, "start"))
    start_s, end_s = times.in_recording(start_s, max(start_s, _number(_field(part, "end"))))
    return SpeechChunk(
        text=text,
        start_s=start_s,
        end_s=max(start_s, end_s),
        confidence=_UNKNOWN_CONFIDENCE if log_probability is None else math.exp(min(0.0, log_probability)),
        no_speech_probability=min(1.0, _number(_field(part, "no_speech_prob"))),
    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _number(value: object) -> float:
    """A finite number from 0; 0 for anything else."""
    return max(0.0, _finite(value) or 0.0)


def _finite(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _status_of(error: Exception) -> int | None:
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else None


def _wav(pcm: bytes) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(pcm)
    return buffer.getvalue()


@functools.cache
def _import_litellm() -> Any:
    """Import litellm with its telemetry and logging off; runs in a thread. Raises ImportError."""
    environ = os.environ  # noqa: TID251 - litellm reads these at import and offers no other switch
    environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    environ["LITELLM_MODE"] = "PRODUCTION"
    if urllib.request.getproxies():
        name = "no_proxy" if "no_proxy" in environ else "NO_PROXY"
        environ[name] = ",".join(filter(None, (environ.get(name), "127.0.0.1", "localhost")))
    litellm: Any = importlib.import_module("litellm")
    importlib.import_module("openai.resources.audio")  # imported lazily, it would block the event loop
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    for name in _LOGGERS:
        # Every failure that it logs is also raised as an exception and reported from there.
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return litellm


def _ignore_its_warnings() -> None:
    """Suppress warnings that concern litellm's developers and not its operator."""
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"(litellm|openai|pydantic)\b")
    warnings.filterwarnings("ignore", message="Item .* on TypedDict class", category=UserWarning)
