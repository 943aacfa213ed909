"""Fetch the voice that reads answers aloud when a person first asks for it, with progress in words."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from gateway.models.errors import FetchFailed
from gateway.models.fetch import get
from gateway.models.manifest import VOICE, Model
from gateway.models.progress import megabytes
from gateway.runtime.tasks import Supervisor

_log = logging.getLogger(__name__)

OnVoice = Callable[[str], Awaitable[None]]
"""Called once with a line for the person who asked, when the voice is there or could not be fetched."""

_BEGUN = "The voice that reads aloud is being fetched now ({size}); until it is there I answer in writing."
_RUNNING = "The voice that reads aloud is being fetched: {percent} % of {size} is there."
_READY = "The voice is there: from now on I read my answers aloud."
_FAILED = (
    "The voice that reads aloud could not be fetched, so I answer in writing. "
    "Try again later; the operator finds the reason in the log."
)


class VoiceDownload:
    """Fetches one voice into the models folder, at most once at a time. Does nothing if a voice is there."""

    def __init__(
        self, models_dir: Path, has_voice: Callable[[], bool], supervisor: Supervisor, *, model: Model = VOICE
    ) -> None:
        self._models_dir = models_dir
        self._has_voice = has_voice
        self._supervisor = supervisor
        self._model = model
        self._done = 0
        self._running = False
        self._waiting: dict[str, OnVoice] = {}

    def request(self, asker: str = "", on_voice: OnVoice | None = None) -> str:
        """Begin to fetch the voice, if there is none and it is not being fetched; return the words for the
        person, empty if a voice is there. `on_voice` gets a line at the end, once for each `asker`."""
        if self._has_voice():
            return ""
        if on_voice is not None:
            self._waiting[asker] = on_voice
        size = megabytes(self._model.largest.size)
        if self._running:
            percent = 100 * self._done // max(1, self._model.largest.size)
            return _RUNNING.format(percent=percent, size=size)
        self._running, self._done = True, 0
        self._supervisor.spawn(self._fetch(), name="voice download")
        return _BEGUN.format(size=size)

    async def _fetch(self) -> None:
        words = _FAILED
        try:
            await get(self._model, self._models_dir, self)
            words = _READY
            _log.info("the voice is fetched", extra={"model": self._model.id})
        except FetchFailed as error:
            _log.error("the voice could not be fetched", extra={"reason": str(error)})
        finally:
            self._running = False
        waiting, self._waiting = self._waiting, {}
        for on_voice in waiting.values():
            await on_voice(words)

    def update(self, name: str, source: str, done: int, total: int) -> None:  # noqa: ARG002 - see `DownloadProgress`
        """Implements `DownloadProgress`: only the largest file counts."""
        if name == self._model.largest.name:
            self._done = done

    def note(self, text: str) -> None:
        """Implements `DownloadProgress`."""
        _log.info("voice download", extra={"note": text})
