"""The web channel: the page's routes, the socket's handler, and the adapter that the gateway drives.

Not a server: `routes` are added to the gateway's own. Delivery is repeatable, because a line of
the conversation is shown once by (message_id, role) and read again from the log by every new socket.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection

from aiohttp import web

from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveSpeech,
    OnInbound,
    OutboundReply,
    ReadAloud,
    Receipt,
    Timeline,
)
from adapters.guests import PageChats, PagePeople
from adapters.health import HealthTracker
from adapters.web.attempts import WrongTokens, network_of
from adapters.web.connection import PageConnection
from adapters.web.file_links import FileAccess, LinkedFiles
from adapters.web.handshake import greet
from adapters.web.html_cache import HtmlCache
from adapters.web.hub import Hub, ThreadSender
from adapters.web.media import MediaInbox, UploadStore
from adapters.web.pages import WORKER, PageFiles
from adapters.web.pending_sockets import InputGate, Openings
from adapters.web.protocol import ClientLimits
from adapters.web.security import (
    foreign_address_response,
    host_allowed,
    origin_allowed,
    security_headers,
)
from adapters.web.settings import ACCOUNT, CHANNEL, WebOptions
from adapters.web.shared import GOING_AWAY, SIGNED_OUT, Shared
from adapters.web.text_tables import packaged_tables
from adapters.web.uploads import Uploads
from adapters.workflow_editor import WorkflowEditor
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput, StorageError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef
from pipeline.domain.ports import EventSender
from pipeline.domain.timeline import TimelineEntry

_log = logging.getLogger(__name__)
_SHUTDOWN_S = 3.0


class WebAdapter:
    """The ChannelAdapter of the web channel. One per gateway; `run` once."""

    def __init__(
        self,
        settings: WebOptions,
        timeline: Timeline,
        clock: Clock,
        links: FileAccess | None = None,
        people: PagePeople | None = None,
        media: UploadStore | None = None,
    ) -> None:
        """`media` is where uploads and voice notes are; None: files in the folder of the settings."""
        self._settings = settings
        self._capabilities = ChannelCapabilities(
            text_limit=settings.text_chars,
            streaming=True,
            voice_in=settings.voice_enabled,
            idempotent_send=True,
            guarantee="each answer is shown once: it is durable before it is sent, "
            "and a page that connects again reads it from the log",
            copies="This page shows it until you load it again.",
        )
        self._pages = PageFiles(settings.static_dir, (*packaged_tables(), *settings.added_tables))
        self._media = media or MediaInbox(settings.media_dir, clock)
        self._links = LinkedFiles(links)
        rendered = HtmlCache()
        self._hub = Hub(
            max_per_chat=settings.max_sockets_per_chat,
            max_per_person=settings.max_sockets_per_person,
            rendered=rendered,
            links=self._links,
            clock=clock,
        )
        self._clock = clock
        self._open_sockets = 0
        self._greeting: dict[int, web.Request] = {}
        """Sockets whose hello is not checked yet."""
        self._openings = Openings(places=settings.max_openings, share=settings.max_openings_per_address)
        self._none_open = asyncio.Event()
        self._none_open.set()
        self._health = HealthTracker(clock)
        self._shared = Shared(
            settings=settings,
            limits=ClientLimits(
                text_chars=settings.text_chars,
                voice_bytes=settings.voice_bytes,
                voice_seconds=settings.voice_seconds,
                file_bytes=settings.file_bytes,
            ),
            hub=self._hub,
            rendered=rendered,
            links=self._links,
            media=self._media,
            timeline=timeline,
            people=people,
            wrong_tokens=WrongTokens(clock, "page", settings.on_wrong_token, settings.wrong_elsewhere),
            clock=clock,
        )
        self._uploads = Uploads(self._shared)

    def attach(self, live: LiveSpeech | None, read_aloud: ReadAloud | None) -> None:
        """Set live speech recognition and speech synthesis, before `run`; None disables that one. Both need
        the gateway's inbox, which is created after the adapters."""
        self._shared.live = live
        self._shared.read_aloud = read_aloud

    def attach_chats(self, chats: PageChats) -> None:
        """Set what names and deletes conversations, before `run`."""
        self._shared.chats = chats

    def attach_editor(self, editor: WorkflowEditor) -> None:
        """Set what saves and runs workflows, before `run`."""
        self._shared.editor = editor

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
        """The page, its files and the socket, for the gateway's HTTP server."""
        return [
            web.get("/", self._serve_index),
            web.get(f"/{WORKER}", self._serve_worker),
            web.get("/static/{name:.+}", self._serve_file),
            web.get("/f/{token}/{name}", self._serve_stored),
            web.get("/ws", self._serve_socket, allow_head=False),
        ]

    def upload_routes(self) -> list[web.RouteDef]:
        """The routes that read their bodies themselves."""
        return self._uploads.routes()

    async def run(self, on_inbound: OnInbound) -> None:
        """Receive messages until cancelled; then the sockets are closed with 1001."""
        self._shared.on_inbound = on_inbound
        self._health.up()
        try:
            await asyncio.Event().wait()
        finally:
            self._shared.on_inbound = None
            self._health.down("stopped")
            await self._close_sockets()

    def sender_for(self, thread: ThreadKey) -> EventSender:
        return ThreadSender(self._hub, thread)

    def entry_recorded(self, thread: ThreadKey, entry: TimelineEntry) -> None:
        """Send a durable entry that is no reply (a recorded message, a new session) to open pages."""
        self._hub.entry(thread, entry)

    async def send(self, reply: OutboundReply) -> Receipt:
        self.show_recorded(reply)
        return Receipt(native_id=str(reply.entry_id))

    def show_recorded(self, reply: OutboundReply) -> None:
        """Send a recorded reply to open pages; the others read it with the history."""
        entry = TimelineEntry(
            entry_id=reply.entry_id,
            message_id=reply.message_id,
            role=reply.role,
            text=reply.text,
            at=reply.created_at,
            code=reply.code,
            files=reply.files,
        )
        self._hub.entry(reply.thread, entry)

    def classify(self, error: Exception) -> Failure:
        if isinstance(error, InvalidInput):
            return Failure(kind="invalid", message=str(error))
        if isinstance(error, OSError | StorageError | TimeoutError):
            return Failure(
                kind="transient", message="the web channel could not be reached", maybe_delivered=True
            )
        return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)

    def health(self) -> ChannelHealth:
        health = self._health.read()
        if health.state != "up":
            return health
        return ChannelHealth(state="up", detail=f"{len(self._hub.sessions())} open pages")

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        return await self._media.download(ref, max_bytes=max_bytes)

    async def discard(self, ref: MediaRef) -> None:
        """Remove a voice note or an upload after its turn. Raises MediaUnavailable, StorageError."""
        await self._media.discard(ref)

    async def discard_waiting(self, chats: str) -> None:
        """Remove the uploads for the chats whose ids begin with `chats`, if their message has not come.
        Raises StorageError."""
        await self._media.discard_waiting(chats)

    async def sweep_media(self, keep: Collection[str]) -> int:
        """Remove the voice notes orphaned by a crash; their number. See MediaInbox.sweep."""
        return await self._media.sweep(keep)

    def devices(self) -> frozenset[str]:
        """The ids of the devices of invited people that have a page open."""
        return frozenset(one.visitor.device for one in self._hub.sessions() if one.visitor.device)

    def sign_out(self, devices: Collection[str]) -> None:
        """Close the pages of these devices, whose tokens no longer count."""
        self._hub.end_devices(devices, SIGNED_OUT)

    # -- routes -----------------------------------------------------------------------------------

    async def _serve_index(self, request: web.Request) -> web.Response:
        if not host_allowed(request, self._settings.allowed_hosts()):
            return foreign_address_response()
        return self._pages.page(request)

    async def _serve_worker(self, request: web.Request) -> web.Response:
        # From the root, because a service worker covers only pages below its own path.
        if not host_allowed(request, self._settings.allowed_hosts()):
            return foreign_address_response()
        return self._pages.response(WORKER, request)

    async def _serve_file(self, request: web.Request) -> web.Response:
        if not host_allowed(request, self._settings.allowed_hosts()):
            return foreign_address_response()
        return self._pages.response(request.match_info["name"], request)

    async def _serve_stored(self, request: web.Request) -> web.Response:
        if not host_allowed(request, self._settings.allowed_hosts()):
            return foreign_address_response()
        return await self._links.serve(request)

    async def _serve_socket(self, request: web.Request) -> web.StreamResponse:
        if not host_allowed(request, self._settings.allowed_hosts()):
            return foreign_address_response()
        if not origin_allowed(request, self._settings.allowed_origins()):
            return foreign_address_response()
        if len(self._hub.sessions()) >= self._settings.max_sockets:
            return _busy_response()
        self._open_sockets += 1
        self._none_open.clear()
        try:
            return await self._run_socket(request)
        finally:
            self._open_sockets -= 1
            if not self._open_sockets:
                self._none_open.set()

    async def _run_socket(self, request: web.Request) -> web.StreamResponse:
        settings = self._settings
        socket = web.WebSocketResponse(
            timeout=1.0,
            heartbeat=settings.heartbeat_s,
            max_msg_size=settings.frame_bytes,
            # A compressed frame could expand a thousandfold in memory, and compression is not needed.
            compress=False,
        )
        transport = request.transport
        if transport is None or not socket.can_prepare(request):
            return _no_handshake_response()
        opening = self._openings.enter(network_of(request.remote))
        gate = InputGate(transport, opening, allowed=settings.hello_bytes)
        try:
            self._greeting[id(request)] = request
            await socket.prepare(request)
            greeted = await greet(self._shared, socket, request, opening)
        finally:
            self._greeting.pop(id(request), None)
            self._openings.leave(opening)
        if greeted is not None:
            gate.remove()
            hello, session = greeted
            await PageConnection(self._shared, socket, request, session).serve(hello)
        return socket

    async def _close_sockets(self) -> None:
        for request in self._greeting.values():
            # Nothing was accepted from it yet; waiting for its hello would delay the shutdown.
            if request.transport is not None:
                request.transport.abort()
        for session in self._hub.sessions():
            session.end(GOING_AWAY)
        try:
            async with asyncio.timeout(_SHUTDOWN_S):
                await self._none_open.wait()
        except TimeoutError:
            _log.warning("web: %d sockets did not close in time", self._open_sockets)


def _no_handshake_response() -> web.Response:
    return web.Response(status=400, text="Expected a WebSocket handshake.\n", headers=security_headers())


def _busy_response() -> web.Response:
    return web.Response(
        status=503,
        text="Too many connections are open; close a page and try again.\n",
        headers=security_headers(),
    )
