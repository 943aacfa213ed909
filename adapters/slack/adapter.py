"""The Slack channel: one app in one workspace, by Socket Mode or by signed HTTP.

It composes the receivers and the Web API calls. One attempt per call; the gateway owns waiting and order.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from adapters.channel import (
    Acceptance,
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveView,
    OnInbound,
    Outgoing,
    Part,
    Receipt,
    VoiceClip,
)
from adapters.files import OutgoingFile
from adapters.formatting.slack import PART_CHARS
from adapters.health import HealthTracker
from adapters.json_fields import mapping
from adapters.permissions import ChannelUse, PermissionGap
from adapters.slack.calls import Calls
from adapters.slack.dispatch import Dispatcher
from adapters.slack.failures import CallFailed, failed
from adapters.slack.fields import stamp
from adapters.slack.inbound import Bot
from adapters.slack.media import download
from adapters.slack.outbound import FILE_BYTES, render, render_file
from adapters.slack.people import People
from adapters.slack.permissions import permission_gaps
from adapters.slack.plain_text import escaped
from adapters.slack.posts import Posts
from adapters.slack.question_buttons import pressed_label
from adapters.slack.rate_limits import DEFAULT_RATES
from adapters.slack.reactions import AtWork, set_reaction
from adapters.slack.room_history import HistoryReader
from adapters.slack.settings import CHANNEL, SlackOptions
from adapters.slack.socket import SocketModeReceiver
from adapters.slack.startup import check_secrets, socket_url, who_am_i
from adapters.slack.view import SlackView, StreamsAllowed
from adapters.slack.webhook import EventsWebhook
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage, MediaRef
from pipeline.domain.rooms import RoomLine

_log = logging.getLogger(__name__)

GUARANTEE = (
    "each answer is shown once: every post carries its key as metadata, and after an unknown outcome the "
    "thread is searched for it before anything is posted again. What remains: a post that Slack carries out "
    "later than the search may show a part twice; where Slack refuses the search (the history scopes are "
    "missing), the part is posted again and says that it may be a repeat; a crash in the moment between a "
    "stream's start and its record leaves the stream behind"
)
_TYPING_S = 60.0
_SILENT_SOCKET_S = 30.0
_STATUS = "is thinking…"
_KEEP_STATUSES = 1000


class SlackAdapter:
    """The PostingChannel of Slack."""

    def __init__(self, settings: SlackOptions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._calls = Calls(settings, clock)
        self._bot: Bot | None = None
        self._posts = Posts(self._calls, self._who)
        self._people = People(self._calls, clock)
        self._reading = HistoryReader(self._calls, self._people)
        self._webhook = EventsWebhook(settings, clock)
        self._streams = StreamsAllowed(settings.streams)
        self._statuses: dict[ThreadKey, None] = {}
        """Threads that show a status which only a new message would remove."""
        self._statuses_refused = False
        self._at_work = AtWork(self._calls, clock)
        self._health = HealthTracker(clock)

    @property
    def name(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        return self._settings.account

    @property
    def capabilities(self) -> ChannelCapabilities:
        return ChannelCapabilities(
            text_limit=PART_CHARS,
            streaming=self._settings.previews,
            edit=True,
            voice_in=True,
            resolution="lookup",
            file_bytes=FILE_BYTES,
            typing_s=_TYPING_S,
            silence_limit_s=_SILENT_SOCKET_S if self._settings.mode == "socket" else 0.0,
            rates=self._settings.rates or DEFAULT_RATES,
            guarantee=GUARANTEE,
            copies="Slack keeps its own copy of this chat, for as long as your workspace says.",
        )

    def routes(self) -> list[web.RouteDef]:
        """The routes that Slack calls in the mode http; none in the mode socket."""
        if self._settings.mode != "http":
            return []
        return [web.post(self._settings.path, self._webhook.handle)]

    # -- receiving ----------------------------------------------------------------------------------

    async def run(self, on_inbound: OnInbound) -> None:
        async def receive(item: Inbound) -> Acceptance:
            self._at_work.received(item)
            return await on_inbound(item)

        check_secrets(self._settings)
        self._health.starting()
        try:
            async with self._calls.connected() as session:
                self._bot = await who_am_i(self._calls, self._settings)
                dispatcher = Dispatcher(
                    settings=self._settings,
                    bot=self._bot,
                    on_inbound=receive,
                    after_press=self._after_press,
                    clock=self._clock,
                )
                if self._settings.mode == "http":
                    await self._serve_http(self._bot, dispatcher)
                else:
                    await SocketModeReceiver(
                        session=session,
                        new_url=lambda: socket_url(self._calls, self._settings),
                        dispatch=dispatcher.dispatch,
                        on_frame=self._health.received,
                        clock=self._clock,
                        ping_s=self._settings.ping_s,
                    ).run(self._up)
        finally:
            self._health.down("stopped")

    async def check_credentials(self) -> str:
        check_secrets(self._settings)
        bot = await who_am_i(self._calls, self._settings)
        if self._settings.mode == "socket":
            await socket_url(self._calls, self._settings)
        return bot.name or bot.user

    async def permission_gaps(self, use: ChannelUse) -> tuple[PermissionGap, ...]:
        return await permission_gaps(self._calls, use, http=self._settings.mode == "http")

    async def _serve_http(self, bot: Bot, dispatcher: Dispatcher) -> None:
        async with asyncio.TaskGroup() as tasks:

            def later(work: Callable[[], Awaitable[None]]) -> None:
                async def finish() -> None:
                    await work()

                tasks.create_task(finish())

            self._webhook.open(bot, dispatcher.dispatch, later=later, on_frame=self._health.received)
            self._up()
            try:
                await asyncio.Event().wait()
            finally:
                self._webhook.close()

    async def _who(self) -> Bot:
        """The bot, also before `run` has looked it up. Raises CallFailed."""
        if self._bot is None:
            try:
                self._bot = await who_am_i(self._calls, self._settings)
            except ConfigurationError as error:
                raise CallFailed(Failure(kind="auth", message=str(error))) from None
        return self._bot

    def _up(self) -> None:
        self._health.received()
        self._health.up(self._settings.mode)

    def health(self) -> ChannelHealth:
        return self._health.read()

    async def _after_press(self, payload: Mapping[str, Any], item: Inbound, acceptance: Acceptance) -> None:
        """Show the outcome to the user who pressed, and remove buttons without further use."""
        refused = acceptance.status == "refused"
        words = acceptance.reason or ("" if refused else _chosen(payload, item))
        done = not refused or acceptance.over
        try:
            url = payload.get("response_url")
            if words and isinstance(url, str):
                await self._calls.respond(url, escaped(words))
            pressed = mapping(payload.get("message"))
            ts = stamp(pressed.get("ts"))
            if done and ts and isinstance(item, ApprovalReply):
                await self._posts.close_question(item.thread, ts, item.interaction_id, pressed)
        except CallFailed as error:
            _log.warning("a press could not be answered", extra={"reason": str(error)})

    async def named(self, message: InboundMessage) -> InboundMessage:
        return await self._people.named(message)

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        return await self._reading.recent(thread, await self._who(), before=before, limit=limit)

    def _answers(self, thread: ThreadKey, reply_handle: str) -> None:
        if self._settings.reactions == "auto":
            self._at_work.answered(thread, reply_handle)

    # -- sending ------------------------------------------------------------------------------------

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return render(outgoing)

    def render_file(self, file: OutgoingFile) -> Part:
        return render_file(file)

    async def post(
        self,
        thread: ThreadKey,
        part: Part,
        *,
        key: str,
        reply_handle: str = "",
    ) -> Receipt:
        self._answers(thread, reply_handle)
        receipt = await self._posts.post(thread, part, key=key)
        self._statuses.pop(thread, None)
        await self._at_work.end(thread)
        return receipt

    async def post_voice(
        self,
        thread: ThreadKey,
        clip: VoiceClip,
        *,
        key: str,
        reply_handle: str = "",  # noqa: ARG002 - the interface's; a thread is answered, not a message
    ) -> Receipt:
        """Post an audio file, shown with a player: bots cannot send voice messages on Slack."""
        return await self._posts.post(
            thread, Part(body={}, plain="", file=clip.data, file_name="answer.ogg"), key=key
        )

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        receipt = await self._posts.edit(thread, native_id, part)
        if thread in self._statuses:
            # Only a new message removes a status.
            del self._statuses[thread]
            await self._status(thread, "")
        await self._at_work.end(thread)
        return receipt

    async def take_back(self, thread: ThreadKey, native_id: str) -> None:
        await self._posts.delete(thread, native_id)

    async def find(
        self,
        thread: ThreadKey,
        part: Part,  # noqa: ARG002 - the interface's; the key is enough
        *,
        key: str,
        since: float,
    ) -> Receipt | None:
        return await self._posts.find(thread, since=since, key=key)

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        self._answers(thread, reply_handle)
        if not self._settings.previews:
            return None
        return SlackView(
            calls=self._calls,
            posts=self._posts,
            clock=self._clock,
            thread=thread,
            key=key,
            reply_handle=reply_handle,
            native_id=native_id,
            doubtful_since=doubtful_since,
            streams=self._streams,
        )

    @property
    def acknowledges(self) -> bool:
        return self._settings.reactions == "taken"

    @property
    def reacts(self) -> bool:
        """Whether messages may have a reaction of the bot, in direct chats at least."""
        return self._settings.reactions != "none"

    async def acknowledge(self, thread: ThreadKey, reply_handle: str, *, on: bool) -> None:
        await set_reaction(self._calls, thread.chat, reply_handle, on=on)

    async def typing(self, thread: ThreadKey) -> None:
        """Show a status line below the thread. Slack has none outside of threads: in a direct chat, a
        reaction on the person's message."""
        if thread.topic is None:
            if self._settings.reactions == "auto":
                await self._at_work.show(thread)
            return
        if self._statuses_refused:
            return
        if len(self._statuses) >= _KEEP_STATUSES:
            del self._statuses[next(iter(self._statuses))]
        self._statuses[thread] = None
        await self._status(thread, _STATUS)

    async def _status(self, thread: ThreadKey, status: str) -> None:
        topic = thread.topic or ""
        try:
            await self._calls.run(
                "assistant.threads.setStatus",
                lambda client: client.assistant_threads_setStatus(
                    channel_id=thread.chat, thread_ts=topic, status=status
                ),
            )
        except CallFailed as refused:
            # Optional, and not available in some workspaces: no message depends on it.
            self._statuses_refused = refused.failure.kind not in ("transient", "rate_limit", "not_found")
            self._statuses.pop(thread, None)

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        return await download(
            ref, max_bytes=max_bytes, calls=self._calls, settings=self._settings, clock=self._clock
        )

    def classify(self, error: Exception) -> Failure:
        known = error if isinstance(error, CallFailed) else failed("a call", error)
        return known.failure


def _chosen(payload: Mapping[str, Any], item: Inbound) -> str:
    if not isinstance(item, ApprovalReply):
        return "Stopping."
    label = pressed_label(payload)
    return f"You chose: {label}" if label else ""
