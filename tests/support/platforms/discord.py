"""A Discord for tests: REST API, gateway and CDN on loopback, with the real one's limits and failures.

One bot, one server, any number of direct chats and rooms. Point a gateway at it with `overrides`, or
discord.py itself with `api_base` and `gateway_url`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from pipeline.domain.clock import Clock, SystemClock
from tests.support.platforms.discord_gateway import Gateway
from tests.support.platforms.discord_interactions import Interactions
from tests.support.platforms.discord_rest import Rest
from tests.support.platforms.discord_world import (
    DM,
    GUILD_TEXT,
    Message,
    StoredFile,
    User,
    World,
    button_rows,
    read,
)
from tests.support.platforms.file_names import shown_kind
from tests.support.platforms.platform import Call, Faults, Person, Place, Shown

_VOICE = 1 << 13
_FORWARDED = 1 << 14
_CLIENT_MAX_BYTES = 64 * 1024 * 1024

_CONTENT_INTENT = 1 << 18
"""The application flag GATEWAY_MESSAGE_CONTENT."""


class FakeDiscord:
    """Implements FakePlatform."""

    name = "discord"

    def __init__(self, clock: Clock | None = None) -> None:
        clock = clock or SystemClock()
        self.token = f"FakeBotOfTheTests.Gfake1.{secrets.token_urlsafe(24)}"
        self.world = World(clock)
        self.interactions = Interactions(clock)
        self.gateway = Gateway(self.world)
        self.rest = Rest(self.world, self.interactions, clock, self._note_change)
        self.rest.on_message = self._tell_bot
        self.rest.application_flags = lambda: _CONTENT_INTENT if self.gateway.content_intent_granted else 0
        self.rest.token = self.gateway.token = self.token
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._host = ""

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=_CLIENT_MAX_BYTES)
        app.add_routes([*self.rest.routes(), web.get("/gateway/", self.gateway.serve)])
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        self._host = f"127.0.0.1:{port}"
        self.world.cdn_base = f"http://{self._host}"
        self.gateway.resume_url = self.gateway_url
        return self

    async def __aexit__(self, *_: object) -> None:
        self.rest.closing.set()
        self.gateway.drop_sockets()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def api_base(self) -> str:
        """The replacement for https://discord.com/api/v10."""
        return f"http://{self._host}/api/v10"

    @property
    def gateway_url(self) -> str:
        """The replacement for wss://gateway.discord.gg/."""
        return f"ws://{self._host}/gateway/"

    @property
    def faults(self) -> Faults:
        """How it misbehaves; may be replaced."""
        return self.rest.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self.rest.faults = faults

    @property
    def calls(self) -> list[Call]:
        """Every request, by the names of `Rest.routes`."""
        return self.rest.calls

    @calls.setter
    def calls(self, calls: list[Call]) -> None:
        self.rest.calls = calls

    @property
    def lenient(self) -> bool:
        """Whether the channel buckets are left out."""
        return self.rest.lenient

    @lenient.setter
    def lenient(self, lenient: bool) -> None:
        self.rest.lenient = lenient

    def overrides(self, folder: Path) -> tuple[str, ...]:
        """Settings of a gateway for this bot, with open access."""
        token = folder / "discord-token"
        token.touch(mode=0o600)
        token.write_text(self.token)
        return (
            f"channels.discord.token=file:{token}",
            f"channels.discord.api_base={self.api_base}",
            f"channels.discord.gateway_url={self.gateway_url}",
            "channels.discord.access=open",
        )

    # -- people -----------------------------------------------------------------------------------

    def person(self, name: str, *, bot: bool = False) -> Person:
        """The account called `name`."""
        user = self.world.user(name, bot=bot)
        return Person(id=user.id, name=user.name, bot=user.bot)

    def private_chat(self, person: Person) -> Place:
        """The direct chat of the person and the bot."""
        channel = self.world.channel(DM, recipients=(person.id,))
        return Place(chat=channel.id, private=True)

    def room(self, name: str, *members: Person) -> Place:
        """A text channel of the one server; all accounts are in it."""
        return Place(chat=self.world.channel(GUILD_TEXT, name=name).id, private=False)

    async def say(
        self, place: Place, person: Person, text: str, *, addressed: bool = True, reply_to: str = ""
    ) -> str:
        """The person writes; in a room `addressed` puts the bot's mention in front."""
        if addressed and not place.private:
            text = f"<@{self.world.bot.id}> {text}"
        return await self.send(place, person, text, reply_to=reply_to)

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        """A voice message: the flag, one audio attachment, no words."""
        return await self.send(place, person, "", files=[self._spoken(audio, mime)], flags=_VOICE)

    async def forward_note(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        """The person forwards a voice message that Ben has sent elsewhere."""
        return await self.forward(place, person, [self._spoken(audio, mime)], flags=_VOICE)

    async def forward(
        self, place: Place, person: Person, files: list[StoredFile], said: str = "", *, flags: int = 0
    ) -> str:
        """The person forwards a message that Ben has written elsewhere."""
        elsewhere = self.room("elsewhere").chat
        original = self.world.add(elsewhere, self.person("ben").id, said, files=files, flags=flags)
        return await self.send(place, person, "", forwards=original, flags=_FORWARDED)

    def _spoken(self, audio: bytes, mime: str) -> StoredFile:
        name = "voice-message.ogg"
        return self.file(name, audio, mime, duration_s=2.5)

    def file(self, name: str, content: bytes, mime: str, **more: Any) -> StoredFile:
        """A file for `send`."""
        return StoredFile(id=self.world.snowflake(), name=name, content=content, mime=mime, **more)

    async def send(self, place: Place, person: Person, text: str, **rest: Any) -> str:
        """Any message of a person: `files`, `flags`, `reply_to`, `webhook`, `embeds`."""
        message = self.world.add(place.chat, person.id, text, **rest)
        await self._tell_bot(message, "MESSAGE_CREATE")
        return message.id

    async def upload(
        self, place: Place, person: Person, text: str, name: str, content: bytes, mime: str
    ) -> str:
        """A message with a file."""
        return await self.send(place, person, text, files=[self.file(name, content, mime)])

    async def rewrite(
        self, place: Place, native_id: str, text: str, *, files: list[StoredFile] | None = None
    ) -> None:
        """The author edits a message, and with `files` changes which it has."""
        message = self._message(place, native_id)
        message.content, message.edited_at = text, self.world.clock.now()
        message.files = message.files if files is None else files
        message.edits += 1
        await self._tell_bot(message, "MESSAGE_UPDATE")

    async def unfurl(self, place: Place, native_id: str) -> None:
        """The platform adds a link preview to a person's message: an update that does not change its text."""
        message = self._message(place, native_id)
        message.embeds = [{"type": "link", "title": "a page"}]
        await self._tell_bot(message, "MESSAGE_UPDATE")

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        """Press the button; the text that only the person who pressed it reads."""
        message = self._message(place, native_id)
        for button in button_rows(message.components):
            if button["label"] == label:
                return await self.press_id(place, person, native_id, button["custom_id"])
        raise LookupError(f"no button {label!r} on message {native_id}")

    async def press_id(self, place: Place, person: Person, native_id: str, custom_id: str) -> str:
        """As `press`, with any custom id: the client's side of it can be forged."""
        message = self._message(place, native_id)
        data = {"custom_id": custom_id, "component_type": 2}
        wire = self.world.message_wire(message)
        return await self._interact(place, person, 3, data, message, {"message": wire})

    async def command(self, place: Place, person: Person, name: str, argument: str = "") -> str:
        """Call a slash command that the bot registered; the text that only the caller reads."""
        found = next((one for one in self.rest.commands if one["name"] == name), None)
        if found is None:
            raise LookupError(f"no slash command /{name}")
        data = {"id": self.world.snowflake(), "name": name, "type": 1}
        if argument:
            (option,) = found["options"]
            data["options"] = [{"name": option["name"], "type": option["type"], "value": argument}]
        return await self._interact(place, person, 2, data, None, {})

    async def react(
        self, place: Place, person: Person, native_id: str, emoji: str, *, on: bool = True
    ) -> None:
        """The person puts a reaction on a message, or removes it."""
        user = self.world.users[person.id].wire()
        wire: dict[str, Any] = {
            "user_id": person.id,
            "channel_id": place.chat,
            "message_id": native_id,
            "emoji": {"id": None, "name": emoji},
            "burst": False,
            "type": 0,
        }
        if not place.private:
            wire["guild_id"] = self.world.guild_id
            if on:
                wire["member"] = self.world.member_wire(user, with_user=True)
        name = "MESSAGE_REACTION_ADD" if on else "MESSAGE_REACTION_REMOVE"
        await self.gateway.dispatch(name, wire, times=self._times())

    # -- what can be seen -------------------------------------------------------------------------

    def visible(self, place: Place) -> tuple[Shown, ...]:
        """The messages of the place, oldest first."""
        return tuple(self._shown(message) for message in self.world.of(place.chat))

    def bot_texts(self, place: Place) -> list[str]:
        """The texts of the bot's messages, oldest first."""
        return [shown.text for shown in self.visible(place) if shown.author == ""]

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        """Wait until `holds()`."""
        try:
            async with asyncio.timeout(timeout_s):
                while not holds():
                    self._changed.clear()
                    await self._changed_or_soon()
        except TimeoutError:
            last = [(call.method, call.status, call.payload) for call in self.calls[-8:]]
            raise TimeoutError(f"it did not become so in {timeout_s} s; the last calls: {last}") from None

    def unacknowledged(self) -> int:
        """Events that wait for the session to be resumed; the protocol has no other acknowledgement."""
        return self.gateway.unsent()

    # -- inside -----------------------------------------------------------------------------------

    async def _changed_or_soon(self) -> None:
        # The condition may also depend on the bot, whose changes do not notify the platform.
        try:
            async with asyncio.timeout(0.02):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _interact(
        self,
        place: Place,
        person: Person,
        kind: int,
        data: dict[str, Any],
        message: Message | None,
        extra: dict[str, Any],
    ) -> str:
        interaction = self.interactions.open(self.world.snowflake(), message)
        user = self.world.users[person.id].wire()
        channel = self.world.channels[place.chat]
        wire = {
            "id": interaction.id,
            "application_id": self.world.bot.id,
            "type": kind,
            "token": interaction.token,
            "version": 1,
            "data": data,
            "channel_id": place.chat,
            "channel": self.world.channel_wire(channel),
            "locale": "en-US",
            "context": 1 if place.private else 0,
            "entitlements": [],
            "attachment_size_limit": 10_485_760,
            **extra,
        }
        if place.private:
            wire["user"] = user
        else:
            wire |= {
                "guild_id": self.world.guild_id,
                "member": {**self.world.member_wire(user, with_user=True), "permissions": "0"},
            }
        await self.gateway.dispatch("INTERACTION_CREATE", wire, times=self._times())
        self._note_change()
        words = await self.interactions.words_for(interaction)
        self._note_change()
        return words

    async def _tell_bot(self, message: Message, event: str) -> None:
        own = message.author == self.world.bot.id
        wire = self.world.message_wire(message, gateway=True)
        await self.gateway.dispatch(event, wire, times=1 if own else self._times())
        self._note_change()

    def _times(self) -> int:
        return 2 if self.faults.duplicates() else 1

    def _message(self, place: Place, native_id: str) -> Message:
        message = self.world.get(place.chat, native_id)
        if message is None:
            raise LookupError(f"no message {native_id} in {place.chat}")
        return message

    def _shown(self, message: Message) -> Shown:
        author: User = self.world.users[message.author]
        return Shown(
            native_id=message.id,
            author="" if author is self.world.bot else author.id,
            text=read(message.content),
            buttons=tuple(button["label"] for button in button_rows(message.components)),
            file_name=message.files[0].name if message.files else "",
            edits=message.edits,
            reply_to=message.reply_to,
            voice=message.files[0].content if message.flags & _VOICE else b"",
            file=message.files[0].content if message.files else b"",
            file_kind=shown_kind(message.files[0].name) if message.files else "",
        )

    def _note_change(self) -> None:
        self._changed.set()
