"""A client for OpenAI-compatible endpoints over plain HTTP, without a provider library.

It uses one protocol, chat completions as server-sent events. Providers with another protocol go through
litellm (`pipeline.llm.backends` decides).
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncGenerator, Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelRejected, ModelUnavailable
from pipeline.llm.attempts import AskedOtherwise, ModelCall, OpenAnswer, play
from pipeline.llm.backends import OPENAI
from pipeline.llm.client import LlmItem, LlmRequest
from pipeline.llm.completion import ReportedError
from pipeline.llm.dialect import Dialect
from pipeline.llm.direct_answer import DirectAnswer, refusal_of
from pipeline.llm.failures import Target
from pipeline.llm.prices import Price, price_of
from pipeline.llm.wire import messages_to_wire, schema_to_wire, tools_to_wire

_OPENAI_HOST = "api.openai.com"
_CONNECT_S = 30.0


class DirectClient:
    """Streams answers of `model` from the endpoint at `api_base`.

    `api_base` is the address up to and with its version (`…/v1`); without any path `/v1` is added.
    `api_key` is sent there and never shown. `retries` counts further attempts after the first, made
    only while nothing was yielded. `label` is the model's name in readable texts. `extra` goes into
    the body of every request. `keep_alive` is False for a server that closes connections unannounced.
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
        self._openai = (urlsplit(self._url).hostname or "").endswith(_OPENAI_HOST)
        self._dialect = Dialect(openai=self._openai)
        self._price: Price | None = None
        self._priced = not self._openai
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
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
            "messages": messages_to_wire(request.messages, request.pictures),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
        }
        if request.tools:
            body["tools"] = tools_to_wire(request.tools)
        if request.schema is not None:
            body["response_format"] = schema_to_wire(request.schema)
        return body

    def complete(
        self, body: Mapping[str, Any], *, deadline: float, retries: int, quiet_s: float | None = None
    ) -> AsyncGenerator[LlmItem, None]:
        """As `stream`, for the caller's own body: `model`, `messages`, and other parameters of the endpoint,
        such as `response_format`. This method adds streaming and the token counts.

        `deadline`, of the first token, is a time of the running event loop; `quiet_s` is the longest wait for
        each further token, by default as long as for the first. `retries` counts further attempts.
        """
        whole = {
            "model": self._model,
            **self._extra,
            **body,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        quiet_s = round(deadline - asyncio.get_running_loop().time(), 3) if quiet_s is None else quiet_s
        call = ModelCall(
            target=self._target,
            clock=self._clock,
            deadline=deadline,
            timeout_s=quiet_s,
            retries=retries,
            max_tokens=whole.get("max_tokens"),
        )
        return play(lambda: self._attempt(whole, deadline, quiet_s), call, self._note)

    async def warm_up(self) -> None:
        """Look up the model's price. Connections are made when they are needed."""
        if not self._priced:
            self._price = await asyncio.to_thread(price_of, self._model)
            self._priced = True

    async def close(self) -> None:
        """Close the connections. Answers in flight and later calls fail with ModelUnavailable."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def status(self) -> str:
        return self._status

    def _note(self, status: str) -> None:
        self._status = status

    async def _attempt(self, body: dict[str, Any], deadline: float, quiet_s: float) -> OpenAnswer:
        if self._openai and not self._target.secret:
            raise ModelRejected(f"Model {self._target.model!r} needs a key: set `llm.api_key`")
        data = json.dumps(self._dialect.put(body), ensure_ascii=False).encode("utf-8", "replace")
        async with asyncio.timeout_at(deadline):
            await self.warm_up()
            response = await self._post(data)
            if response.ok and response.status < 300:
                return DirectAnswer(response, deadline, quiet_s, self._price)
            async with response:
                error = await refusal_of(response)
        if isinstance(error, ReportedError) and self._dialect.learn(error):
            raise AskedOtherwise
        raise error

    async def _post(self, data: bytes) -> aiohttp.ClientResponse:
        if self._closed:
            raise ModelUnavailable(f"The client of model {self._target.model!r} is shut down")
        if self._session is None:
            self._session = _open_session(self._target.secret, keep_alive=self._keep_alive)
        try:
            return await self._session.post(
                self._url, data=data, allow_redirects=False, proxy=_proxy_for(self._url)
            )
        except TimeoutError:
            # aiohttp's own timeout, for a connection that is not accepted; the call's deadline cancels.
            raise ModelUnavailable(f"{self._target.api_base} does not take connections") from None


def completions_url(api_base: str) -> str:
    """The URL for requests. An address without a path gets `/v1`, the usual path of such servers."""
    base = api_base.rstrip("/")
    if base.endswith("/chat/completions"):
        return base
    return f"{base}/chat/completions" if urlsplit(base).path else f"{base}/v1/chat/completions"


def _open_session(secret: str | None, *, keep_alive: bool) -> aiohttp.ClientSession:
    headers = {
        "Content-Type": "application/json",
        "Accept": "text/event-stream, application/json",
        # A compressor would delay events until it has enough of them.
        "Accept-Encoding": "identity",
    }
    if secret:
        headers["Authorization"] = f"Bearer {secret}"
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        # No limit here: there are as many connections as turns, whose number the gateway limits.
        connector=aiohttp.TCPConnector(limit=0, force_close=not keep_alive),
    )


def _proxy_for(url: str) -> str | None:
    """The environment's proxy. Not aiohttp's own look-up, which also reads passwords from ~/.netrc."""
    address = urlsplit(url)
    host = address.hostname or ""
    if host in ("localhost", "127.0.0.1", "::1") or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(address.scheme)
