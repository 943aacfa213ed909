"""FakeSlack: a workspace with one bot, over real HTTP and WebSockets. What it enforces is in `slack_rules`.

It differs from the real one where that is slow: pauses between redeliveries, and see `slack_delivery`.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from aiohttp import web

from tests.support.platforms.file_names import shown_kind
from tests.support.platforms.platform import Call, Faults, Person, Place, Shown
from tests.support.platforms.slack_delivery import Delivery, Envelope
from tests.support.platforms.slack_state import APP, BOT_USER, TEAM, Conversation, Posted, Workspace
from tests.support.platforms.slack_web import WebApi

_EMOJI_NAMES = {"👍": "+1", "👎": "-1", "👍🏽": "+1::skin-tone-4", "✅": "white_check_mark", "❌": "x"}
_ANSWER_S = 1.5
"""How long after the ack of a press or a command its answer may come."""


class FakeSlack:
    """The FakePlatform of Slack. `http=True`: the Events API over signed HTTP in place of Socket Mode; a
    test sets `delivery.deliver_to` to the bot's request URL."""

    name = "slack"

    def __init__(self, *, http: bool = False, echo_own: bool = True) -> None:
        self.faults = Faults()
        self.http = http
        self.echo_own = echo_own
        """Whether the bot gets events for its own messages, as on the real platform."""
        self.workspace = Workspace()
        self.bot_token = f"xoxb-{secrets.token_hex(16)}"
        self.app_token = f"xapp-1-{APP}-{secrets.token_hex(16)}"
        self.signing_secret = secrets.token_hex(16)
        self.delivery = Delivery(self.workspace, changed=self._changed)
        self.web = WebApi(self.workspace, lambda: self.faults, notify=self._tell_own, changed=self._changed)
        self._happened = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def calls(self) -> list[Call]:
        return self.web.calls

    @property
    def lenient(self) -> bool:
        return self.web.lenient

    @lenient.setter
    def lenient(self, lenient: bool) -> None:
        self.web.lenient = lenient

    @property
    def base(self) -> str:
        """`http://host:port`; the Web API is below `/api/`."""
        return self.web.base

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.add_routes([*self.web.routes(), web.get("/link", self.delivery.accept)])
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.web.base = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.web.bot_token, self.web.app_token = self.bot_token, self.app_token
        self.delivery.tickets, self.delivery.signing_secret = self.web.tickets, self.signing_secret
        self._tasks = await asyncio.TaskGroup().__aenter__()
        self.delivery.post_in(self._tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.delivery.forget()
        if self._tasks is not None:
            await self._tasks.__aexit__(None, None, None)
        if self._runner is not None:
            await self._runner.cleanup()

    def overrides(self, folder: Path) -> tuple[str, ...]:
        section = "channels.slack"
        files = {"bot_token": self.bot_token, "app_token": self.app_token}
        if self.http:
            files = {"bot_token": self.bot_token, "signing_secret": self.signing_secret}
        lines = [f"{section}.api_base={self.base}/api/", f"{section}.access=open"]
        lines.append(f"{section}.mode={'http' if self.http else 'socket'}")
        for key, secret in files.items():
            path = folder / f"slack-{key}"
            path.touch(mode=0o600)
            path.write_text(secret)
            lines.append(f"{section}.{key}=file:{path}")
        return tuple(lines)

    # -- people and places ------------------------------------------------------------------------

    def person(self, name: str, *, bot: bool = False) -> Person:
        people = self.workspace.people
        if name not in people:
            people[name] = Person(id=f"U{len(people) + 1:08d}", name=name, bot=bot)
        return people[name]

    def private_chat(self, person: Person) -> Place:
        return Place(chat=self._conversation(f"D{person.id[1:]}", person.name, private=True).id, private=True)

    def room(self, name: str, *members: Person) -> Place:
        known = next((one for one in self.workspace.conversations.values() if one.name == f"#{name}"), None)
        if known is None:
            known = self._conversation(
                f"C{len(self.workspace.conversations) + 1:08d}", f"#{name}", private=False
            )
        known.members = (*known.members, *(person.id for person in members))
        return Place(chat=known.id, private=False)

    def _conversation(self, name: str, words: str, *, private: bool) -> Conversation:
        fresh = Conversation(id=name, name=words, private=private)
        return self.workspace.conversations.setdefault(name, fresh)

    # -- what people do ---------------------------------------------------------------------------

    async def say(self, place: Place, person: Person, text: str, *, addressed: bool = True) -> str:
        mention = addressed and not place.private
        return self._said(place, person, f"<@{BOT_USER}> {text}" if mention else text).native_id

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str = "audio/mp4") -> str:
        """A clip. In a room its caption mentions the bot."""
        clip: dict[str, Any] = {"subtype": "slack_audio", "name": "audio_message.m4a", "duration_ms": 2000}
        return await self.share(place, person, audio, mime=mime, **clip)

    async def share(
        self, place: Place, person: Person, content: bytes, *, mime: str, text: str = "", **extra: Any
    ) -> str:
        """A message with a file; `extra` are fields of the file's object."""
        return await self.share_all(
            place, person, [self.file(person, content, mime=mime, **extra)], text=text
        )

    def file(self, person: Person, content: bytes, *, mime: str, **extra: Any) -> dict[str, Any]:
        """The object of a file that the person has uploaded."""
        return self.workspace.upload(self.base, person, content, mime=mime, **extra)

    async def share_all(
        self, place: Place, person: Person, files: list[dict[str, Any]], *, text: str = ""
    ) -> str:
        """A message with several files."""
        words = text if place.private else f"<@{BOT_USER}> {text}".strip()
        return self._said(place, person, words, files=files, subtype="file_share").native_id

    async def forward(
        self, place: Place, person: Person, files: list[dict[str, Any]], *, said: str = "", text: str = ""
    ) -> str:
        """The person shares a message of Ben's, who `said` that with `files`, and writes `text` above it."""
        ben = self.person("ben")
        elsewhere = self._conversation("C0ELSEWHERE", "#elsewhere", private=False)
        original = Posted(
            channel=elsewhere.id, ts=self.workspace.next_ts(), user=ben.id, text=said, files=files
        )
        self.workspace.add(original)
        shared = {
            "is_share": True,
            "is_msg_unfurl": True,
            "author_id": ben.id,
            "author_name": ben.name,
            "channel_id": original.channel,
            "ts": original.ts,
            "text": said,
            "fallback": said,
            "files": files,
        }
        return self._said(place, person, text, shares=[shared]).native_id

    async def change_files(self, native_id: str, files: list[dict[str, Any]]) -> None:
        """The author takes files from a message or adds some, and leaves its words."""
        posted = self._at(native_id)
        before = posted.as_json()
        posted.files, posted.edits = files, posted.edits + 1
        self._tell(self.workspace.changed_event(posted, before))

    async def edit(self, native_id: str, text: str) -> None:
        """The author changes the text of a message; the same text again looks like an unfurled link."""
        posted = self._at(native_id)
        before = posted.as_json()
        if text != posted.text:
            posted.text, posted.edits = text, posted.edits + 1
        self._tell(self.workspace.changed_event(posted, before))

    async def delete(self, native_id: str) -> None:
        posted = self._at(native_id)
        self.workspace.messages.remove(posted)
        gone = self.workspace.changed_event(posted, posted.as_json())
        gone |= {"subtype": "message_deleted", "deleted_ts": posted.ts}
        del gone["message"]
        self._tell(gone)

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        posted = self._at(native_id)
        for button in posted.buttons():
            if button["text"]["text"] == label:
                payload = self._press_payload(posted, person, button)
                return await self._ask("interactive", payload, place.chat, person, posted)
        raise LookupError(f"the message {native_id} has no button {label!r}")

    async def command(self, place: Place, person: Person, text: str, *, command: str = "/parlour") -> str:
        """A slash command of the app; the text that only the person sees."""
        payload = {
            "token": "verification",
            "team_id": TEAM,
            "team_domain": "parlour",
            "channel_id": place.chat,
            "channel_name": "directmessage" if place.private else "room",
            "user_id": person.id,
            "user_name": person.name,
            "command": command,
            "text": text,
            "api_app_id": APP,
            "is_enterprise_install": "false",
            "trigger_id": self.workspace.next_ts(),
        }
        return await self._ask("slash_commands", payload, place.chat, person, None)

    # -- what people see --------------------------------------------------------------------------

    def visible(self, place: Place) -> tuple[Shown, ...]:
        return tuple(self._shown(posted) for posted in self.workspace.of(place.chat, place.topic))

    def bot_texts(self, place: Place) -> list[str]:
        return [posted.read() for posted in self.workspace.of(place.chat, place.topic) if posted.ours]

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                while not holds():
                    self._happened.clear()
                    await self._happened.wait()
        except TimeoutError as late:
            last = [(call.method, call.status, call.payload) for call in self.calls[-5:]]
            raise TimeoutError(f"it did not come true; the last calls were {last}") from late

    def unacknowledged(self) -> int:
        return self.delivery.unacknowledged()

    # -- inside -----------------------------------------------------------------------------------

    def _said(self, place: Place, person: Person, text: str, **more: Any) -> Posted:
        posted = Posted(
            channel=place.chat,
            ts=self.workspace.next_ts(),
            user=person.id,
            text=text,
            thread_ts=place.topic or "",
            bot_id="B0OTHER" if person.bot else "",
            **more,
        )
        if person.bot:
            posted.subtype = "bot_message"
        self.workspace.add(posted)
        event = self.workspace.message_event(posted)
        self._tell(event)
        if f"<@{BOT_USER}>" in text and not place.private:
            kept = (
                "type",
                "user",
                "text",
                "ts",
                "team",
                "thread_ts",
                "channel",
                "event_ts",
                "files",
                "bot_id",
            )
            mention = {name: event[name] for name in kept if name in event} | {"type": "app_mention"}
            self._tell(mention)
        return posted

    def _tell(self, inner: dict[str, Any]) -> None:
        wrapped = self.workspace.event(inner)
        self.delivery.offer("events_api", wrapped)
        if self.faults.duplicates():
            self.delivery.offer("events_api", wrapped)
        self._changed()

    def _tell_own(self, inner: dict[str, Any]) -> None:
        if self.echo_own:
            self.delivery.offer("events_api", self.workspace.event(inner))

    async def _ask(
        self, kind: Any, payload: dict[str, Any], channel: str, person: Person, posted: Posted | None
    ) -> str:
        name = secrets.token_hex(8)
        self.web.pressed[name] = (channel, person.id, posted)
        payload["response_url"] = f"{self.base}/respond/{name}"
        before = len(self.workspace.ephemerals)
        envelope: Envelope = self.delivery.offer(kind, payload)
        await self.until(envelope.acked.is_set)
        if kind == "slash_commands":
            return envelope.answer
        try:
            await self.until(lambda: self._heard_alone(before, person) != "", timeout_s=_ANSWER_S)
        except TimeoutError:
            return ""
        return self._heard_alone(before, person)

    def _heard_alone(self, before: int, person: Person) -> str:
        return next((words for _, user, words in self.workspace.ephemerals[before:] if user == person.id), "")

    def _press_payload(self, posted: Posted, person: Person, button: dict[str, Any]) -> dict[str, Any]:
        container = {"type": "message", "message_ts": posted.ts, "channel_id": posted.channel}
        if posted.thread_ts:
            container["thread_ts"] = posted.thread_ts
        conversation = self.workspace.conversations[posted.channel]
        now = self.workspace.next_ts()
        return {
            "type": "block_actions",
            "user": {"id": person.id, "username": person.name, "name": person.name, "team_id": TEAM},
            "api_app_id": APP,
            "token": "verification",
            "container": container,
            "trigger_id": f"{now}.trigger",
            "team": {"id": TEAM, "domain": "parlour"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {
                "id": posted.channel,
                "name": "directmessage" if conversation.private else conversation.name.removeprefix("#"),
            },
            "message": posted.as_json(),
            "state": {"values": {}},
            "actions": [{**button, "block_id": "b1", "action_ts": now}],
        }

    async def react(
        self, place: Place, person: Person, native_id: str, emoji: str, *, on: bool = True
    ) -> None:
        """The person puts a reaction on a message, or removes it."""
        posted = self._at(native_id)
        event = {
            "type": "reaction_added" if on else "reaction_removed",
            "user": person.id,
            "reaction": _EMOJI_NAMES.get(emoji, "tada"),
            "item_user": BOT_USER if posted.ours else posted.user,
            "item": {"type": "message", "channel": place.chat, "ts": posted.ts},
            "event_ts": self.workspace.next_ts(),
        }
        for _ in range(2 if self.faults.duplicates() else 1):
            self.delivery.offer("events_api", self.workspace.event(event))

    def _at(self, native_id: str) -> Posted:
        channel, _, ts = native_id.partition(":")
        posted = self.workspace.find(channel, ts)
        if posted is None:
            raise LookupError(f"there is no message {native_id}")
        return posted

    def _shown(self, posted: Posted) -> Shown:
        in_thread = posted.thread_ts not in ("", posted.ts)
        return Shown(
            native_id=posted.native_id,
            author="" if posted.ours else posted.user,
            text=posted.read(),
            buttons=tuple(button["text"]["text"] for button in posted.buttons()),
            file_name=posted.files[0]["name"] if posted.files else "",
            edits=posted.edits,
            reply_to=f"{posted.channel}:{posted.thread_ts}" if in_thread else "",
            voice=self._sound(posted),
            file=self.workspace.contents.get(posted.files[0]["id"], b"") if posted.files else b"",
            file_kind=shown_kind(posted.files[0]["name"]) if posted.files else "",
        )

    def _sound(self, posted: Posted) -> bytes:
        """The audio of a message: Slack shows a player for a file with an audio extension."""
        sounds = [file for file in posted.files if str(file["name"]).endswith(".ogg")]
        return self.workspace.contents.get(sounds[0]["id"], b"") if sounds else b""

    def _changed(self) -> None:
        self._happened.set()
