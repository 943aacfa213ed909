"""The lifecycle of the one discord.py client: connect, receive raw gateway events, close before a new start.

discord.py identifies, sends heartbeats, resumes and reconnects; its cache and its event objects are not used.
Not here: what the events mean (`inbound`), and catching up after a lost session (`chat_queues`, `backfill`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any

import aiohttp

from adapters.discord.rest import NotConnected, one_attempt
from adapters.discord.sdk import discord, point_at, quiet
from adapters.discord.settings import DiscordOptions
from adapters.json_fields import mapping
from adapters.login_errors import LoginRefused
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_log = logging.getLogger(__name__)

OnDispatch = Callable[[str, Mapping[str, Any]], None]
INTENTS = discord.Intents(
    guilds=True,
    guild_messages=True,
    dm_messages=True,
    message_content=True,
    guild_reactions=True,
    dm_reactions=True,
)
"""The events that the bot receives: messages with their text, and reactions, of servers and direct chats."""

_IDENTIFY_AGAIN_S = 5.0
"""Seconds. Discord accepts one IDENTIFY in five seconds."""
_LOGIN_S = 5.0
_BROKEN_S = 20.0
"""Seconds for which discord.py may try to resume a lost connection."""
_LOOK_S = 2.0
_CLOSE_S = 3.0
_HEARTBEAT_TIMEOUT_S = 60.0
_BAD_TOKEN = 4004
_BAD_INTENTS = (4013, 4014)
_PORTAL = "on the page Bot of the application at https://discord.com/developers/applications"
_WRONG_CREDENTIAL = (
    "channels.discord.token: Discord does not accept the token. Press Reset Token "
    f"{_PORTAL}, and store the new one where the setting points"
)
_INTENT_REFUSED = (
    "channels.discord: the bot may not read messages. Turn on MESSAGE CONTENT INTENT under Privileged "
    f"Gateway Intents, {_PORTAL}, and start again"
)


class GatewayClient:
    """Connects with `run`; passes every gateway dispatch to `on_dispatch`, in order."""

    def __init__(self, settings: DiscordOptions, clock: Clock, on_dispatch: OnDispatch) -> None:
        self._settings = settings
        self._clock = clock
        self._on_dispatch = on_dispatch
        self._client: _Client | None = None
        self._logged_in = asyncio.Event()
        self.connected = False
        self._lost_at: float | None = None
        self.received_at: float | None = None

    async def client(self) -> discord.Client:
        """The logged-in client; waits for a login in progress. Raises NotConnected."""
        try:
            async with self._clock.timeout(_LOGIN_S):
                await self._logged_in.wait()
        except TimeoutError:
            raise NotConnected from None
        if self._client is None:
            raise NotConnected
        return self._client

    async def bot_id(self) -> str:
        """The bot's id, known from the login before the gateway sends it. Raises NotConnected."""
        user = (await self.client()).user
        if user is None:
            raise NotConnected
        return str(user.id)

    async def run(self) -> None:
        """Stay connected until cancelled. Raises ConfigurationError, or ConnectionError for a retry.

        The client is always closed when this returns."""
        quiet()
        point_at(api_base=self._settings.api_base, gateway_url=self._settings.gateway_url)
        client = _Client(self, self._clock)
        self._client, self._lost_at = client, None
        async with asyncio.TaskGroup() as group:
            connection = group.create_task(_outcome(client.start(self._settings.token())))
            broken = group.create_task(self._broken_for_long())
            try:
                await asyncio.wait((connection, broken), return_when=asyncio.FIRST_COMPLETED)
                stays_broken = broken.done()
            finally:
                broken.cancel()
                # Both: on Python 3.11 discord.py connects in a wait_for that swallows a cancellation which
                # arrives as the connection succeeds; a closed client ends in any case.
                connection.cancel()
                self._client, self.connected = None, False
                self._logged_in.clear()
                await self._close(client)
        if stays_broken:
            raise ConnectionError("the connection to Discord broke and did not come back")
        raise _meaning(connection.result()) from None

    async def _broken_for_long(self) -> None:
        """Return when the connection has been lost for a while. discord.py would wait longer and longer, up
        to a quarter of an hour; a new run connects at once and fetches the missed messages."""
        while True:
            await self._clock.sleep(_LOOK_S)
            lost_at = self._lost_at
            if lost_at is not None and self._clock.monotonic() - lost_at >= _BROKEN_S:
                return

    async def check_login(self) -> str:
        """The bot's name, after a login without a gateway connection. Raises ConfigurationError for a
        token that Discord rejects or a bot that may not read messages, else ConnectionError or OSError."""
        async with self.login() as client:
            about, user = client.application, client.user
        flags = discord.ApplicationFlags() if about is None else about.flags
        if not (flags.gateway_message_content or flags.gateway_message_content_limited):
            raise ConfigurationError(_INTENT_REFUSED)
        return str(user)

    @contextlib.asynccontextmanager
    async def login(self) -> AsyncIterator[discord.Client]:
        """A client that is logged in and not connected. Raises as `check_login`, but for the intent."""
        quiet()
        point_at(api_base=self._settings.api_base, gateway_url=self._settings.gateway_url)
        async with discord.Client(intents=INTENTS, http_trace=one_attempt()) as client:
            try:
                async with self._clock.timeout(_LOGIN_S):
                    await client.login(self._settings.token())
            except (discord.DiscordException, aiohttp.ClientError) as error:
                raise _meaning(error) from None
            yield client

    def logged_in(self) -> None:
        """Calls are possible from now on."""
        self._logged_in.set()

    def frame_received(self, frame: str | bytes) -> None:
        """A gateway frame arrived: any frame is a sign of life."""
        self.received_at = self._clock.monotonic()
        payload = mapping(json.loads(frame))
        name = payload.get("t")
        if not isinstance(name, str):
            return
        if name in ("READY", "RESUMED"):
            self.connected, self._lost_at = True, None
            _log.info("discord: %s", "connected" if name == "READY" else "resumed")
        self._on_dispatch(name, mapping(payload.get("d")))

    def lost(self) -> None:
        """The connection broke; discord.py will resume it."""
        if self.connected:
            _log.info("discord: the connection broke")
            self._lost_at = self._clock.monotonic()
        self.connected = False

    async def _close(self, client: discord.Client) -> None:
        try:
            async with self._clock.timeout(_CLOSE_S):
                await client.close()
        except TimeoutError:
            # The peer does not answer the closing frame; the sockets are closed in any case.
            await client.http.close()


