"""The channel: keeps the connection, brings in what people say, and posts lines to the right person.

A nick is no identity. A private answer goes to a nick only while the server says that the person has it.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import ssl
from collections.abc import Callable

from irctokens.line import Line

from adapters.channel import (
    ChannelCapabilities,
    ChannelHealth,
    Failure,
    LiveView,
    OnInbound,
    Outgoing,
    Part,
    RateLimits,
    Receipt,
)
from adapters.health import HealthTracker
from parlour_irc import outbound
from parlour_irc.connection import Closed, IrcConnection, connected
from parlour_irc.inbound import Said, addressed_words, escaped, folded, inbound, said
from parlour_irc.outbound import TEXT_BYTES, Refused, Unsent, harmless, refusal
from parlour_irc.requests import ServerRequests
from parlour_irc.settings import IrcSettings
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError, MediaUnavailable
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import MediaRef

_log = logging.getLogger(__name__)

DEFAULT_RATES = RateLimits(chat_per_s=0.5, chat_burst=3, account_per_s=0.5)
"""RFC 1459, 8.10: a command costs two seconds, and ten seconds may be spent in advance. A post is two
commands; most servers count less for them."""
SILENCE_S = 180.0
_PING_EVERY_S = 60.0
_CONNECTING_S = 15.0
"""How long a post waits for a connection that is being made."""
_FRESH_S = 5.0
"""How long an answer of the server counts for the next lines to the same person."""
_MOST_HANDLE_BYTES = 30
"""A longer nick is not put in front of an answer: the line would be too long."""
_HINT_EVERY_S = 30.0
_MOST_PEOPLE = 10_000
_UNKNOWN = (
    "I know people by their account at this network's services. Log in to yours, for example with "
    "/msg NickServ IDENTIFY, and write to me again."
)
_NOT_STORED = "Your message could not be stored. Please send it again."
_NO_VOICE = "IRC has no voice notes."


class IrcAdapter:
    """A bot on an IRC network. Implements PostingChannel and CheckableChannel."""

    def __init__(
        self,
        settings: IrcSettings,
        clock: Clock,
        *,
        name: str = "irc",
        rates: RateLimits = DEFAULT_RATES,
        trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    ) -> None:
        self.name = name
        self.account = settings.account
        self.capabilities = ChannelCapabilities(
            text_limit=TEXT_BYTES,
            resolution="none",
            silence_limit_s=SILENCE_S,
            rates=rates,
            guarantee="IRC keeps no messages: a line whose confirmation is lost is sent again and labelled, "
            "and what is written while the bot is away is lost",
            copies="The IRC network's servers pass every line on, and other people's clients may log it.",
        )
        self._settings = settings
        self._clock = clock
        self._trust = trust
        self._health = HealthTracker(clock)
        self._ids = itertools.count(1)
        self._ready = asyncio.Event()
        self._connection: IrcConnection | None = None
        self._requests: ServerRequests | None = None
        self._rooms: dict[str, str] = {}
        """The rooms that the bot is in, by chat id, as the server writes them."""
        self._nicks = BoundedDict[str, str](_MOST_PEOPLE)
        """The nick under which a person wrote last."""
        self._confirmed: tuple[str, str, float] = ("", "", 0.0)
        """Whose nick the server confirmed last, the nick, and when."""
        self._hint_after = 0.0

    # -- receiving ----------------------------------------------------------------------------
    async def run(self, on_inbound: OnInbound) -> None:
        self._health.starting()
        reason = "it is not running"
        try:
            async with connected(self._settings, trust=self._trust) as connection:
                await connection.register()
                self._check_identity(connection)
                self._connection, self._requests = connection, ServerRequests(connection)
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._begin(connection, self._requests))
                    group.create_task(self._keep_alive(connection))
                    await self._read(connection, self._requests, on_inbound)
        except ExceptionGroup as group_error:
            error = _first(group_error)
            reason = outbound.classify(error).message
            raise error from None
        finally:
            self._ready.clear()
            if self._requests is not None:
                self._requests.fail(Closed("the connection was lost"))
            self._connection = self._requests = None
            self._rooms.clear()
            self._confirmed = ("", "", 0.0)
            self._health.down(reason)

    async def check_credentials(self) -> str:
        """See CheckableChannel. Logs in under the nick and hangs up."""
        async with connected(self._settings, trust=self._trust) as connection:
            await connection.register()
            self._check_identity(connection)
            return f"{connection.nick} on {self._settings.server}"

    def _check_identity(self, connection: IrcConnection) -> None:
        if self._settings.identity == "account" and "account-tag" not in connection.caps:
            raise ConfigurationError(
                "irc: the server does not say who is logged in (account-tag), so no one can be known by an "
                'account; set identity to "hostmask" if user@host is enough there'
            )

    async def _begin(self, connection: IrcConnection, requests: ServerRequests) -> None:
        """What follows the welcome: the log-in at NickServ, the rooms. Then the channel is up."""
        settings = self._settings
        if settings.login == "nickserv" and settings.password is not None:
            # The server's own command, and not a message: a person who takes that nick gets nothing.
            name = settings.username or settings.nick
            answers = await requests.ask(("NICKSERV", "IDENTIFY", name, settings.password.resolve()))
            if any(line.command == "421" for line in answers):
                raise ConfigurationError('irc: the server has no NickServ; set login to "sasl" or "none"')
        if settings.channels:
            await requests.ask(*(("JOIN", room) for room in settings.channels))
        missing = [room for room in settings.channels if escaped(room) not in self._rooms]
        if missing:
            _log.warning("the bot could not join every room", extra={"rooms": ", ".join(missing)})
        self._health.up(f"as {connection.nick}" + (f", not in {', '.join(missing)}" if missing else ""))
        self._ready.set()

    async def _keep_alive(self, connection: IrcConnection) -> None:
        while True:
            await self._clock.sleep(_PING_EVERY_S)
            await connection.send("PING", "alive")

    async def _read(self, connection: IrcConnection, requests: ServerRequests, on_inbound: OnInbound) -> None:
        async for line in connection.lines():
            self._health.received()
            requests.take(line)
            match line.command:
                case "PING":
                    await connection.send("PONG", *line.params[:1])
                case "ERROR":
                    raise Closed("the server closes the connection")
                case "PRIVMSG":
                    message = said(line, own_nick=connection.nick, identity=self._settings.identity)
                    if message is not None:
                        await self._bring(connection, message, on_inbound)
                case "JOIN" | "PART" | "KICK" | "NICK" if line.source and line.params:
                    self._note_own(connection, line)

    async def _bring(self, connection: IrcConnection, message: Said, on_inbound: OnInbound) -> None:
        native_id = message.native_id or f"{self._clock.now():.6f}-{next(self._ids)}"
        item = inbound(
            message,
            channel=self.name,
            account=self.account,
            own_nick=connection.nick,
            native_id=native_id,
            at=self._clock.now(),
        )
        if not message.person:
            await self._hint(connection, message)
        if item is None:
            return
        self._nicks[message.person] = message.nick
        try:
            await on_inbound(item)
        except Exception as error:  # noqa: BLE001 - the store, or the gateway that stops
            # The server does not deliver it again.
            _log.warning("a message was not stored", extra={"reason": type(error).__name__})
            await connection.send("NOTICE", message.nick, _NOT_STORED)

    async def _hint(self, connection: IrcConnection, message: Said) -> None:
        """Tell somebody unknown why there is no answer; seldom, as nothing limits how often they write."""
        meant = not message.room or addressed_words(message.text, connection.nick)[1]
        now = self._clock.monotonic()
        if meant and now >= self._hint_after:
            self._hint_after = now + _HINT_EVERY_S
            await connection.send("NOTICE", message.nick, _UNKNOWN)

    def _note_own(self, connection: IrcConnection, line: Line) -> None:
        """Note where the bot is, and its name."""
        own = folded(connection.nick)
        first, about_self = line.params[0], folded(line.hostmask.nickname) == own
        match line.command:
            case "JOIN" if about_self:
                self._rooms[escaped(first)] = first
            case "PART" if about_self:
                self._rooms.pop(escaped(first), None)
            case "KICK" if len(line.params) > 1 and folded(line.params[1]) == own:
                self._rooms.pop(escaped(first), None)
                self._health.up(f"as {connection.nick}, removed from {first}")
            case "NICK" if about_self:
                connection.nick = first

    # -- sending ------------------------------------------------------------------------------
    def render(self, outgoing: Outgoing) -> tuple[Part, ...]:
        return outbound.render(outgoing, max_lines=self._settings.max_lines)

    async def post(self, thread: ThreadKey, part: Part, *, key: str, reply_handle: str = "") -> Receipt:
        requests = await self._when_ready()
        text = str(part.body["text"])
        if thread.chat.startswith(("#", "&")):
            target = self._rooms.get(thread.chat, "")
            if not target:
                raise Refused(Failure(kind="permission", message="the bot is not in the room"))
            fits = 0 < len(reply_handle.encode()) <= _MOST_HANDLE_BYTES
            text = f"{reply_handle}: {text}" if fits else harmless(text)
        else:
            target = await self._nick_of(thread.chat, reply_handle, requests)
        answers = await requests.ask(("PRIVMSG", target, text))
        refused = refusal(answers, target)
        if refused is not None:
            raise refused
        return Receipt(native_id=key)

    async def _when_ready(self) -> ServerRequests:
        try:
            async with asyncio.timeout(_CONNECTING_S):
                await self._ready.wait()
        except TimeoutError:
            raise Unsent("not connected") from None
        if self._requests is None:
            raise Unsent("not connected")
        return self._requests

    async def _nick_of(self, person: str, handle: str, requests: ServerRequests) -> str:
        """The nick that the person has now. Raises Refused if the server does not confirm one."""
        whose, nick, at = self._confirmed
        if whose == person and self._clock.monotonic() - at <= _FRESH_S:
            return nick
        for candidate in dict.fromkeys((self._nicks.get(person, ""), handle)):
            if candidate and await self._belongs(candidate, person, requests):
                self._confirmed = (person, candidate, self._clock.monotonic())
                return candidate
        raise Refused(Failure(kind="not_found", message="the person is not there under a nick that is known"))

    async def _belongs(self, nick: str, person: str, requests: ServerRequests) -> bool:
        for line in await requests.ask(("WHOIS", nick)):
            about = line.params[1:2] and folded(line.params[1]) == folded(nick)
            if about and line.command == "330" and self._settings.identity == "account":
                return len(line.params) > 2 and escaped(line.params[2]) == person
            if about and line.command == "311" and self._settings.identity == "hostmask":
                return len(line.params) > 3 and escaped(f"{line.params[2]}@{line.params[3]}") == person
        return False

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        raise Refused(Failure(kind="invalid", message="IRC cannot edit a message"))

    async def find(self, thread: ThreadKey, part: Part, *, key: str, since: float) -> Receipt | None:
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
        return None

    async def typing(self, thread: ThreadKey) -> None:
        return None

    async def download(self, ref: MediaRef, *, max_bytes: int) -> bytes:
        raise MediaUnavailable(_NO_VOICE)

    def classify(self, error: Exception) -> Failure:
        return outbound.classify(error)

    def health(self) -> ChannelHealth:
        return self._health.read()


def _first(group: ExceptionGroup) -> Exception:
    """The error to report: one for the operator, if there is one."""
    errors = [_first(one) if isinstance(one, ExceptionGroup) else one for one in group.exceptions]
    return next((one for one in errors if isinstance(one, ConfigurationError)), errors[0])
