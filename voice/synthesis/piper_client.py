"""Synthesise speech with Piper in a child process: one request after the other, each with a deadline.

Not here: the text (`gateway.delivery.voice_replies` converts Markdown to words) and the synthesis itself
(`voice.synthesis.piper_main`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path

from voice.errors import SpeakerUnavailable, VoiceError
from voice.synthesis.protocol import spoken_from_wire
from voice.synthesis.synthesizer import SpokenAudio
from voice.text import shortened
from voice.workers.child import Child, Dying, command
from voice.workers.frames import BrokenFrame, WorkerFrame

_log = logging.getLogger(__name__)

MAX_CHARACTERS = 1_500
"""About ninety seconds of speech. Longer answers are shortened."""
QUEUE_LIMIT = 8
"""The most requests that run or wait."""
_DEADLINE_FLOOR_S = 20.0
_DEADLINE_PER_CHARACTER_S = 0.08
"""About fifteen times what one core needs: the child has a low scheduling priority."""
_START_DEADLINE_S = 60.0
_MAX_OGG_BYTES = 8 * 1024 * 1024
_VOICE_NAME = re.compile(r"[\w.+-]+")
_REGION = re.compile(r"[a-z]{2}|[0-9]{3}")

_NOT_STARTING = "Piper did not start within a minute. Is the machine overloaded?"
_TOO_SLOW = "Reading an answer aloud took too long and was given up. Is the machine overloaded?"
_DIED = "Piper stopped while it was reading an answer aloud. The next answer starts it again."
_CLOSED = "The speaker is closed."
_FULL = "Too many answers wait to be read aloud."


class PiperSpeaker:
    """Implements `SpeechSynthesizer`. Each voice is `<name>.onnx` with `<name>.onnx.json` in `voices_dir`."""

    def __init__(self, voices_dir: Path, *, deadline_floor_s: float = _DEADLINE_FLOOR_S) -> None:
        self._voices_dir = voices_dir
        self._deadline_floor_s = deadline_floor_s
        self._child: Child | None = None
        self._dying = Dying()
        self._turn = asyncio.Lock()
        self._admitted = 0
        self._closed = False
        self._status = "not started"

    @property
    def child_pid(self) -> int | None:
        """The running child's process id."""
        return self._child.pid if self._child is not None and self._child.alive else None

    def speaks(self, language: str) -> bool:
        return _family(language) in voices_in(self._voices_dir)

    async def speak(
        self, text: str, *, language: str = "en", voice: str = "", speed: float = 1.0
    ) -> SpokenAudio:
        voice = self._voice(language, voice)
        text = shortened(text, MAX_CHARACTERS)
        if not text:
            raise SpeakerUnavailable("There is nothing to say.")
        if self._admitted >= QUEUE_LIMIT:
            raise SpeakerUnavailable(_FULL)
        self._admitted += 1
        try:
            async with self._turn:
                request = WorkerFrame(
                    header={"kind": "speak", "voice": voice, "speed": speed}, body=text.encode()
                )
                deadline_s = max(self._deadline_floor_s, _DEADLINE_PER_CHARACTER_S * len(text))
                return _spoken(await self._ask(request, deadline_s=deadline_s))
        finally:
            self._admitted -= 1

    async def warm_up(self) -> None:
        voices = voices_in(self._voices_dir)
        voice = voices.get("en") or next(iter(voices.values()), "")
        if not voice:
            raise SpeakerUnavailable(self._voiceless())
        async with self._turn:
            await self._ask(
                WorkerFrame(header={"kind": "warm_up", "voice": voice}), deadline_s=_START_DEADLINE_S
            )

    async def close(self) -> None:
        self._closed = True
        self._discard(self._child)
        async with self._turn:
            pass  # a running request or start has failed and cleaned up
        await self._dying.gone()

    def status(self) -> str:
        if self._closed:
            return "closed"
        if not voices_in(self._voices_dir):
            return self._voiceless()
        if self._status == "ready" and self.child_pid is None:
            return "not started"
        return self._status

    def _voice(self, language: str, preferred: str) -> str:
        every = _locales_of(self._voices_dir)
        if preferred in every and _family(every[preferred]) == _family(language):
            return preferred
        voices = _first_by_language(every)
        local = (name for name, locale in every.items() if locale == _locale(language))
        voice = next(local, voices.get(_family(language)))
        if voice is None:
            raise SpeakerUnavailable(
                f"There is no voice for {language!r} in {self._voices_dir}, only for {', '.join(voices)}."
                if voices
                else self._voiceless()
            )
        return voice

    def _voiceless(self) -> str:
        return f"There is no voice in {self._voices_dir}: run `parlour models get voice-en`."

    async def _ask(self, request: WorkerFrame, *, deadline_s: float) -> WorkerFrame:
        """Send one request. Synthesis cannot be interrupted from outside: cancelling kills the child."""
        child = await self._ready_child()
        try:
            async with asyncio.timeout(deadline_s):
                return await child.ask(request)
        except TimeoutError as error:
            self._discard(child)
            raise SpeakerUnavailable(_TOO_SLOW) from error
        except VoiceError as error:
            if child.alive:
                raise SpeakerUnavailable(error.for_operator) from error
            self._discard(child)
            raise SpeakerUnavailable(_CLOSED if self._closed else _DIED) from error
        except asyncio.CancelledError:
            self._discard(child)
            raise

    async def _ready_child(self) -> Child:
        """The running child. Raises SpeakerUnavailable."""
        if self._closed:
            raise SpeakerUnavailable(_CLOSED)
        if self._child is not None and self._child.alive:
            return self._child
        self._discard(self._child)
        self._status = "loading"
        try:
            async with asyncio.timeout(_START_DEADLINE_S):
                child = self._child = await Child.start(
                    command("voice.synthesis.piper_main", "--voices-dir", str(self._voices_dir)),
                    _log_line,
                    max_body_bytes=_MAX_OGG_BYTES,
                )
                if self._closed:
                    raise SpeakerUnavailable(_CLOSED)
                await asyncio.shield(child.ready)
        except TimeoutError as error:
            self._failed(_NOT_STARTING)
            raise SpeakerUnavailable(_NOT_STARTING) from error
        except VoiceError as error:
            self._failed(error.for_operator)
            raise SpeakerUnavailable(error.for_operator) from error
        except asyncio.CancelledError:
            self._failed("not started")
            raise
        self._status = "ready"
        return child

    def _failed(self, status: str) -> None:
        self._status = status
        self._discard(self._child)

    def _discard(self, child: Child | None) -> None:
        """Kill the child; `close` waits until it has ended."""
        if child is None:
            return
        self._dying.end(child)
        if self._child is child:
            self._child = None