class _Client(discord.Client):
    """discord.py's client without caches, and with the injected clock between two IDENTIFYs."""

    def __init__(self, owner: GatewayClient, clock: Clock) -> None:
        super().__init__(
            intents=INTENTS,
            # The raw frames: the only public access to them.
            enable_debug_events=True,
            http_trace=one_attempt(),
            max_messages=None,
            chunk_guilds_at_startup=False,
            member_cache_flags=discord.MemberCacheFlags.none(),
            guild_ready_timeout=0.0,
            heartbeat_timeout=_HEARTBEAT_TIMEOUT_S,
            allowed_mentions=discord.AllowedMentions.none(),
        )
        # Its cache would parse every object, and an unreadable one would end the connection at each attempt.
        # Nothing here reads the cache, and discord.py has no setting to disable it.
        self._connection.parsers.clear()
        self._owner = owner
        self._pause = clock.sleep

    async def setup_hook(self) -> None:
        self._owner.logged_in()

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:  # noqa: ARG002 - discord.py's signature
        if not initial:
            await self._pause(_IDENTIFY_AGAIN_S)

    async def on_socket_raw_receive(self, frame: str | bytes) -> None:
        # No await: discord.py starts a task per frame, and tasks start in the order of the frames.
        self._owner.frame_received(frame)

    async def on_disconnect(self) -> None:
        self._owner.lost()

    async def on_error(self, event_method: str, /, *_: Any, **__: Any) -> None:
        _log.exception("discord: a frame could not be taken in (%s)", event_method)


async def _outcome(connection: Coroutine[Any, Any, None]) -> Exception | None:
    try:
        await connection
    except Exception as error:  # noqa: BLE001 - reported by `_meaning`
        return error
    return None


def _meaning(error: Exception | None) -> Exception:
    """The error for the end of a connection: a ConfigurationError for the operator, or one to retry."""
    match error:
        case None:
            return ConnectionError("the connection to Discord ended")
        case discord.LoginFailure():
            return ConfigurationError(_WRONG_CREDENTIAL)
        case discord.PrivilegedIntentsRequired():
            return LoginRefused(_INTENT_REFUSED)
        case discord.ConnectionClosed(code=code):
            return _closed(code)
        case discord.HTTPException(status=status):
            return ConnectionError(f"Discord answered {status} to the login")
        case _:
            return error


def _closed(code: int) -> Exception:
    if code == _BAD_TOKEN:
        return LoginRefused(_WRONG_CREDENTIAL)
    if code in _BAD_INTENTS:
        return LoginRefused(_INTENT_REFUSED)
    return ConnectionError(f"Discord closed the connection with {code}")
