"""Conversations on the page: searched, renamed, and deleted with all their words.

Covers: gateway/ingress/chat_deletion.py, adapters/web/person_requests.py, adapters/guests.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.storage.sqlite.page_chats import SqlitePageChats
from pipeline.domain.errors import StorageError
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.test_off_the_record import found_in
from tests.support.page_people import Client, OpenPage, open_page

SECRET = "theheronlandsatnine"


async def test_titles_are_searched_and_given_by_the_person(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as ann, Client() as other:
        token = await page.join("Ann")
        await ann.connect(page.url, token)
        await ann.say("About the tides")
        await other.connect(page.url, token)
        await other.say("About the moon")
        renamed = await ann.ask(type="rename_chat", chat=other.chat, title="  Lunar \n notes ")
        assert (renamed["type"], renamed["chat"], renamed["title"]) == (
            "chat_renamed",
            other.chat,
            "Lunar notes",
        )
        renamed_too = await other.wait_for(lambda frame: frame["type"] == "chat_renamed")
        assert (renamed_too["client_id"], renamed_too["title"]) == (None, "Lunar notes")
        assert await _titles(ann) == ["Lunar notes", "About the tides"]
        assert await _titles(ann, "LUNAR") == ["Lunar notes"]
        assert await _titles(ann, "OUT the tid") == ["About the tides"]
        assert await _titles(ann, "heron") == []
        welcome = (await other.connect(page.url, token))[0]
        assert welcome["name"] == "Lunar notes"
        await ann.ask(type="rename_chat", chat=other.chat, title="")
        assert await _titles(ann) == ["About the moon", "About the tides"]


async def test_words_inside_the_messages_are_searched_in_own_conversations_alone(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as ann, Client() as other, Client() as ben:
        token = await page.join("Ann")
        await ann.connect(page.url, token)
        await ann.say("About the tides")
        await ann.say("The heron lands at nine")
        await ann.ask(type="rename_chat", chat=ann.chat, title="Water")
        await other.connect(page.url, token)
        await other.say("About the moon")
        await ben.connect(page.url, await page.join("Ben"))
        await ben.say("The heron is mine")
        listed = (await other.ask(type="chats", search="land HERON"))["chats"]
        assert [(one["chat"], one["title"]) for one in listed] == [(ann.chat, "Water")]
        assert listed[0]["found"] == "You said: The heron lands at nine"
        assert await _titles(ben, "heron") == ["The heron is mine"]
        assert await _titles(other, "wat") == ["Water"]
        assert "found" not in (await other.ask(type="chats", search="wat"))["chats"][0]
        assert await _titles(other, "heron moon") == []
        await other.send(type="command", client_id="o1", name="otr")
        await other.accepted("o1")
        await other.say("An unrecorded heron")
        assert await _titles(other, "heron") == ["Water"]


async def test_a_deleted_conversation_leaves_no_word_in_the_file(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as ann, Client() as elsewhere:
        token = await page.join("Ann")
        await ann.connect(page.url, token)
        await ann.say(SECRET)
        await ann.ask(type="rename_chat", chat=ann.chat, title=f"{SECRET} too")
        await elsewhere.connect(page.url, token)
        await elsewhere.say("stays")
        # A search fills an index of all words.
        await elsewhere.send_text("h1", f"/history {SECRET[:8]}")
        await elsewhere.wait_for(lambda frame: frame.get("role") == "notice" and SECRET in frame["text"])
        deleted = await elsewhere.ask(type="delete_chat", chat=ann.chat)
        assert (deleted["type"], deleted["chat"]) == ("chat_deleted", ann.chat)
        assert await ann.read_to_the_end() == 4404
        assert await _titles(elsewhere) == ["stays"]
        await _erased(page)
        await ann.connect(page.url, token, after=0)
        assert ann.chat != deleted["chat"]
        assert [frame for frame in await ann.connect(page.url, token) if frame["type"] == "entry"] == []
    assert found_in(tmp_path, SECRET) == []
    async with open_page(tmp_path) as page, Client() as elsewhere:
        await elsewhere.connect(page.url, token)
        assert await _titles(elsewhere) == ["stays"]


async def test_a_running_turn_is_stopped_by_the_deletion(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer(chunks=("one ", "two"), gate=asyncio.Event(), gate_at=1)])
    async with open_page(tmp_path, llm=llm) as page, Client() as owner, Client() as other:
        await owner.connect(page.url, page.owner_token)
        await owner.send_text("c1", SECRET)
        await owner.wait_for(lambda frame: frame.get("event", {}).get("type") == "llm_token")
        await other.connect(page.url, page.owner_token)
        await other.ask(type="delete_chat", chat=owner.chat)
        await _erased(page)
        assert await _titles(other) == []
    assert found_in(tmp_path, SECRET) == []


async def test_a_deletion_that_was_cut_off_is_completed_after_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise StorageError("the disk fails")

    with monkeypatch.context() as patch:
        patch.setattr(SqlitePageChats, "erase", broken)
        async with open_page(tmp_path) as page, Client() as owner:
            await owner.connect(page.url, page.owner_token)
            await owner.say(SECRET)
            await owner.ask(type="delete_chat", chat=owner.chat)
    assert found_in(tmp_path, SECRET) != []
    async with open_page(tmp_path) as page, Client() as owner:
        await owner.connect(page.url, page.owner_token)
        assert await _titles(owner) == []
        await _erased(page)
    assert found_in(tmp_path, SECRET) == []


async def test_a_conversation_that_does_not_exist_leaves_no_trace(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as ann:
        await ann.connect(page.url, await page.join("Ann"))
        unknown = "c_" + "0" * 32
        assert (await ann.ask(type="rename_chat", chat=unknown, title="x"))["code"] == "refused"
        assert (await ann.ask(type="delete_chat", chat=unknown))["type"] == "chat_deleted"
        assert await page.store.page.chats.deleted() == frozenset()


async def _titles(client: Client, search: str = "") -> list[str]:
    more = {"search": search} if search else {}
    return [one["title"] for one in (await client.ask(type="chats", **more))["chats"]]


async def _erased(page: OpenPage) -> None:
    """Wait until no erasure waits."""
    while any(job.kind == "erasure" for job in await page.store.jobs.listed(limit=9)):
        pass