def voices_in(folder: Path) -> Mapping[str, str]:
    """The installed voices by language code, such as `en`: one name for each language."""
    return _first_by_language(_locales_of(folder))


def languages_of(folder: Path) -> Mapping[str, str]:
    """The language code, such as `en`, of every installed voice by its name, in the order of the names."""
    return {name: _family(locale) for name, locale in _locales_of(folder).items()}


def _locales_of(folder: Path) -> Mapping[str, str]:
    """As `languages_of`, with the region: `en-us`."""
    locales: dict[str, str] = {}
    for path in sorted(folder.glob("*.onnx")):
        if not _VOICE_NAME.fullmatch(path.stem):
            continue
        try:
            about = json.loads(path.with_name(f"{path.name}.json").read_bytes())
            locales[path.stem] = _locale(str(about["language"]["code"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # a model without its description, or a partial download
    return locales


def _first_by_language(locales: Mapping[str, str]) -> Mapping[str, str]:
    voices: dict[str, str] = {}
    for name, locale in locales.items():
        voices.setdefault(_family(locale), name)
    return voices


def _family(language: str) -> str:
    """`en` of `en_US`, `en-GB` and `EN`."""
    return _locale(language).partition("-")[0]


def _locale(language: str) -> str:
    """Language and region in one spelling: `en-us` of `en_US`, `zh-tw` of `zh-Hant-TW`."""
    first, *others = re.split(r"[_-]", language.strip().lower())
    return "-".join([first, *(part for part in others[-1:] if _REGION.fullmatch(part))])


def _spoken(answer: WorkerFrame) -> SpokenAudio:
    try:
        return spoken_from_wire(answer)
    except BrokenFrame as error:
        raise SpeakerUnavailable(_DIED) from error


def _log_line(line: str) -> None:
    _log.info("speaker: %s", line)
