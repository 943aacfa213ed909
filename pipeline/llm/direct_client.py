"""The direct door: OpenAI-compatible endpoints over plain HTTP, without a library between.

It speaks one protocol, chat completions as server-sent events. Providers with a protocol of their own go
through litellm (`pipeline.llm.doors` says which).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.request
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.llm.attempts import AskedOtherwise, Call, OpenAnswer, play
from pipeline.llm.client import LlmFinished, LlmItem, LlmRequest, TextDelta, ToolAsked
from pipeline.llm.completion import Completion, ReportedError, Unreadable, parsed, reported
from pipeline.llm.dialect import Dialect
from pipeline.llm.failures import Target
from pipeline.llm.sse import EventReader, EventTooLong
from pipeline.llm.wire import messages_to_wire, tools_to_wire

OPENAI = "https://api.openai.com/v1"
MAX_ANSWER_BYTES = 10_000_000
_MAX_ERROR_BYTES = 100_000
_AFTER_END_S = 2.0
"""How long an answer that is whole waits for its token counts."""
_GOODBYE_S = 0.1
"""How long for the end of the HTTP answer, so that the connection can be used again."""
_CONNECT_S = 30.0
_CUT = "the answer stopped in the middle, or is no stream of chat completions"


class DirectClient:
    """Streams answers of `model` from the endpoint at `api_base`.

    `api_base` is the address up to and with its version (`…/v1`); without any path `/v1` is added.
    `api_key` is sent there and shown nowhere. `retries` counts further attempts after the first, made
    only while nothing was yielded. `label` is the model's name in words for people. `extra` goes into
    the body of every request. `keep_alive` is False for a server that closes connections without saying so.
    """

    def __init__(
        self,
        *,
        model: str,
        clock: Clock,
        api_base: str = OPENAI,
        api_key: str | None = None,
        retries: int = 2,
        label: str | None = None,
        extra: Mapping[str, object] | None = None,
        keep_alive: bool = True,
    ) -> None:
        self._model = model
        self._url = completions_url(api_base)
        self._target = Target(model=label or model, api_base=api_base, secret=api_key)
        self._clock = clock
        self._retries = retries
        self._extra = dict(extra or {})
        self._keep_alive = keep_alive
        self._dialect = Dialect(self._url)
        self._session: aiohttp.ClientSession | None = None
        self._status = "ready"

    def __repr__(self) -> str:
        return f"DirectClient(model={self._model!r}, api_base={self._target.api_base!r})"

    def stream(self, request: LlmRequest) -> AsyncGenerator[LlmItem, None]:
        """See `LlmClient.stream`."""
        loop = asyncio.get_running_loop()
        retries = self._retries if request.retries is None else min(self._retries, request.retries)
        return self.complete(self.body_of(request), deadline=loop.time() + request.timeout_s, retries=retries)

    def body_of(self, request: LlmRequest) -> dict[str, Any]:
        """The request's body, for callers that add to it before `complete`."""
        body: dict[str, Any] = {
            "model": self._model,
            "messages": messages_to_wire(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
        }
        if request.tools:
            body["tools"] = tools_to_wire(request.tools)
        return body

    def complete(
        self, body: Mapping[str, Any], *, deadline: float, retries: int
    ) -> AsyncGenerator[LlmItem, None]:
        """As `stream`, for a body of one's own: `model`, `messages`, and what else the endpoint knows, such
        as `response_format`. Streaming and the count of tokens are asked for here.

        `deadline` is a time of the running event loop; `retries` counts further attempts.
        """
        whole = {
            "model": self._model,
            **self._extra,
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        call = Call(
            target=self._target,
            clock=self._clock,
            deadline=deadline,
            timeout_s=round(deadline - asyncio.get_running_loop().time(), 3),
            retries=retries,
            max_tokens=whole.get("max_tokens"),
        )
        return play(lambda: self._attempt(whole, deadline), call, self._note)

    async def warm_up(self) -> None:
        """Nothing to wait for: connections are made when they are needed."""

    async def close(self) -> None:
        """Close the connections. A call after it opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def status(self) -> str:
        return self._status

    def _note(self, status: str) -> None:
        self._status = status

    async def _attempt(self, body: dict[str, Any], deadline: float) -> OpenAnswer:
        if self._url.startswith(OPENAI) and not self._target.secret:
            raise ModelRejected(f"Model {self._target.model!r} needs a key: set `llm.api_key`")
        data = json.dumps(self._dialect.put(body), ensure_ascii=False).encode("utf-8", "replace")
        async with asyncio.timeout_at(deadline):
            response = await self._post(data)
            if response.ok and response.status < 300:
                return _Answer(response, deadline)
            async with response:
                error = await _refusal(response)
        if isinstance(error, ReportedError) and self._dialect.learn(error):
            raise AskedOtherwise
        raise error

    async def _post(self, data: bytes) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = _open_session(self._target.secret, keep_alive=self._keep_alive)
        try:
            return await self._session.post(
                self._url, data=data, allow_redirects=False, proxy=_proxy_for(self._url)
            )
        except TimeoutError:
            # aiohttp's own, for a connection that nobody accepts; the call's deadline arrives as a cancel.
            raise ModelUnavailable(f"{self._target.api_base} does not take connections") from None


class _Answer:
    """One HTTP answer, read item by item."""

    def __init__(self, response: aiohttp.ClientResponse, deadline: float) -> None:
        self._response = response
        self._deadline = deadline
        self._events = EventReader()
        self._completion = Completion()
        self._received = 0
        self._document: bytearray | None = None
        """The answer so far of an endpoint that does not stream."""
        self._failure: Exception | None = None
        """What came right behind a text, which is passed on first."""
        self._calls: deque[ToolAsked] | None = None
        self._called = False

    async def next(self) -> TextDelta | ToolAsked | None:
        while self._calls is None:
            if self._failure is not None:
                raise self._failure
            piece = await self._piece()
            text = self._last_text() if piece is None else self._read(piece)
            if piece is None or self._completion.done:
                self._calls = deque(ToolAsked(call=call) for call in self._completion.calls.calls())
                self._called = bool(self._calls)
            if text:
                return TextDelta(text=text)
        return self._calls.popleft() if self._calls else None

    def finished(self) -> LlmFinished:
        return self._completion.finished(called=self._called)

    async def aclose(self) -> None:
        if self._completion.done:
            with contextlib.suppress(TimeoutError, aiohttp.ClientError):
                async with asyncio.timeout(_GOODBYE_S):
                    await self._response.content.readany()
        self._response.close()

    async def _piece(self) -> bytes | None:
        """What arrives next; None at the end."""
        whole = self._completion.ended
        until = self._deadline
        if whole:
            until = min(until, asyncio.get_running_loop().time() + _AFTER_END_S)
        try:
            async with asyncio.timeout_at(until):
                piece = await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError):
            if whole:
                return None
            raise
        self._received += len(piece)
        if self._received > MAX_ANSWER_BYTES:
            raise ModelRejected(f"The model sent more than {MAX_ANSWER_BYTES // 1_000_000} MB as one answer")
        return piece or None

    def _read(self, piece: bytes) -> str:
        """The text in `piece`: of all its events, because they came at once."""
        if self._received == len(piece) and piece.lstrip().startswith(b"{"):
            self._document = bytearray()
        if self._document is not None:
            self._document += piece
            return ""
        try:
            return self._said(self._events.feed(piece))
        except EventTooLong:
            raise ModelRejected(
                "The model sent a line of more than 1 MB, which is no stream of chat completions: "
                "check `llm.api_base`"
            ) from None

    def _last_text(self) -> str:
        """What the end of the connection completes. Raises if the answer is not whole."""
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


def completions_url(api_base: str) -> str:
    """Where to post. An address without a path gets `/v1`, which is where such servers serve."""
    base = api_base.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if urlsplit(base).path else f"{base}/v1/chat/completions"


def _open_session(secret: str | None, *, keep_alive: bool) -> aiohttp.ClientSession:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        # As many as there are turns, whose number the gateway bounds.
        connector=aiohttp.TCPConnector(limit=0, force_close=not keep_alive),
    )


def _proxy_for(url: str) -> str | None:
    """The environment's proxy, asked for here: aiohttp's own look-up also reads passwords from ~/.netrc."""
    address = urlsplit(url)
    host = address.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(address.scheme)


async def _refusal(response: aiohttp.ClientResponse) -> Exception:
    """The error that an answer without success tells of."""
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
