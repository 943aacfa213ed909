"""The Discord channel's adapter: the channel interface, composed of its parts."""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from adapters.acknowledging import TAKEN
from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveView,
    OnInbound,
    Outgoing,
    Part,
    Receipt,
    Timeline,
    VoiceClip,
)
from adapters.discord.backfill import Backfill
from adapters.discord.chat_queues import InboundQueues, ReceivedItem
from adapters.discord.download import DiscordDownloads
from adapters.discord.failures import classify
from adapters.discord.gateway import GatewayClient
from adapters.discord.inbound import NO_REFERENCE, Context, bot_roles, parse_event
from adapters.discord.interactions import DiscordInteraction
from adapters.discord.listed_chats import ListedChats
from adapters.discord.outbound import (
    FILE_BYTES,
    TEXT_CHARS,
    as_plain,
    named,
    nonce_of,
    render,
    render_file,
    shows,
)
from adapters.discord.payload import leading_snowflake, snowflake, snowflake_at
from adapters.discord.permissions import permission_gaps
from adapters.discord.rate_limits import DEFAULT_RATES
from adapters.discord.rest import Rest
from adapters.discord.room_history import lines_of
from adapters.discord.sdk import discord
from adapters.discord.settings import CHANNEL, DiscordOptions
from adapters.discord.slash_commands import SLASH_COMMANDS
from adapters.discord.view import EditView
from adapters.files import OutgoingFile
from adapters.json_fields import mapping
from adapters.permissions import ChannelUse, PermissionGap
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Inbound, MediaRef, SessionCommand
from pipeline.domain.rooms import RoomLine

_log = logging.getLogger(__name__)
T = TypeVar("T")

GUARANTEE = (
    "each answer is shown once: Discord takes a repeated post under the same nonce for the earlier one for "
    "some minutes, later the bot looks whether its post arrived; where it may not look (Read Message History "
    "is missing), the answer is posted again and says that it may be a repeat; messages written while the "
    "bot was away are fetched for a day back in every chat that it knows"
)
_KNOWN_CHATS = 200
_REFUSED = 400
_IS_VOICE_MESSAGE = 1 << 13
_TYPING_S = 9.0
_SILENCE_S = 120.0
_LOOK_BEFORE_S = 60.0
"""Two machines' clocks may differ by this much."""
_LOOK_PAGES = 3
_PAGE = 100
_FIRST_RETRY_S = 1.0
_LONGEST_RETRY_S = 30.0


