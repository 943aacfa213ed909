"""What of a room the model may be shown: remembered or read, bounded, and no one's who is shut out."""

from __future__ import annotations

import pytest

from adapters.channel import Channel, Failure, FailureKind
from gateway.access.policy import AccessRule
from gateway.channels.registry import ChannelRegistry
from gateway.ingress.room_history import ChannelRooms, RoomRule
from gateway.storage.memory.store import MemoryStore
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import ManualClock
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, MediaRef
from pipeline.domain.rooms import RoomLine
from tests.support.posting_channel import MemoryPosts

ROOM = ThreadKey(channel="memory", account="main", chat="-1")
OPEN = AccessRule.of(allow=("room:-1",), deny=("eve",))
PICTURE = MediaRef(channel="memory", handle="p", kind="image")


class ReadablePosts(MemoryPosts):
    """A posting channel with a history."""

    def __init__(self, *lines: RoomLine) -> None:
        super().__init__()
        self.lines = lines
        self.asked: list[tuple[str, int]] = []

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        assert thread == ROOM
        self.asked.append((before, limit))
        return self.lines


async def _rooms(
    channel: Channel | None = None, *, messages: int = 3, access: AccessRule = OPEN
) -> ChannelRooms:
    channels = ChannelRegistry([channel or MemoryPosts()])
    store = MemoryStore()
    await store.open()
    rule = RoomRule(messages=messages, access=access)
    return ChannelRooms(channels=channels, rules={("memory", "main"): rule}, store=store, clock=ManualClock())


def _said(words: str, author: str = "ann", number: int = 1, **fields: object) -> InboundMessage:
    base: dict[str, object] = {
        "message_id": f"m_{number}",
        "native_id": str(number),
        "thread": ROOM,
        "author": Author(id=author, name=author.title()),
        "received_at": 0.0,
        "text": words,
        "private": False,
        "reply_handle": str(number),
    }
    return InboundMessage(**{**base, **fields})  # type: ignore[arg-type]  # fields of a test


async def _lines(rooms: ChannelRooms, said: Conversation | None = None) -> list[str]:
    talk = await rooms.talk(_said("@bot sum up", number=99), said or Conversation())
    return [f"{line.name}: {line.text}" for line in talk.lines]


async def test_the_newest_overheard_messages_are_remembered_and_an_edit_takes_its_place() -> None:
    rooms = await _rooms()
    for number, words in enumerate(("one", "two", "three", "four")):
        rooms.note_unaddressed(_said(words, number=number))
    rooms.note_unaddressed(_said("THREE", number=2, edited=True))
    rooms.note_unaddressed(_said("look", number=5, attachments=(PICTURE,)))
    note = "[Attached: picture. The content is not available to you.]"
    assert await _lines(rooms) == ["Ann: THREE", "Ann: four", f"Ann: look {note}"]


ELSEWHERE = AccessRule.of(allow=("room:-2", "dm:ann"))
NOWHERE = AccessRule.of(allow=("room:-1",), rooms="never")


@pytest.mark.parametrize(
    ("messages", "access", "message"),
    [
        (0, OPEN, _said("x")),
        (3, OPEN, _said("x", author="eve")),
        (3, OPEN, _said("x", private=True)),
        (3, ELSEWHERE, _said("x")),
        (3, NOWHERE, _said("x")),
    ],
    ids=["turned off", "denied", "private", "not a room of the bot's", "no rooms"],
)
async def test_nothing_is_remembered_that_may_not_be_read(
    messages: int, access: AccessRule, message: InboundMessage
) -> None:
    rooms = await _rooms(messages=messages, access=access)
    rooms.note_unaddressed(message)
    assert await _lines(rooms) == []


async def test_a_person_who_is_listed_makes_it_the_bots_room() -> None:
    rooms = await _rooms(access=AccessRule.of(allow=("room:-1/ann",)))
    rooms.note_unaddressed(_said("hi", author="ben"))
    assert await _lines(rooms) == ["Ben: hi"]


async def test_what_the_platform_tells_is_read_and_not_remembered() -> None:
    posts = ReadablePosts(*(RoomLine(text=str(one), name="Ben", author="ben") for one in range(9)))
    rooms = await _rooms(posts)
    rooms.note_unaddressed(_said("hi"))
    assert await _lines(rooms) == ["Ben: 6", "Ben: 7", "Ben: 8"]
    assert posts.asked == [("99", 3)]


@pytest.mark.parametrize(
    ("kind", "reported"),
    [
        ("permission", "Slack refused it: missing_scope"),
        ("auth", "the platform did not let the bot read them"),
    ],
)
async def test_why_a_room_cannot_be_read_is_reported_without_the_words_for_the_operator(
    kind: FailureKind, reported: str
) -> None:
    words = {"permission": reported, "auth": "channels.slack.bot_token: /srv/token cannot be read"}[kind]
    rooms = await _rooms(LockedPosts(Failure(kind=kind, message=words)))
    assert (await rooms.talk(_said("hello"), Conversation())).unread == reported


class LockedPosts(ReadablePosts):
    """A posting channel whose history cannot be read."""

    def __init__(self, failure: Failure) -> None:
        super().__init__()
        self._failure = failure

    async def recent(self, thread: ThreadKey, *, before: str, limit: int) -> tuple[RoomLine, ...]:
        raise OSError("no")

    def classify(self, error: Exception) -> Failure:
        return self._failure


async def test_anyone_who_is_shut_out_is_not_read_either() -> None:
    lines = (RoomLine(text="a", author="eve"), RoomLine(text="b", name="Ben", author="ben"))
    assert await _lines(await _rooms(ReadablePosts(*lines))) == ["Ben: b"]


async def test_a_private_chat_is_not_read() -> None:
    posts = ReadablePosts(RoomLine(text="a"))
    talk = await (await _rooms(posts)).talk(_said("hi", private=True), Conversation())
    assert (talk.lines, posts.asked) == ((), [])


async def test_what_is_in_the_conversation_is_not_shown_again() -> None:
    turn = PastTurn(
        id=1,
        messages=(
            ChatMessage(role="user", content="Ann: what  is up?"),
            ChatMessage(role="assistant", content="All."),
        ),
    )
    lines = (
        RoomLine(text="what is up?", name="Ann", author="ann"),
        RoomLine(text="All.", own=True, author="bot"),
        RoomLine(text="nothing", name="Ben", author="ben"),
    )
    assert await _lines(await _rooms(ReadablePosts(*lines)), Conversation(turns=(turn,))) == ["Ben: nothing"]


async def test_many_rooms_are_not_remembered_for_ever() -> None:
    rooms = await _rooms(access=AccessRule.of(mode="open"))
    rooms.note_unaddressed(_said("first"))
    for number in range(200):
        other = ThreadKey(channel="memory", account="main", chat=f"-{number + 5}")
        rooms.note_unaddressed(_said("x", thread=other))
    assert await _lines(rooms) == []
