"""The channel `api`: each token is a person, and each run a separate chat.

It shows nothing by itself: programs read the durable record of their runs. Events and replies only wake those
who follow a run.
"""

from __future__ import annotations

import asyncio

from aiohttp import web

from adapters.api.bodies import BodyReader
from adapters.api.ports import Runs
from adapters.api.routes import ApiRoutes
from adapters.api.run_ids import ACCOUNT, CHANNEL
from adapters.api.run_service import RunService
from adapters.api.settings import ApiOptions
from adapters.api.stream import RunStreams
from adapters.api.tokens import TokenBook
from adapters.api.wakes import Wakes
from adapters.api.webhooks import Webhooks
from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    OnInbound,
    OutboundReply,
    Receipt,
)
from adapters.health import HealthTracker
from pipeline.domain.clock import Clock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from pipeline.domain.ports import EventSender

GUARANTEE = "a run is durable before it is accepted, and its answer is read from the record"


class ApiAdapter:
    """The ChannelAdapter of the API. One per gateway."""

    def __init__(self, settings: ApiOptions, runs: Runs, clock: Clock) -> None:
        self._health = HealthTracker(clock)
        self._wakes = Wakes(clock)
        self._service = RunService(settings, runs, self._wakes, clock)
        bodies = BodyReader(settings.max_body, clock)
        self._routes = ApiRoutes(
            settings,
            runs=runs,
            service=self._service,
            tokens=TokenBook(settings.tokens),
            streams=RunStreams(settings, self._service, self._wakes, clock),
            webhooks=Webhooks(settings, self._service, bodies, clock),
            bodies=bodies,
        )
        self._capabilities = ChannelCapabilities(
            text_limit=settings.max_input,
            idempotent_send=True,
            guarantee=GUARANTEE,
        )

    @property
    def name(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        return ACCOUNT

    @property
    def capabilities(self) -> ChannelCapabilities:
        return self._capabilities

    def routes(self) -> list[web.RouteDef]:
        """The routes below /api/, which read their bodies themselves."""
        return self._routes.routes()

    async def run(self, on_inbound: OnInbound) -> None:
        """Take requests until cancelled; then the streams end."""
        self._service.on_inbound = on_inbound
        self._wakes.closing = False
        self._health.up()
        try:
            await asyncio.Event().wait()
        finally:
            self._service.on_inbound = None
            self._wakes.close()
            self._health.down("stopped")

    def sender_for(self, thread: ThreadKey) -> EventSender:
        return self._wakes.sender_for(thread)

    async def send(self, reply: OutboundReply) -> Receipt:
        self._wakes.wake(reply.thread)
        return Receipt(native_id=str(reply.entry_id))

    def classify(self, error: Exception) -> Failure:
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)

    def health(self) -> ChannelHealth:
        return self._health.read()

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:  # noqa: ARG002 - takes no files
        raise MediaUnavailable("The API takes no files.")
