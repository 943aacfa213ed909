"""The adapter of one Telegram bot: its lifecycle and the channel interface."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from aiohttp import web
from telegram.error import InvalidToken, TelegramError

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
    VoiceClip,
)
from adapters.files import OutgoingFile
from adapters.health import HealthTracker
from adapters.json_fields import integer, mapping, text
from adapters.permissions import ChannelUse, PermissionGap
from adapters.telegram import failures, media, orphans, outbound
from adapters.telegram.api import TelegramApi
from adapters.telegram.command_menu import command_menu
from adapters.telegram.permissions import permission_gaps
from adapters.telegram.polling import REFUSED, Poller
from adapters.telegram.rate_limits import DEFAULT_RATES
from adapters.telegram.receiving import Receiver
from adapters.telegram.sending import Sender
from adapters.telegram.settings import CHANNEL, TelegramOptions
from adapters.telegram.view import Drafts, EditedView
from adapters.telegram.webhook import TelegramWebhook
from pipeline.domain.clock import Clock
from pipeline.domain.command_types import LANGUAGES
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef

_log = logging.getLogger(__name__)

_SILENCE_S = 120.0
_TYPING_S = 5.0
_GUARANTEES = {
    "post": (
        "every answer once, as long as Telegram confirms it: after a lost confirmation it is posted again, "
        "says that it may be a repeat, and the first is looked for: found, it is the answer and the repeat "
        "goes; in a private chat of a bot that is busy in many others the repeat may stay, labelled"
    ),
    "edit": (
        "every answer once: a placeholder is posted and recorded, then edited into the answer; a crash "
        'between the two leaves a "…" behind, and never the answer twice; '
        "a file may come twice, and is labelled then"
    ),
    "plain": (
        "every answer at least once: Telegram cannot tell whether a message arrived, so after a crash or a "
        "lost connection an answer may come twice, and is labelled then"
    ),
}


class TelegramAdapter:
    """A posting channel for one bot. Usable without `run`, for replies that are still to be delivered."""

    name = CHANNEL

    def __init__(self, settings: TelegramOptions, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._api = TelegramApi(settings, clock)
        self._sender = Sender(self._api)
        self._drafts = Drafts(self._sender, clock)
        self._health = HealthTracker(clock)
        self._webhook = TelegramWebhook(settings, self._api, self._health, clock)

    @property
    def account(self) -> str:
        return self._settings.account

    @property
    def capabilities(self) -> ChannelCapabilities:
        replies = self._settings.replies
        return ChannelCapabilities(
            text_limit=4096,
            text_unit="utf16",
            streaming=self._settings.previews,
            edit=replies != "plain",
            voice_in=True,
            resolution="placeholder" if replies == "edit" else "none",
            adopts=replies == "post",
            file_bytes=outbound.FILE_BYTES,
            typing_s=_TYPING_S,
            silence_limit_s=_SILENCE_S,
            rates=self._settings.rates or DEFAULT_RATES,
            guarantee=_GUARANTEES[replies],
            copies="Telegram keeps its own copy of this chat: what has to go, delete there as well.",
        )

    def routes(self) -> Iterable[web.RouteDef]:
        """The webhook's route; none when polling."""
        return self._webhook.routes() if self._settings.mode == "webhook" else ()

    async def run(self, on_inbound: OnInbound) -> None:
        self._health.starting()
        self._settings.checked_token()
        try:
            async with self._api.connected():
                await self._receive(on_inbound, await self._who_am_i())
        except Exception as error:
            words = str(error) if isinstance(error, ConfigurationError) else failures.classify(error).message
            self._health.down(words)
            raise
        except asyncio.CancelledError:
            self._health.down("stopped")
            raise

    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return outbound.render(outgoing)

    def render_file(self, file: OutgoingFile) -> Part:
        return outbound.render_file(file)

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:  # noqa: ARG002 - Telegram takes no key
        return Receipt(native_id=await self._sender.post(thread, part, reply_handle=reply_handle))

    async def post_voice(
        self,
        thread: ThreadKey,
        clip: VoiceClip,
        *,
        key: str,  # noqa: ARG002 - Telegram takes no key
        reply_handle: str = "",
    ) -> Receipt:
        return Receipt(native_id=await self._sender.voice(thread, clip, reply_handle=reply_handle))

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        await self._sender.edit(thread, native_id, part)
        return Receipt(native_id=native_id)

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:  # noqa: ARG002 - a bot cannot read a chat's history
        return None

    def open_view(
        self,
        thread: ThreadKey,
        *,
        key: str,
        reply_handle: str,
        native_id: str,
        doubtful_since: float | None = None,
    ) -> LiveView | None:
        if not self._settings.previews:
            return None
        private = not thread.chat.startswith("-")
        if private and not native_id and self._drafts.supported:
            return self._drafts.view(thread, key)
        if self._settings.replies == "plain":
            return None
        return EditedView(
            self._sender,
            thread,
            reply_handle=reply_handle,
            native_id=native_id,
            adopts=self._settings.replies == "post",
            in_doubt=doubtful_since is not None and not native_id,
        )

    async def adopt(
        self, thread: ThreadKey, part: Part, *, repeat: str, labels: Iterable[str], known: Iterable[str]
    ) -> Receipt | None:
        found = await orphans.adopt(self._sender, thread, part, repeat=repeat, labels=labels, known=known)
        return Receipt(native_id=found) if found else None

    async def take_back(self, thread: ThreadKey, native_id: str) -> None:
        await self._sender.delete(thread, native_id)

    @property
    def acknowledges(self) -> bool:
        return self._settings.acknowledges

    async def acknowledge(self, thread: ThreadKey, reply_handle: str, *, on: bool) -> None:
        await self._sender.react(thread, reply_handle, TAKEN if on else "")

    async def typing(self, thread: ThreadKey) -> None:
        await self._sender.typing(thread)

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        return await media.download(self._api, ref, self._clock, max_bytes=max_bytes)

    def classify(self, error: Exception) -> Failure:
        return failures.classify(error)

    def health(self) -> ChannelHealth:
        return self._health.read()

    async def check_credentials(self) -> str:
        self._settings.checked_token()
        _, username = await self._who_am_i()
        return f"@{username}"

    async def permission_gaps(self, use: ChannelUse) -> tuple[PermissionGap, ...]:
        return await permission_gaps(self._api, self._settings, use)

    async def _who_am_i(self) -> tuple[int, str]:
        """The bot's id and name."""
        try:
            me = mapping(await self._api.call("getMe", {}))
        except InvalidToken:
            raise ConfigurationError(REFUSED) from None
        number, username = integer(me.get("id")), text(me.get("username"), most=64)
        if number is None or not username:
            raise TelegramError(
                "getMe says neither id nor name; is channels.telegram.api_base a Bot API server?"
            )
        return number, username

    async def _receive(self, on_inbound: OnInbound, bot: tuple[int, str]) -> None:
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            receiver = Receiver(
                api=self._api,
                sender=self._sender,
                clock=self._clock,
                account=self.account,
                bot=bot,
                on_inbound=on_inbound,
                tasks=tasks,
            )
            background = [tasks.create_task(self._drafts.renew()), tasks.create_task(self._set_commands())]
            try:
                await self._updates_into(receiver)
            except Exception as error:  # noqa: BLE001 - raised again below, outside of the group
                failure = error
            for task in background:
                task.cancel()
        if failure is not None:
            raise failure

    async def _updates_into(self, receiver: Receiver) -> None:
        if self._settings.mode == "webhook":
            await self._webhook.run(receiver)
        else:
            poller = Poller(self._api, receiver, self._health, self._clock, poll_s=self._settings.poll_s)
            await poller.run()

    async def _set_commands(self) -> None:
        """Set the command menu in every language. The bot also works without it."""
        try:
            for language in LANGUAGES:
                await self._api.call("setMyCommands", command_menu(language))
        except TelegramError as error:
            _log.info("the menu of commands was not set", extra={"reason": failures.classify(error).message})
