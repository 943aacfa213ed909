"""Split an answer in progress into parts to read aloud, each as soon as its text is final.

Not speech synthesis and not the socket: see tts_requests.py. The text comes from the live events of the chat,
which are redacted, and at the end from the final answer.
"""

from __future__ import annotations

import asyncio

from adapters.formatting.read_along import ReadAlong
from adapters.web.hub import Session
from adapters.web.shared import Shared
from pipeline.domain.events import LlmToken, PipelineEvent, ResponseComplete

_LOOKS = 8
"""The text is parsed again when an eighth of it is new, so that a long answer stays cheap."""
_FEWEST_CHARS = 8


class AnswerEnded(Exception):
    """There is no further part: `complete`, or `failed` where the turn ended without an answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Following:
    """One answer in progress, for one listener. Call `close` afterwards."""

    def __init__(self, shared: Shared, session: Session, message_id: str) -> None:
        self.message_id = message_id
        self.parts = 0
        """Parts returned so far."""
        self._shared = shared
        self._session = session
        self._words = ReadAlong()
        self._final: str | None = None
        self._failed = False
        self._paused = False
        """Whether the turn is doing something other than writing the answer."""
        self._new_chars = 0
        """Characters added since the last parse."""
        self._enough = 0
        """New characters required for another parse."""
        self._news = asyncio.Event()
        session.watchers.add(self._on_event)

    def close(self) -> None:
        """Stop following. Safe to repeat."""
        self._session.watchers.discard(self._on_event)

    async def next_part(self) -> str:
        """The text of the next part, when it is final. Raises AnswerEnded."""
        while True:
            self._news.clear()
            text = self._text()
            ended = self._final is not None
            part = self._words.next_part(text, ended=ended, paused=self._paused)
            if part:
                self.parts += 1
                return part
            if ended:
                raise AnswerEnded("complete")
            self._new_chars = 0
            self._enough = max(_FEWEST_CHARS, len(text) // _LOOKS)
            await self._news.wait()

    def _text(self) -> str:
        if self._failed:
            raise AnswerEnded("failed")
        if self._final is not None:
            return self._final
        answer = self._shared.hub.answer(self._session.chat, self.message_id)
        return "" if answer is None else answer.text

    def _on_event(self, event: PipelineEvent) -> None:
        if event.message_id != self.message_id:
            return
        if isinstance(event, LlmToken):
            self._paused = False
            self._new_chars += len(event.text)
            if self._new_chars < self._enough:
                return
        elif isinstance(event, ResponseComplete):
            self._final = event.content
        elif event.is_terminal:
            self._failed = True
        elif self._paused:
            return
        else:
            self._paused = True
        self._news.set()
