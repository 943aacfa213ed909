"""One connection to an IRC server: lines out and in, in order, and the log-in. Not here: messages of people.

The wire format is `irctokens`. Every line out is checked again here: no parameter can end a line.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from irctokens.line import Line, build, tokenise

from adapters.login_errors import LoginRefused
from parlour_irc.settings import IrcSettings
from pipeline.domain.errors import ConfigurationError, InvalidInput

LINE_BYTES = 512
"""The longest line, with its end (RFC 1459, 2.3)."""
CAPS = ("account-tag", "message-tags")
_TAGS_BYTES = 8_192
_FORBIDDEN = re.compile(r"[\r\n\x00]")
_CONNECT_S = 30.0
_REGISTER_S = 60.0
_SASL_CHUNK = 400
_MOST_NICKS = 4
_NICK_TAKEN = frozenset({"432", "433", "436", "437"})
_REFUSED_LOGIN = frozenset({"464", "902", "904", "905"})
"""A wrong password, and what SASL refuses."""
_BANNED = "465"


class Closed(ConnectionError):
    """The server closed the connection."""


class IrcConnection:
    """An open connection. `lines` is read by one task; `send` may be called by any."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, settings: IrcSettings
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._settings = settings
        self.nick = settings.nick
        """The bot's current nick."""
        self.caps: frozenset[str] = frozenset()
        """The capabilities in use."""
        self._offered: set[str] = set()

    async def send(self, command: str, *params: str) -> None:
        """Send one line. Raises InvalidInput if it is too long or would be several lines, ConnectionError."""
        if any(_FORBIDDEN.search(part) for part in (command, *params)):
            raise InvalidInput("irc: a line break inside a line is refused")
        try:
            text = build(command, list(params)).format()
        except ValueError:
            raise InvalidInput("irc: a parameter has a space or a colon where none can be") from None
        line = text.encode("utf-8", "replace") + b"\r\n"
        if len(line) > LINE_BYTES:
            raise InvalidInput(f"irc: a line of {len(line)} bytes is longer than {LINE_BYTES}")
        if self._writer.is_closing():
            raise Closed("the connection is closed")
        self._writer.write(line)
        await self._writer.drain()

    async def lines(self) -> AsyncIterator[Line]:
        """The lines as they come, without those that are no IRC. Raises Closed at the end."""
        while True:
            try:
                raw = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                raise Closed("the server closed the connection") from None
            except asyncio.LimitOverrunError:
                raise Closed("the server sent a line without an end") from None
            line = parsed(raw)
            if line is not None:
                yield line

    async def register(self) -> None:
        """Log in, and wait for the welcome. Raises ConfigurationError for what the operator must correct."""
        settings = self._settings
        await self.send("CAP", "LS", "302")
        if settings.server_password is not None:
            await self.send("PASS", settings.server_password.resolve())
        await self.send("NICK", self.nick)
        await self.send("USER", settings.nick[:10], "0", "*", settings.nick)
        async with asyncio.timeout(_REGISTER_S):
            async for line in self.lines():
                if await self._is_welcome(line):
                    return

    async def _offer(self, params: Sequence[str]) -> None:
        """Choose among the capabilities that the server offers, when its list is complete."""
        self._offered |= {word.partition("=")[0] for word in params[-1].split()}
        if params[2] != "*":
            await self._ask_for(self._offered)

    async def _ask_for(self, offered: set[str]) -> None:
        wanted = [cap for cap in CAPS if cap in offered]
        if self._settings.login == "sasl":
            if "sasl" not in offered:
                raise ConfigurationError("irc: the server offers no SASL; set login to nickserv or none")
            wanted.append("sasl")
        if wanted:
            await self.send("CAP", "REQ", " ".join(wanted))
        else:
            await self.send("CAP", "END")

    async def _is_welcome(self, line: Line) -> bool:
        """Whether the line is the welcome. Answers what the server wants before it."""
        params = line.params
        match line.command:
            case "001":
                self.nick = params[0] if params else self.nick
                return True
            case "PING":
                await self.send("PONG", *params[:1])
            case "CAP" if len(params) > 2:
                await self._negotiate(params)
            case "AUTHENTICATE" if params[:1] == ["+"]:
                await self._authenticate()
            case "903":
                await self.send("CAP", "END")
            case "ERROR":
                raise Closed("the server refuses the connection")
            case command if command in _NICK_TAKEN:
                await self._other_nick()
            case command if command in _REFUSED_LOGIN:
                # Networks ban an address that tries a wrong password too often.
                raise LoginRefused("irc: the server refuses the log-in; correct username and password")
            case command if command == _BANNED:
                raise LoginRefused("irc: the server has banned the bot; ask its operators")
        return False

    async def _negotiate(self, params: Sequence[str]) -> None:
        """Answer a line about capabilities."""
        match params[1]:
            case "LS":
                await self._offer(params)
            case "ACK":
                self.caps |= frozenset(params[-1].split())
                await (self.send("AUTHENTICATE", "PLAIN") if "sasl" in self.caps else self.send("CAP", "END"))
            case "NAK" if self._settings.login == "sasl":
                raise ConfigurationError("irc: the server refuses SASL; set login to nickserv or none")
            case "NAK":
                await self.send("CAP", "END")

    async def _authenticate(self) -> None:
        settings = self._settings
        if settings.password is None:
            raise ConfigurationError("irc: the password is not set")
        name = settings.username or settings.nick
        token = base64.b64encode(f"\0{name}\0{settings.password.resolve()}".encode()).decode("ascii")
        for start in range(0, len(token), _SASL_CHUNK):
            await self.send("AUTHENTICATE", token[start : start + _SASL_CHUNK])
        if len(token) % _SASL_CHUNK == 0:
            await self.send("AUTHENTICATE", "+")

    async def _other_nick(self) -> None:
        tried = len(self.nick) - len(self._settings.nick)
        if tried >= _MOST_NICKS:
            raise Closed("the nick and its variants are in use")
        self.nick += "_"
        await self.send("NICK", self.nick)

    async def close(self) -> None:
        """Say goodbye and hang up."""
        try:
            async with asyncio.timeout(1.0):
                await self.send("QUIT")
        except (OSError, TimeoutError):
            pass
        self._writer.close()
        try:
            async with asyncio.timeout(1.0):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


@asynccontextmanager
async def connected(
    settings: IrcSettings, *, trust: Callable[[], ssl.SSLContext] = ssl.create_default_context
) -> AsyncIterator[IrcConnection]:
    """An open connection, not yet logged in. `trust` says which certificates count. Raises OSError."""
    context = trust() if settings.tls else None
    async with asyncio.timeout(_CONNECT_S):
        reader, writer = await asyncio.open_connection(
            settings.server, settings.port, ssl=context, limit=LINE_BYTES + _TAGS_BYTES
        )
    connection = IrcConnection(reader, writer, settings)
    try:
        yield connection
    finally:
        await connection.close()


def parsed(raw: bytes) -> Line | None:
    """One line as received; None for an empty one and for what is no IRC. Raises nothing."""
    try:
        return tokenise(raw.strip(b"\r\n"))
    except (ValueError, IndexError):
        return None
