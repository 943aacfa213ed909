"""An IRC network for tests: one server over real TCP, with people who are logged in to its services.

It writes the lines of a real server, and enforces a real one's limit: 512 bytes of a line, with everything
that it puts in front of a message. Implements `parlour.testing.FakePlatform`.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Self

from irctokens.line import Line, build, tokenise

from parlour.testing import Call, Faults, Person, Place, Shown, SystemClock

HOST = "h" * 63
"""The longest host name that a server shows."""
_LOOK_S = 0.005


class Bot:
    """One connection of a bot."""

    def __init__(self, server: FakeIrc, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.nick = ""
        self.account = ""
        self.caps: set[str] = set()
        self.negotiating = False
        self.welcomed = False
        self.rooms: set[str] = set()
        self._reader = reader
        self._writer = writer
        self._named = False

    def send(self, *params: str, source: str = "irc.test", tags: dict[str, str] | None = None) -> None:
        """One line to the bot."""
        line = build(params[0], list(params[1:]), source, tags if self.caps else None)
        self.raw(line.format().encode())

    def raw(self, line: bytes) -> None:
        """Any bytes as a line."""
        if not self._writer.is_closing():
            self._writer.write(line + b"\r\n")

    def close(self) -> None:
        """Hang up without a word."""
        self._writer.transport.abort()

    async def serve(self) -> None:
        """Answer until the bot is gone."""
        while True:
            try:
                raw = await self._reader.readline()
            except (ConnectionError, ValueError):
                return
            if not raw:
                return
            assert len(raw) <= 512, "a server cuts a longer line"
            line = tokenise(raw.rstrip(b"\r\n"))
            self.server.lines.append(raw.decode())
            if line.command == "QUIT" or self.server.answer(self, line) is False:
                self.close()
                return

    def welcome(self) -> None:
        """The end of the registration, once everything is there."""
        if self.nick and self._named and not self.negotiating and not self.welcomed:
            self.welcomed = True
            self.send("001", self.nick, f"Welcome to the test network {self.nick}")
            self.send("376", self.nick, "End of /MOTD command.")

    def named(self) -> None:
        """USER was received."""
        self._named = True


class FakeIrc:
    """The network. `accounts` are the services' passwords; `offers` the capabilities."""

    name = "irc"

    def __init__(self, *, tls: ssl.SSLContext | None = None, server_password: str = "") -> None:
        self.faults = Faults()
        self.lenient = True
        self.calls: list[Call] = []
        self.lines: list[str] = []
        """Every line of the bots, as it came."""
        self.accounts = {"parlour": "correct-horse"}
        self.offers = ["account-tag", "message-tags", "sasl=PLAIN", "server-time"]
        self.taken: set[str] = set()
        """Nicks that somebody has."""
        self.owners: dict[str, str] = {}
        """The account of each nick of a person."""
        self.closed_rooms: set[str] = set()
        self.bots: list[Bot] = []
        self.port = 0
        self._tls = tls
        self._server_password = server_password
        self._server: asyncio.Server | None = None
        self._shown: list[tuple[str, Shown]] = []
        self._ids = itertools.count(1)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for bot in tuple(self.bots):
            bot.close()
        await self.until(lambda: not self.bots)
        await self._server.wait_closed()

    def overrides(self, folder: Path) -> tuple[str, ...]:
        secret = folder / "irc-password"
        secret.touch(mode=0o600)
        secret.write_text(self.accounts["parlour"], "utf-8")
        table = {
            "server": '"127.0.0.1"',
            "port": str(self.port),
            "tls": "false",
            "login": '"sasl"',
            "password": f'"file:{secret}"',
            "channels": '["#team"]',
            "access": '"open"',
            "rate": "0",
        }
        return tuple(f"channels.irc.{key}={value}" for key, value in table.items())

    # -- people -------------------------------------------------------------------------------
    def person(self, name: str, *, bot: bool = False) -> Person:
        self.owners[name] = name.lower()
        return Person(id=name.lower(), name=name, bot=bot)

    def private_chat(self, person: Person) -> Place:
        return Place(chat=person.name, private=True)

    def room(self, name: str, *members: Person) -> Place:
        return Place(chat=f"#{name}", private=False)

    async def say(self, place: Place, person: Person, text: str, *, addressed: bool = True) -> str:
        words = f"parlour: {text}" if addressed and not place.private else text
        native_id = f"m{next(self._ids)}"
        self._shown.append((place.chat, Shown(native_id=native_id, author=person.id, text=words)))
        tags = {"msgid": native_id} | ({"bot": ""} if person.bot else {})
        if account := self.owners.get(person.name, ""):
            tags["account"] = account
        await self.deliver(person.name, place.chat if not place.private else "", words, tags)
        return native_id

    async def deliver(self, nick: str, room: str, words: str, tags: dict[str, str]) -> None:
        """A message of somebody to the bots: in a room, or to each alone."""
        await self.until(lambda: any(bot.welcomed for bot in self.bots))
        for bot in self.bots:
            if not room or room in bot.rooms:
                bot.send("PRIVMSG", room or bot.nick, words, source=f"{nick}!~user@{HOST}", tags=tags)

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        raise NotImplementedError("IRC has no voice notes")

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        raise NotImplementedError("IRC has no buttons")

    def visible(self, place: Place) -> tuple[Shown, ...]:
        return tuple(shown for chat, shown in self._shown if chat == place.chat)

    def bot_texts(self, place: Place) -> list[str]:
        return [shown.text for shown in self.visible(place) if not shown.author]

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        async with asyncio.timeout(timeout_s):
            while not holds():
                await asyncio.sleep(_LOOK_S)

    def unacknowledged(self) -> int:
        return 0

    # -- the server ---------------------------------------------------------------------------
    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        bot = Bot(self, reader, writer)
        self.bots.append(bot)
        try:
            await bot.serve()
        finally:
            self.bots.remove(bot)
            writer.close()

    def answer(self, bot: Bot, line: Line) -> bool | None:
        """Do what a line says; False hangs up."""
        handler = getattr(self, f"_on_{line.command.lower()}", None)
        hang_up: bool | None = None if handler is None else handler(bot, *line.params)
        bot.welcome()
        return hang_up

    def _on_pass(self, bot: Bot, password: str) -> None:
        if password != self._server_password:
            bot.send("464", "*", "Password incorrect")

    def _on_nick(self, bot: Bot, nick: str) -> None:
        if nick.casefold() in {taken.casefold() for taken in self.taken}:
            bot.send("433", bot.nick or "*", nick, "Nickname is already in use")
        else:
            bot.nick = nick

    def _on_user(self, bot: Bot, *_: str) -> None:
        bot.named()

    def _on_ping(self, bot: Bot, token: str) -> None:
        bot.send("PONG", "irc.test", token)

    def _on_join(self, bot: Bot, room: str) -> None:
        if room in self.closed_rooms:
            bot.send("473", bot.nick, room, "Cannot join channel (+i)")
        else:
            bot.rooms.add(room)
            bot.send("JOIN", room, source=self._mask(bot))

    def _on_nickserv(self, bot: Bot, _identify: str, name: str, password: str) -> None:
        bot.account = name if self.accounts.get(name) == password else ""

    def _on_privmsg(self, bot: Bot, target: str, text: str) -> bool | None:
        return self._message(bot, "PRIVMSG", target, text)

    def _on_notice(self, bot: Bot, target: str, text: str) -> bool | None:
        return self._message(bot, "NOTICE", target, text)

    def _mask(self, bot: Bot) -> str:
        return f"{bot.nick}!~parlour@{HOST}"

    def _on_cap(self, bot: Bot, *params: str) -> None:
        match params:
            case ("LS", *_):
                bot.negotiating = True
                half = len(self.offers) // 2
                bot.send("CAP", "*", "LS", "*", " ".join(self.offers[:half]))
                bot.send("CAP", "*", "LS", " ".join(self.offers[half:]))
            case ("REQ", wanted):
                bot.caps |= set(wanted.split())
                bot.send("CAP", "*", "ACK", wanted)
            case ("END",):
                bot.negotiating = False

    def _on_authenticate(self, bot: Bot, given: str) -> None:
        if given == "PLAIN":
            bot.send("AUTHENTICATE", "+", source="")
            return
        _, name, password = base64.b64decode(given).decode().split("\0")
        if self.accounts.get(name) == password:
            bot.account = name
            bot.send("900", bot.nick, self._mask(bot), name, f"You are now logged in as {name}")
            bot.send("903", bot.nick, "SASL authentication successful")
        else:
            bot.send("904", bot.nick, "SASL authentication failed")

    def _on_whois(self, bot: Bot, nick: str) -> None:
        if nick not in self.owners:
            bot.send("401", bot.nick, nick, "No such nick/channel")
        else:
            bot.send("311", bot.nick, nick, "~user", HOST, "*", "somebody")
            if self.owners[nick]:
                bot.send("330", bot.nick, nick, self.owners[nick], "is logged in as")
        bot.send("318", bot.nick, nick, "End of /WHOIS list.")

    def _message(self, bot: Bot, command: str, target: str, text: str) -> bool | None:
        fault = self.faults.next_for(command, shows=True)
        kind = "" if fault is None else fault.kind
        status = {"": 200, "rate_limit": 439}.get(kind, 0)
        self.calls.append(
            Call(method=command, payload={"text": text}, status=status, at=SystemClock().monotonic())
        )
        if kind in ("error_before", "drop"):
            return False
        if fault is not None and kind == "rate_limit":
            seconds = f"{fault.retry_after_s:.0f}"
            bot.send("439", bot.nick, target, f"Target changes too fast. Please wait {seconds} seconds.")
            return None
        if target.startswith("#") and target not in bot.rooms:
            bot.send("404", bot.nick, target, "Cannot send to channel")
            return None
        if not target.startswith("#") and target not in self.owners:
            bot.send("401", bot.nick, target, "No such nick/channel")
            return None
        whole = f":{self._mask(bot)} {command} {target} :{text}\r\n".encode()
        assert len(whole) <= 512, "the server would cut the end off"
        shown = Shown(
            native_id=f"b{next(self._ids)}", author="" if command == "PRIVMSG" else "notice", text=text
        )
        self._shown.append((target, shown))
        return False if kind == "error_after" else None