class DiscordAdapter:
    """Implements PostingChannel for one bot."""

    def __init__(self, settings: DiscordOptions, timeline: Timeline, clock: Clock) -> None:
        self._settings = settings
        self._timeline = timeline
        self._clock = clock
        self._gateway = GatewayClient(settings, clock, self._on_dispatch)
        self._rest = Rest(self._gateway.client, clock)
        self._downloads = DiscordDownloads(self._rest, clock, settings.api_base)
        self._backfill = Backfill(self._rest, clock, self._context, back_s=settings.backfill_s)
        self._listed = ListedChats(self._rest, people=settings.people, rooms=settings.rooms)
        self._alone = asyncio.Lock()
        self._tasks: asyncio.TaskGroup | None = None
        self._queues: InboundQueues | None = None
        self._bot_id = ""
        self._bot_roles: frozenset[str] = frozenset()
        self._detail = "not started"
        self._sessions = 0
        self._gaps: Mapping[str, int] = {}
        """By chat, the id from which on earlier runs received messages without delivering them to the
        inbox."""

    @property
    def name(self) -> str:
        return CHANNEL

    @property
    def account(self) -> str:
        return self._settings.account

    @property
    def capabilities(self) -> ChannelCapabilities:
        return ChannelCapabilities(
            text_limit=TEXT_CHARS,
            streaming=self._settings.previews,
            edit=True,
            voice_in=True,
            resolution="nonce",
            file_bytes=FILE_BYTES,
            typing_s=_TYPING_S,
            silence_limit_s=_SILENCE_S,
            rates=self._settings.rates or DEFAULT_RATES,
            guarantee=GUARANTEE,
            copies="Discord keeps its own copy of this chat, and I cannot take that back.",
        )

    def health(self) -> ChannelHealth:
        received_at = self._gateway.received_at
        if self._tasks is None:
            return ChannelHealth(state="down", detail=self._detail, received_at=received_at)
        if self._gateway.connected:
            return ChannelHealth(state="up", received_at=received_at)
        return ChannelHealth(state="starting", detail="connecting", received_at=received_at)

    def classify(self, error: Exception) -> Failure:
        return classify(error)

    # -- receiving --------------------------------------------------------------------------------

    async def run(self, on_inbound: OnInbound) -> None:
        """Receive until cancelled; one client at a time, closed before this returns."""
        async with self._alone:
            failure: Exception | None = None
            try:
                async with asyncio.TaskGroup() as tasks:
                    self._tasks = tasks
                    self._queues = InboundQueues(tasks, on_inbound, self._backfill.missed, self._clock)
                    await self._connect()
            except* _Ended as ended:
                failure = next(one.cause for one in ended.exceptions if isinstance(one, _Ended))
            finally:
                if self._queues is not None:
                    self._gaps = _earliest(self._gaps, self._queues.unfinished())
                self._tasks = self._queues = None
                self._detail = "stopped"
            if failure is not None:
                self._detail = str(failure) or type(failure).__name__
                raise failure

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        bot_id = await self._gateway.bot_id()
        page = await self._rest.messages_before(thread.chat, leading_snowflake(before) or 0, limit=limit)
        return lines_of(page, bot_id)

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        return await self._downloads.fetch(ref, max_bytes=max_bytes)

    async def check_credentials(self) -> str:
        return await self._gateway.check_login()

    async def permission_gaps(self, use: ChannelUse) -> tuple[PermissionGap, ...]:
        async with self._gateway.login() as client:
            return await permission_gaps(client, use)

    async def _connect(self) -> None:
        try:
            await self._gateway.run()
        except Exception as error:  # noqa: BLE001 - raised again by `run`
            # Ends the group: the next run fetches everything again that is not in the inbox yet.
            raise _Ended(error) from None

    def _context(self) -> Context:
        return Context(
            account=self.account, bot_id=self._bot_id, now=self._clock.now(), bot_roles=self._bot_roles
        )

    def _on_dispatch(self, name: str, data: Mapping[str, Any]) -> None:
        tasks, queues = self._tasks, self._queues
        if tasks is None or queues is None:
            return
        if name == "READY":
            self._bot_id = snowflake(mapping(data.get("user")).get("id"))
            self._sessions += 1
            queues.hold()
            tasks.create_task(self._begin_session(queues, self._sessions, mapping(data.get("application"))))
            return
        self._bot_roles |= bot_roles(name, data, self._bot_id)
        item = parse_event(name, data, self._context())
        if name == "INTERACTION_CREATE":
            self._on_interaction(tasks, queues, data, item)
        elif item is not None:
            # An edit is a separate event: fetching the chat again would not return it.
            place = int(item.native_id) if item.native_id.isdecimal() else 0
            queues.put(item.thread.chat, ReceivedItem(item=item, place=place))

    def _on_interaction(
        self, tasks: asyncio.TaskGroup, queues: InboundQueues, data: Mapping[str, Any], item: Inbound | None
    ) -> None:
        interaction = DiscordInteraction(data, self._rest, self._clock)
        if not interaction.answerable:
            return
        if not isinstance(item, ApprovalReply | SessionCommand):
            tasks.create_task(interaction.dismiss())
            return
        outcome = asyncio.get_running_loop().create_future()
        queues.put(item.thread.chat, ReceivedItem(item=item, outcome=outcome))
        tasks.create_task(interaction.settle(item, outcome))

    async def _begin_session(
        self, queues: InboundQueues, session: int, application: Mapping[str, Any]
    ) -> None:
        """A new session without resume: messages from before it have to be fetched."""
        wait_s = _FIRST_RETRY_S
        while (seen := await self._last_seen()) is None:
            await self._clock.sleep(wait_s)
            wait_s = min(_LONGEST_RETRY_S, 2 * wait_s)
        seen |= await self._listed.unread(seen)
        if session == self._sessions:
            gaps, self._gaps = self._gaps, {}
            queues.release(_earliest(gaps, seen))
        await self._register_commands(snowflake(application.get("id")))

    async def _last_seen(self) -> dict[str, int] | None:
        try:
            seen = await self._timeline.last_seen(CHANNEL, self.account, limit=_KNOWN_CHATS)
        except Exception as error:  # noqa: BLE001 - retried until it succeeds
            _log.warning("discord: the store does not say what is known (%s)", type(error).__name__)
            return None
        places = {thread.chat: leading_snowflake(native_id) for thread, native_id in seen.items()}
        return {chat: place for chat, place in places.items() if place is not None}

    async def _register_commands(self, application: str) -> None:
        try:
            await self._rest.set_commands(application, SLASH_COMMANDS)
        except Exception as error:  # noqa: BLE001 - the bot works without them: /stop can be typed
            _log.warning("discord: no slash commands: %s", classify(error).message)

    # -- sending ----------------------------------------------------------------------------------

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return render(outgoing)

    def render_file(self, file: OutgoingFile) -> Part:
        return render_file(file)

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        fields = _post_fields(key, reply_handle)
        part = named(part, key)

        async def once(shown: Part) -> tuple[str, bool]:
            body = {**shown.body, **fields}
            message = await self._rest.create_message(
                thread.chat, body, file=shown.file, file_name=shown.file_name
            )
            return str(message.get("id", "")), shows(message, shown)

        native_id, as_wanted = await _plain_if_refused(once, part)
        if not as_wanted:
            # The nonce returned the preview that an earlier process had posted under this key.
            return await self.edit(thread, native_id, part)
        return Receipt(native_id=native_id)

    async def post_voice(
        self, thread: ThreadKey, clip: VoiceClip, *, key: str, reply_handle: str = ""
    ) -> Receipt:
        body = {**_post_fields(key, reply_handle), "flags": _IS_VOICE_MESSAGE}
        about = {
            "duration_secs": round(clip.seconds, 3),
            "waveform": base64.b64encode(clip.waveform).decode("ascii"),
        }
        message = await self._rest.create_voice_message(thread.chat, body, clip.data, about)
        return Receipt(native_id=str(message.get("id", "")))

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        async def once(shown: Part) -> None:
            body = shown.body if shown.file is not None else {**shown.body, "attachments": []}
            await self._rest.edit_message(
                thread.chat, native_id, body, file=shown.file, file_name=shown.file_name
            )

        await _plain_if_refused(once, part)
        return Receipt(native_id=native_id)

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
        part = named(part, key)
        # Awaited, because this may run before READY: without a bot id, the post would never be found.
        bot_id = await self._gateway.bot_id()
        after = snowflake_at(since - _LOOK_BEFORE_S)
        for _ in range(_LOOK_PAGES):
            page = await self._rest.messages_after(thread.chat, after, limit=_PAGE)
            for message in page:
                mine = mapping(message.get("author")).get("id") == bot_id
                if mine and (shows(message, part) or shows(message, as_plain(part))):
                    return Receipt(native_id=str(message["id"]))
            if len(page) < _PAGE:
                return None
            after = int(page[-1]["id"])
        return None

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,  # noqa: ARG002 - the nonce finds it
    ) -> LiveView | None:
        if not self._settings.previews:
            return None

        async def post(part: Part) -> Receipt:
            return await self.post(thread, part, key=key, reply_handle=reply_handle)

        async def edit(message: str, part: Part) -> Receipt:
            return await self.edit(thread, message, part)

        return EditView(post, edit, native_id)

    @property
    def acknowledges(self) -> bool:
        return self._settings.acknowledges

    async def acknowledge(self, thread: ThreadKey, reply_handle: str, *, on: bool) -> None:
        message = reply_handle.removeprefix(NO_REFERENCE)
        await (self._rest.react if on else self._rest.unreact)(thread.chat, message, TAKEN)

    async def typing(self, thread: ThreadKey) -> None:
        await self._rest.typing(thread.chat)


def _post_fields(key: str, reply_handle: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"nonce": nonce_of(key), "enforce_nonce": True}
    if reply_handle and not reply_handle.startswith(NO_REFERENCE):
        fields["message_reference"] = {"message_id": reply_handle, "fail_if_not_exists": False}
    return fields


def _earliest(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """The smaller id of each chat."""
    return {chat: min(after, one.get(chat, after)) for chat, after in {**one, **other}.items()}


async def _plain_if_refused(attempt: Callable[[Part], Awaitable[T]], part: Part) -> T:
    """Attempt to send `part`; after Discord rejected its format, once more without formatting."""
    try:
        return await attempt(part)
    except discord.HTTPException as error:
        if error.status != _REFUSED or part.plain == part.body.get("content"):
            raise
    return await attempt(as_plain(part))


class _Ended(Exception):
    """The connection has ended: cancels all tasks that run with it."""

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause
