"""`parlour people erase`: of 50 phrases that a person has left on two channels, none is in the data folder.

Covers: gateway/ingress/full_erasure.py, gateway/storage/sqlite/erasure.py, gateway/cli/people_erase.py,
gateway/app/person_traces.py.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.storage.feedback import Feedback
from gateway.storage.jobs import NewJob
from gateway.storage.ports import NewEntry, Store, TurnCommit
from gateway.storage.speech import ReadAloudWishes, SpeakerKey
from gateway.storage.sqlite import SqliteStore
from gateway.storage.states import StateWrite
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import Author, InboundMessage, MediaRef
from pipeline.tools.confine import person_folder
from tests.end_to_end.test_memory_command import fact, remember
from tests.end_to_end.test_page_removal import fill
from tests.support.file_reader import FakeFileReader
from tests.support.link_talk import OWNER, LinkTalk, open_link_talk
from tests.support.looks import look_again
from tests.support.page_people import Client, open_page
from tests.support.tool_echo import ToolEcho, wish
from voice.transcription.scripted_transcriber import ScriptedTranscriber

ROOM = "lounge"
SETTINGS = ('llm.model="openai/gpt-4o-mini"',)


class Phrases:
    """Phrases that occur nowhere else, counted."""

    def __init__(self, whose: str) -> None:
        self._whose = whose
        self.all: list[str] = []

    def __call__(self) -> str:
        phrase = f"{self._whose}heron{len(self.all):03}ünder"
        self.all.append(phrase)
        return phrase


def found(data: Path, phrases: list[str]) -> dict[str, list[str]]:
    """The phrases that are in a file below `data`, as UTF-8, UTF-16 or JSON's escapes, also compressed."""
    files = [path for path in data.rglob("*") if path.is_file()]
    assert any(path.name == "parlour.sqlite3" for path in files)
    left: dict[str, list[str]] = {}
    for path in files:
        content = path.read_bytes()
        contents = [content, *_unpacked(content)]
        for phrase in phrases:
            forms = (phrase.encode(), phrase.encode("utf-16-le"), json.dumps(phrase)[1:-1].encode())
            named = phrase in str(path)
            if named or any(form in one for form in forms for one in contents):
                left.setdefault(phrase, []).append(path.name)
    return left


def _unpacked(content: bytes) -> list[bytes]:
    """What of the content is compressed."""
    try:
        return [zlib.decompressobj(wbits=47).decompress(content)]
    except zlib.error:
        return []


async def _leave_traces(talk: LinkTalk, phrase: Phrases, person: str, chat: str = "") -> None:
    """Say, send, have kept and have done what a person can, in a private chat."""

    async def say(text: str) -> str:
        return await talk.say(person, text, chat=chat)

    for _ in range(9):
        await say(f"I tell you {phrase()}")
    await say(wish("notes", "write_note", title=f"on {phrase()}", text=f"kept {phrase()}"))
    await say(wish("schedule", "remind_me", text=f"remember {phrase()}", in_minutes=900))
    await say(f"/history {phrase()}")
    await say("/history heron")
    await say(f"/agent {phrase()}")
    await say("/new")
    await say(f"and then {phrase()}")
    await say("/undo")
    await say(f"again {phrase()}")
    await say("/retry")


async def _bring(talk: LinkTalk, author: Author, **fields: Any) -> None:
    """Bring a message of the posting channel, and wait until it is answered."""
    number = next(_NUMBERS)
    message = InboundMessage(
        message_id=f"m_x{number}",
        native_id=f"x{number}",
        thread=fields.pop("thread", talk.posts.thread("dm-ann")),
        author=author,
        received_at=1_700_000_000.0,
        **fields,
    )
    await talk.posts.bring(message)
    store = talk.harness.store
    if message.addressed:
        row = None
        while row is None or row.state != "sent":
            row = await store.outbox_row(message.message_id)


_NUMBERS = itertools.count()
ANN, BEN = Author(id="ann", name="Ann"), Author(id="ben", name="Ben")


async def _on_the_platform(talk: LinkTalk, phrase: Phrases) -> None:
    """What only a platform has: files, voice notes, edits, forwarded words, rooms."""
    posts = talk.posts
    posts.media |= {"f1": phrase().encode(), "v1": b"OggS" + bytes(400)}
    file = MediaRef(channel="memory", handle="f1", kind="file", name=f"{phrase()}.txt", mime="text/plain")
    await _bring(talk, ANN, text=f"read {phrase()}", attachments=(file,), place="p1")
    await _bring(talk, ANN, text=f"rather {phrase()}", edited=True, place="p1")
    await _bring(talk, ANN, text="see", passed_on=f"forwarded {phrase()}")
    await _bring(talk, ANN, text=f"as to {phrase()}", quoted=f"quote {phrase()}", quoted_by="You")
    voice = MediaRef(channel="memory", handle="v1", kind="voice")
    await _bring(talk, ANN, voice=voice)
    room: dict[str, Any] = {"thread": posts.thread(ROOM), "private": False}
    await _bring(talk, ANN, text=f"here {phrase()}", addressed=False, **room)
    await _bring(talk, BEN, text="what did Ann say?", **room)
    for _ in range(3):
        said = phrase()
        await _bring(talk, ANN, text=f"in the room {said}", **room)
        await _bring(talk, BEN, text="I see", quoted=f"in the room {said}", quoted_by="Ann", **room)
    await _bring(talk, BEN, text="staysforben", **room)


async def _in_the_store(talk: LinkTalk, phrase: Phrases, data: Path, *, waits: bool) -> None:
    """What takes long to come about: left as the parts of the gateway leave it."""
    store, now = talk.harness.store, 1_700_000_000.0
    private = talk.posts.thread("dm-ann").encode()
    speaker = SpeakerKey(channel="memory", account="main", user="ann")
    await store.voices.remember_language(speaker, phrase())
    await store.voices.want_reading(speaker, ReadAloudWishes(mode="on"), command=phrase())
    await store.voices.keep_buffer(json.dumps([private, "ann"]), {"text": phrase()}, at=now)
    await store.voices.keep_transcript(phrase(), {"text": phrase()}, at=now, limit=9)
    reminder = {"text": phrase(), "author": "ann"}
    room = talk.posts.thread(ROOM).encode()
    job = NewJob(kind="reminder", key="r1", due=now * 2, thread=room, owner="memory:room", body=reminder)
    await store.jobs.add(job)
    body = {"native_id": "w1", "author": "ann", "name": "Ann", "text": f"waits {phrase()}"}
    new: dict[str, Any] = {"message_id": "m_w1", "kind": "message", "received_at": now}
    if waits:
        await store.accept(NewEntry(dedupe_key="w1", thread=private, body=body, **new))
    (owner,) = set((await store.identities.linked()).values())
    await _keep_state(store, StateWrite(owner=owner, graph="exercise", revision=0, body={"note": phrase()}))
    folder = person_folder(data / "workspace", owner)
    folder.mkdir(parents=True, exist_ok=True)
    facts = tuple(fact(f"f{number}", phrase(), phrase()) for number in range(3))
    await remember(store, owner, *facts, said=phrase())
    (folder / "MEMORY.md").write_text(f"- knows {phrase()}\n- likes {phrase()}\n")
    await store.feedback.give(
        Feedback(
            message_id="m_1",
            thread=room,
            channel="memory",
            account="main",
            user="ann",
            name=phrase(),
            value="up",
            run_id="",
            agent="",
            at=now,
        )
    )


async def _keep_state(store: Store, state: StateWrite) -> None:
    """As the turn of an exercise commits it."""
    spare: dict[str, Any] = {"thread": "memory:main:spare", "message_id": "m_s", "kind": "message"}
    body = {"native_id": "s", "author": "ben", "text": "x"}
    accepted = await store.accept(NewEntry(dedupe_key="s", body=body, received_at=0.0, **spare))
    lease = await store.acquire_lease("memory:main:spare", "test", ttl_s=9.0, now=0.0)
    assert lease is not None
    await store.commit_turn(lease, TurnCommit(seq=accepted.seq, outcome="answered", states=(state,)))
    await store.release_lease(lease)


async def leave_everything(data: Path, phrase: Phrases, *, waits: bool) -> None:
    """A data folder where Ann, at the terminal and on the platform, has left the phrases. With `waits`, one
    of her messages is not answered yet."""
    heard = phrase()
    async with open_link_talk(data, *SETTINGS, **_given(heard)) as talk:
        await talk.link(OWNER, "ann")
        await _leave_traces(talk, phrase, OWNER)
        await _leave_traces(talk, phrase, "ann")
        await _on_the_platform(talk, phrase)
        await talk.say("ben", "staysforben")
        await _in_the_store(talk, phrase, data, waits=waits)
    assert len(found(data, phrase.all)) >= 50


def _given(*heard: str) -> dict[str, Any]:
    return {
        "llm": ToolEcho(),
        "transcriber": ScriptedTranscriber(heard),
        "file_reader": FakeFileReader(),
    }


async def test_of_50_phrases_on_two_channels_and_in_a_room_none_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    phrase, data = Phrases("ann"), tmp_path / "data"
    await leave_everything(data, phrase, waits=True)
    await asyncio.to_thread(begin_erasure, data, "memory:main:ann")
    said = capsys.readouterr()
    assert "memory:main:ann, console:local:owner" in said.out
    assert "nothing was erased" in said.err
    async with open_link_talk(data, *SETTINGS, **_given()) as talk:
        await erased(talk.harness.store)
        assert await talk.harness.store.identities.linked() == {}
        await talk.say("ann", "hello again")
        assert [one.content for one in talk.harness.llm.requests[-1].messages[1:]] == ["hello again"]
        await talk.say("ben", "and me?", chat=ROOM, private=False)
        room = talk.harness.llm.requests[-1].messages[1:]
        assert any(one.content.startswith("Ben: what did Ann say?") for one in room)
        assert any(one.content == "[erased]" for one in room)
    assert found(data, phrase.all) == {}
    assert found(data, ["staysforben"])


def begin_erasure(data: Path, person: str) -> None:
    """Give the command, first without confirming it."""
    options = ["--set", f'data.dir="{data}"', *(part for one in SETTINGS for part in ("--set", one))]
    assert main(["people", "erase", person, *options]) == 1
    assert main(["people", "erase", person, "--yes", *options]) == 0


async def test_a_running_gateway_carries_the_erasure_out_within_a_minute(tmp_path: Path) -> None:
    clock = ManualClock(1_900_000_000.0)
    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    async with open_link_talk(tmp_path, llm=ToolEcho(), clock=clock, store=store) as talk:
        await talk.say("ann", "theheronlands")
        await talk.say("ben", "staysforben")
        await talk.say("ann", "in the room theheronlands", chat=ROOM, private=False)
        room: dict[str, Any] = {"thread": talk.posts.thread(ROOM), "private": False}
        await _bring(talk, ANN, text="overheard theheronlands", addressed=False, **room)
        await talk.say("ben", "I see", chat=ROOM, private=False)
        assert "overheard theheronlands" in str(talk.harness.llm.requests[-1].messages)
        assert (
            await asyncio.to_thread(main, ["people", "erase", "memory:main:ann", "--yes", *_at(tmp_path)])
            == 0
        )
        await clock.advance(61.0)
        while await store.read_log("memory:main:dm-ann", kinds=("user", "session")):
            await look_again()
        await erased(store)
        await talk.say("ann", "hello again")
        assert "theheronlands" not in str(talk.harness.llm.requests[-1].messages), "nor is it in memory"
        await talk.say("ben", "and now?", chat=ROOM, private=False)
        seen = [one.content for one in talk.harness.llm.requests[-1].messages[1:]]
        assert seen == ["[erased]", "[erased]", "Ben: I see", "You said: Ben: I see", "Ben: and now?"]
    assert found(tmp_path, ["theheronlands", "staysforben"]) == {"staysforben": ["parlour.sqlite3"]}


async def test_of_50_phrases_on_the_page_none_is_left(tmp_path: Path) -> None:
    phrase = Phrases("ann")
    async with open_page(tmp_path, file_reader=FakeFileReader()) as page, Client() as ann, Client() as ben:
        token, other = await page.join("Ann"), await page.join("Ben")
        await ann.connect(page.url, token)
        await ben.connect(page.url, other)
        await fill(page, ben, other, "staysforben")
        await ann.ask(type="rename_person", name=phrase())
        for _ in range(44):
            await ann.say(f"I tell you {phrase()}")
        for _ in range(5):
            async with Client() as chat:
                await chat.connect(page.url, token)
                await fill(page, chat, token, phrase())
        person = await page.id_of(phrase.all[0])
        await remember(page.store, f"web:local:user:{person}", fact("f1", phrase(), phrase()), said=phrase())
        assert len(found(tmp_path, phrase.all)) >= 50
        begun = ["people", "erase", phrase.all[0], "--yes", *_at(tmp_path)]
        assert await asyncio.to_thread(main, begun) == 0
        assert await ann.read_to_the_end() == 4403
        await page.erased()
        assert [one.name for one in await page.store.page.people.people()] == ["Ben"]
    assert found(tmp_path, phrase.all) == {}
    assert found(tmp_path, ["staysforben"])


@pytest.mark.parametrize("person", ["nemo", "telegram:main"])
async def test_a_person_who_is_not_there_is_refused_in_words(
    tmp_path: Path, person: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_link_talk(tmp_path):
        assert await asyncio.to_thread(main, ["people", "erase", person, "--yes", *_at(tmp_path)]) != 0
    assert "CHANNEL:ACCOUNT:USER" in capsys.readouterr().err


async def test_an_export_has_everything_and_is_for_this_account_alone(tmp_path: Path) -> None:
    phrase, data, to = Phrases("ann"), tmp_path / "data", tmp_path / "export"
    await leave_everything(data, phrase, waits=True)
    options = [*_at(data), *(part for one in SETTINGS for part in ("--set", one))]
    command = ["people", "export", "memory:main:ann", "--to", str(to), *options]
    assert await asyncio.to_thread(main, command) == 0
    assert await asyncio.to_thread(main, command) == 2, "the folder is there"
    text = "".join(path.read_text() for path in to.rglob("*") if path.is_file())
    # Transcripts name no one, and what a room overheard is not stored.
    missing = [one for one in phrase.all if one not in text]
    assert len(missing) <= 3, missing
    assert "staysforben" not in text
    assert (to.stat().st_mode & 0o777, (to / "person.json").stat().st_mode & 0o777) == (0o700, 0o600)
    document = json.loads((to / "person.json").read_text())
    assert document["person"] == ["memory:main:ann", "console:local:owner"]
    assert len(document["memory"][0]["facts"]) == 3
    assert {row["thread"] for row in document["conversations"]} == {"memory:main:dm-ann", "console:local:c1"}


def _at(data: Path) -> list[str]:
    return ["--set", f'data.dir="{data}"']


async def erased(store: Store) -> None:
    """Wait until no erasure waits."""
    while any(job.kind.endswith("erasure") for job in await store.jobs.listed(limit=99)):
        await look_again()
