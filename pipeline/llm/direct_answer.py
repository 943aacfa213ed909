"""One HTTP answer of an OpenAI-compatible endpoint: a stream or a document, or a refusal.

`pipeline.llm.direct_client` makes the request.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

import aiohttp

from pipeline.domain.errors import ModelRejected
from pipeline.llm.client import LlmFinished, TextDelta, ToolAsked
from pipeline.llm.completion import Completion, ReportedError, Unreadable, parsed, reported
from pipeline.llm.prices import Price
from pipeline.llm.sse import EventTooLong, SseReader

MAX_ANSWER_BYTES = 10_000_000
_MAX_ERROR_BYTES = 100_000
_AFTER_END_S = 2.0
"""Seconds that a complete answer waits for its token counts."""
_END_OF_RESPONSE_S = 0.1
"""Seconds to wait for the end of the HTTP response, so that the connection can be reused."""
_CUT = "the answer stopped in the middle, or is no stream of chat completions"


class DirectAnswer:
    """An `OpenAnswer` over an HTTP response. Its first event has to arrive by `deadline`, a time of the event
    loop, and each further one within `quiet_s` seconds."""

    def __init__(
        self, response: aiohttp.ClientResponse, deadline: float, quiet_s: float, price: Price | None
    ) -> None:
        self._response = response
        self._expired = False
        self._loop = asyncio.get_running_loop()
        self._deadline = deadline
        self._quiet_s = quiet_s
        # One timer, rescheduled when it fires: one per read would be a quarter of the work per token.
        self._timer = self._loop.call_at(deadline, self._expire)
        self._events = SseReader()
        self._completion = Completion(price)
        self._received = 0
        self._document: bytearray | None = None
        """The response so far of an endpoint that does not stream."""
        self._failure: Exception | None = None
        """The error that arrived with a text; the text is returned first."""
        self._calls: deque[ToolAsked] | None = None
        self._called = False

    async def next(self) -> TextDelta | ToolAsked | None:
        while self._calls is None:
            self._raise_failure()
            chunk = await self._next_chunk()
            text = self._last_text() if chunk is None else self._read(chunk)
            if self._failure is None and (chunk is None or self._completion.done):
                self._calls = deque(ToolAsked(call=call) for call in self._completion.calls.calls())
                self._called = bool(self._calls)
            if text:
                return TextDelta(text=text)
        return self._calls.popleft() if self._calls else None

    def finished(self) -> LlmFinished:
        return self._completion.finished(called=self._called)

    async def aclose(self) -> None:
        self._timer.cancel()
        try:
            if self._completion.done:
                with contextlib.suppress(TimeoutError, aiohttp.ClientError):
                    async with asyncio.timeout(_END_OF_RESPONSE_S):
                        await self._response.content.readany()
        finally:
            # Has no effect on a connection whose response was read to its end.
            self._response.close()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _next_chunk(self) -> bytes | None:
        """The next bytes; None at the end."""
        if self._completion.ended:
            return await self._rest()
        try:
            chunk = await self._response.content.readany()
        except aiohttp.ClientError:
            if self._expired:
                raise TimeoutError from None
            raise
        return self._counted(chunk)

    async def _rest(self) -> bytes | None:
        """The bytes after a complete answer; None at the end, on an error or after `_AFTER_END_S`."""
        try:
            async with asyncio.timeout(_AFTER_END_S):
                return self._counted(await self._response.content.readany())
        except (TimeoutError, aiohttp.ClientError):
            return None

    def _counted(self, chunk: bytes) -> bytes | None:
        self._received += len(chunk)
        if self._received > MAX_ANSWER_BYTES:
            raise ModelRejected(f"The model sent more than {MAX_ANSWER_BYTES // 1_000_000} MB as one answer")
        return chunk or None

    def _expire(self) -> None:
        """The deadline's callback: closing the connection wakes the reader."""
        if self._deadline > self._loop.time():
            self._timer = self._loop.call_at(self._deadline, self._expire)
            return
        self._expired = True
        self._response.close()

    def _read(self, chunk: bytes) -> str:
        """The text of all events in `chunk`, because they arrived together."""
        if self._received == len(chunk) and chunk.lstrip().startswith(b"{"):
            self._document = bytearray()
        if self._document is not None:
            self._document += chunk
            return ""
        try:
            return self._said(self._events.feed(chunk))
        except EventTooLong:
            raise ModelRejected(
                "The model sent a line of more than 1 MB, which is no stream of chat completions: "
                "check `llm.api_base`"
            ) from None

    def _last_text(self) -> str:
        """The text that the end of the connection completes. Raises if the answer is not whole."""
        if self._document is not None:
            text = self._completion.read(bytes(self._document))
            self._completion.done = True
            return text
        text = self._said(self._events.end())
        if not self._completion.ended and self._failure is None:
            self._failure = Unreadable(
                "the answer stopped in the middle, or is no stream of chat completions"
            )
            if not text:
                raise self._failure
        return text

    def _said(self, events: list[bytes]) -> str:
        texts: list[str] = []
        for data in events:
            if self._completion.done:
                break
            if not data:
                continue
            # Only events move the deadline; comments, which some endpoints send as keep-alives, do not.
            self._deadline = self._loop.time() + self._quiet_s
            try:
                text = self._completion.read(data)
            except (Unreadable, ReportedError) as error:
                if not texts:
                    raise
                self._failure = error
                break
            if text:
                texts.append(text)
        return texts[0] if len(texts) == 1 else "".join(texts)


async def refusal_of(response: aiohttp.ClientResponse) -> Exception:
    """The error in a response whose status is not a success."""
    if 300 <= response.status < 400:
        place = response.headers.get("Location", "").partition("?")[0]
        return ModelRejected(
            f"The model's address answers with a redirect to {place or 'nowhere'}: "
            "write the final address to `llm.api_base`"
        )
    raw = await response.content.read(_MAX_ERROR_BYTES)
    try:
        event = parsed(raw.strip().removeprefix(b"[").removesuffix(b"]"))
    except Unreadable:
        words = "" if raw.lstrip().startswith(b"<") else raw.decode("utf-8", "replace")
        text = words or str(response.reason or response.status)
        return ReportedError(text, status=response.status, headers=response.headers)
    return reported(event, status=response.status, headers=response.headers)
