"""A fake Telegram for one bot: people and groups to talk from, and the Bot API over real HTTP.

It keeps Telegram's limits and its rules of delivery. It is not the place for what Telegram draws: a message
here is its text, its buttons and its file's name.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pipeline.domain.clock import Clock, SystemClock
from tests.adapters.formatting.rules import size
from tests.support.platforms.platform import Call, Faults, Person, Place, Shown
from tests.support.platforms.telegram_server import TelegramServer
from tests.support.platforms.telegram_state import BOT_ID, BOT_NAME, Stored, TelegramState

DRAFT = "draft:"
"""How the native id of a streamed preview begins. Its Stop button is labelled `Stop`."""
_PRESS_TIMEOUT_S = 20.0
_DRAFT_S = 30.0


class FakeTelegram:
    """`async with FakeTelegram() as telegram:` — the bot is `@parlour_bot`."""

    name = "telegram"

    def __init__(self, *, clock: Clock | None = None, lenient: bool = False) -> None:
        self.faults = Faults()
        self.lenient = lenient
        self.token = f"{BOT_ID}:{secrets.token_urlsafe(26)}"
        self.state = TelegramState(self.token)
        self._clock = clock or SystemClock()
        self._server = TelegramServer(
            self.state, self._clock, faults=lambda: self.faults, lenient=lambda: self.lenient
        )
        self.calls: list[Call] = self._server.calls
        self._people: dict[str, Person] = {}
        self._rooms: dict[str, int] = {}
        self._reactions: dict[tuple[str, str], str] = {}
        """By person and message."""
        self._tasks: asyncio.TaskGroup | None = None
        self._webhooks: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self._server.start()
        self._tasks = await asyncio.TaskGroup().__aenter__()
        self._webhooks = self._tasks.create_task(self._server.deliver_webhooks())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._webhooks is not None and self._tasks is not None:
            self._webhooks.cancel()
            await self._tasks.__aexit__(None, None, None)
        await self._server.stop()

    @property
    def api_base(self) -> str:
        """The API's address, without the token."""
        return f"http://127.0.0.1:{self._server.port}"

    def overrides(self, folder: Path) -> tuple[str, ...]:
        path = folder / "telegram-token"
        path.touch(mode=0o600)
        path.write_text(self.token, encoding="ascii")
        settings = {"token": f"file:{path}", "api_base": self.api_base, "access": "open"}
        return tuple(f"channels.telegram.{key}={json.dumps(value)}" for key, value in settings.items())

    def person(self, name: str, *, bot: bool = False) -> Person:
        if name not in self._people:
            number = 1001 + len(self._people)
            self._people[name] = Person(id=str(number), name=name, bot=bot)
            self.state.users[number] = {"id": number, "is_bot": bot, "first_name": name}
        return self._people[name]

    def private_chat(self, person: Person) -> Place:
        return Place(chat=person.id, private=True)

    def room(self, name: str, *members: Person) -> Place:
        """A supergroup. For a forum's topic make a Place of the same chat with `topic`."""
        if name not in self._rooms:
            number = -1_001_000_000_000 - len(self._rooms) - 1
            self._rooms[name] = number
            self.state.rooms[number] = {"id": number, "type": "supergroup", "title": name}
        return Place(chat=str(self._rooms[name]), private=False)

    async def say(self, place: Place, person: Person, text: str, *, addressed: bool = True) -> str:
        entities: list[dict[str, Any]] = []
        if text.startswith("/"):
            word = text.split(maxsplit=1)[0]
            if addressed and not place.private and "@" not in word:
                text = text.replace(word, f"{word}@{BOT_NAME}", 1)
                word = f"{word}@{BOT_NAME}"
            entities.append({"type": "bot_command", "offset": 0, "length": size(word)})
        elif addressed and not place.private:
            entities.append({"type": "mention", "offset": 0, "length": len(BOT_NAME) + 1})
            text = f"@{BOT_NAME} {text}"
        return self._written(self._stored(place, person, text, entities=entities))

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        return self.send(place, person, "voice", audio, duration=1, mime_type=mime)

    def send(
        self,
        place: Place,
        person: Person,
        kind: str,
        content: bytes,
        *,
        caption: str = "",
        album: str = "",
        forwarded: bool = False,
        **more: Any,
    ) -> str:
        """The person sends a file of a Bot API kind (voice, photo, document, video …), with its fields. Those
        of one `album` belong together."""
        fields = self._media(kind, content, more)
        fields |= {"media_group_id": album} if album else {}
        fields |= {"forward_origin": _ORIGIN, "forward_date": _ORIGIN["date"]} if forwarded else {}
        return self._written(self._stored(place, person, caption, fields=fields))

    def _media(self, kind: str, content: bytes, more: dict[str, Any]) -> dict[str, Any]:
        file_id = f"file{len(self.state.files)}"
        self.state.files[file_id] = content
        described = {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": len(content), **more}
        return {kind: [described] if kind == "photo" else described}

    def reply(self, place: Place, person: Person, native_id: str, text: str) -> str:
        """The person replies to a message of the place."""
        return self._written(self._stored(place, person, text, reply_to=int(native_id)))

    def edit(self, place: Place, native_id: str, text: str) -> None:
        """The author of a message changes its text."""
        stored = self.state.find(int(place.chat), int(native_id))
        if stored is None:
            raise LookupError(f"there is no message {native_id}")
        stored.text, stored.entities = text, []
        stored.edits += 1
        self.push("edited_message", {**self.state.as_message(stored), "edit_date": 1_700_000_100})

    def replace_media(self, place: Place, native_id: str, kind: str, content: bytes, caption: str) -> None:
        """The author of a message puts another file of that kind in the place of its file."""
        stored = self.state.find(int(place.chat), int(native_id))
        if stored is None or kind not in stored.fields:
            raise LookupError(f"there is no message {native_id} with a {kind}")
        stored.fields |= self._media(kind, content, {"width": 90, "height": 60})
        self.edit(place, native_id, caption)

    def push(self, kind: str, body: dict[str, Any]) -> None:
        """Queue any update for the bot, unchanged."""
        self.state.updates.add(kind, body, twice=self.faults.duplicates())
        self.state.changed()

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        if native_id.startswith(DRAFT):
            return self._stop(place, native_id)
        stored = self.state.find(int(place.chat), int(native_id))
        data = dict(stored.buttons()).get(label) if stored is not None else None
        if stored is None or data is None:
            raise LookupError(f"message {native_id} has no button {label!r}")
        query = f"{secrets.randbits(60)}"
        self.state.callbacks[query] = ""
        body = {
            "id": query,
            "from": self.state.users[int(person.id)],
            "message": self.state.as_message(stored),
            "chat_instance": "1",
            "data": data,
        }
        self.push("callback_query", body)
        await self.until(lambda: bool(self.state.callbacks[query]), timeout_s=_PRESS_TIMEOUT_S)
        return self.state.callbacks[query][1:]

    async def react(
        self, place: Place, person: Person, native_id: str, emoji: str, *, on: bool = True
    ) -> None:
        """The person puts a reaction on a message, or removes it; a person has one on each message."""
        before = self._reactions.get((person.id, native_id), "")
        after = emoji if on else ""
        self._reactions[person.id, native_id] = after
        self.push(
            "message_reaction",
            {
                "chat": self.state.chat(int(place.chat)),
                "message_id": int(native_id),
                "user": self.state.users[int(person.id)],
                "date": int(self._clock.now()),
                "old_reaction": [{"type": "emoji", "emoji": before}] if before else [],
                "new_reaction": [{"type": "emoji", "emoji": after}] if after else [],
            },
        )

    def visible(self, place: Place) -> tuple[Shown, ...]:
        chat, topic = int(place.chat), int(place.topic) if place.topic else None
        now = self._clock.monotonic()
        messages = [self._shown(stored) for stored in self.state.of(chat, topic)]
        drafts = [
            Shown(
                native_id=f"{DRAFT}{draft.draft_id}",
                author="",
                text=draft.text,
                buttons=("Stop",) if draft.can_stop else (),
            )
            for draft in self.state.drafts.values()
            if (draft.chat, draft.topic) == (chat, topic) and now - draft.at < _DRAFT_S
        ]
        return (*messages, *drafts)

    def _shown(self, stored: Stored) -> Shown:
        return Shown(
            native_id=str(stored.message_id),
            author="" if stored.author == BOT_ID else str(stored.author),
            text=stored.text,
            buttons=tuple(label for label, _ in stored.buttons()),
            file_name=stored.file_name,
            edits=stored.edits,
            reply_to="" if stored.reply_to is None else str(stored.reply_to),
            voice=self.state.files.get(stored.fields.get("voice", {}).get("file_id", ""), b""),
            file=self.state.files.get(_file_of(stored).get("file_id", ""), b""),
            file_kind=next((_KINDS[name] for name in _KINDS if name in stored.fields), ""),
        )

    def bot_texts(self, place: Place) -> list[str]:
        """As `visible`, without previews that vanish by themselves."""
        return [
            shown.text
            for shown in self.visible(place)
            if not shown.author and not shown.native_id.startswith(DRAFT)
        ]

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        try:
            async with self._clock.timeout(timeout_s):
                while not holds():
                    await self.state.next_change()
        except TimeoutError:
            last = [f"{call.method} {call.status}" for call in self.calls[-12:]]
            raise TimeoutError(f"not within {timeout_s:g} s; the last calls: {', '.join(last)}") from None

    def unacknowledged(self) -> int:
        return len({update["update_id"] for update in self.state.updates.pending})

    def _stop(self, place: Place, native_id: str) -> str:
        draft_id = int(native_id.removeprefix(DRAFT))
        draft = self.state.drafts.get((int(place.chat), draft_id))
        if draft is None or not draft.can_stop:
            raise LookupError(f"there is no preview {native_id} with a button")
        body: dict[str, Any] = {"chat": self.state.chat(draft.chat), "draft_id": draft_id}
        if draft.topic is not None:
            body["message_thread_id"] = draft.topic
        self.push("stopped_message_generation", body)
        return ""

    def _stored(self, place: Place, person: Person, text: str, **more: Any) -> Stored:
        stored = Stored(
            message_id=next(self.state.ids),
            chat=int(place.chat),
            topic=int(place.topic) if place.topic else None,
            author=int(person.id),
            text=text,
            **more,
        )
        self.state.add(stored)
        return stored

    def _written(self, stored: Stored) -> str:
        self.push("message", self.state.as_message(stored))
        return str(stored.message_id)


_ORIGIN: dict[str, Any] = {"type": "hidden_user", "sender_user_name": "Ben", "date": 1_699_999_000}
_KINDS = {"photo": "image", "audio": "audio", "video": "video", "document": "file"}


def _file_of(stored: Stored) -> dict[str, Any]:
    found: Any = next((stored.fields[name] for name in _KINDS if name in stored.fields), {})
    return dict(found[-1]) if isinstance(found, list) else dict(found)
