"""What a removed person, and a deleted conversation, leave behind: nothing, and others keep all of theirs.

Covers: gateway/ingress/person_erasure.py, gateway/ingress/chat_deletion.py, gateway/files/links.py,
gateway/chronicle/forgetting.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from gateway.chronicle.contents import Contents
from gateway.runtime.data_dir import CHRONICLE_DIR, COMMANDS_DIR
from gateway.sandbox.folders import CommandFolders
from gateway.storage.file_changes import NO_FILE, FileState, NewChange
from gateway.storage.heartbeats import state_in
from gateway.storage.jobs import NewJob
from gateway.storage.ports import Store
from gateway.storage.states import StateWrite
from pipeline.domain.ids import ThreadKey, heartbeat_thread, identity_key
from pipeline.memory.values import Profile
from pipeline.tools.confine import person_folder
from tests.contracts.store_values import entry, lease_on, record, turn
from tests.end_to_end.test_off_the_record import found_in
from tests.support.file_reader import FakeFileReader
from tests.support.page_people import Client, OpenPage, new_token, open_page

SECRET = "theheronlandsatnine"


@pytest.mark.parametrize("kind", ["person", "conversation"])
async def test_words_files_uploads_and_reminders_are_erased(tmp_path: Path, kind: str) -> None:
    async with open_page(tmp_path, file_reader=FakeFileReader()) as page, Client() as ann, Client() as ben:
        token, other = await page.join("Ann"), await page.join("Ben")
        await ann.connect(page.url, token)
        await ben.connect(page.url, other)
        link = await fill(page, ann, token, SECRET)
        kept = await fill(page, ben, other, "staysforben")
        person = await page.id_of("Ann")
        notes = person_folder(tmp_path / "workspace", identity_key("web", "local", person))
        (notes / "notes").mkdir(parents=True)
        (notes / "notes" / "a.md").write_text("a note of Ann's")
        owner = identity_key("web", "local", person)
        await page.store.memories.write_profile(owner, Profile(enabled=False))
        if kind == "person":
            assert await page.remove(person)
        else:
            async with Client() as second:
                await second.connect(page.url, token)
                await second.ask(type="delete_chat", chat=ann.chat)
        assert await ann.read_to_the_end() == (4403 if kind == "person" else 4404)
        await page.erased()
        assert await _status(page, link) == 404
        assert await _status(page, kept) == 200
        assert [job.key for job in await page.store.jobs.listed(limit=9)] == [f"reminder of {ben.chat}"]
        # Notes and facts are the person's, and stay with the person.
        assert notes.exists() == (kind == "conversation")
        assert (await page.store.memories.profile(owner)).enabled == (kind == "person")
        # Of a conversation, and of the heartbeats in it.
        left = ThreadKey(channel="web", account="local", chat=f"{await page.id_of('Ben')}.{ben.chat}")
        assert set(await page.store.threads_of("web", "local", limit=9)) == {
            left.encode(),
            heartbeat_thread(left).encode(),
        }
        assert await page.store.states.read("anyone", state_in(heartbeat_thread(left).encode())) is not None
    assert found_in(tmp_path, SECRET) == []
    assert found_in(tmp_path, "staysforben") != []
    copies = [path.read_text() for path in (tmp_path / CHRONICLE_DIR).glob("??/*")]
    assert copies == ["staysforben"]


async def test_links_end_with_the_deletion_and_not_only_with_the_file(tmp_path: Path) -> None:
    async with open_page(tmp_path, file_reader=FakeFileReader()) as page, Client() as ann, Client() as second:
        token = new_token()
        await ann.join(page.url, await page.invite("Ann"), token)
        link = await fill(page, ann, token, SECRET)
        await second.connect(page.url, token)
        assert await _status(page, link) == 200
        assert (await second.ask(type="delete_chat", chat=ann.chat))["type"] == "chat_deleted"
        assert await _status(page, link) == 404


async def fill(page: OpenPage, client: Client, token: str, words: str) -> str:
    """A conversation with the words in a message, a file, a title, an upload that waits, feedback, a
    reminder, a transcript, a file of a command and a copy for /undo files; the link of the file."""
    assert client.chat
    handle = await page.upload(token, client.chat, f"{words} in a file".encode())
    file = {"handle": handle, "name": f"{words}.txt", "mime": "text/plain", "size": 20}
    await client.send(type="message", client_id="f1", text=words, files=[file])
    message = await client.accepted("f1")
    await client.answer(message)
    await client.rate("f2", message, up=True)
    await client.ask(type="rename_chat", chat=client.chat, title=f"{words} title")
    await page.upload(token, client.chat, f"{words} waits".encode())
    # A search fills the index of all words.
    await client.send_text("f3", f"/history {words[:8]}")
    await client.wait_for(lambda frame: frame.get("role") == "notice" and words in frame["text"])
    thread = next(key for key in await page.store.threads_of("web", "local", limit=9) if client.chat in key)
    reminder = NewJob(
        kind="reminder",
        key=f"reminder of {client.chat}",
        due=page.clock.now() + 9e5,
        thread=thread,
        body={"text": words},
    )
    await page.store.jobs.add(reminder)
    await _add_heartbeat(page.store, ThreadKey.decode(thread), words)
    await page.store.voices.keep_transcript(words, {"text": words}, at=page.clock.now(), limit=9)
    folders = CommandFolders(page.folder / COMMANDS_DIR, keep_days=9, clock=page.clock)
    (folders.open(ThreadKey.decode(thread), "ses_1") / "result.txt").write_text(words)
    changes, copies = page.store.file_changes, Contents(page.folder / CHRONICLE_DIR)
    (change,) = await changes.begin([_change(thread)])
    await changes.settle({change: FileState(content=copies.put(words.encode()), mode=0o600)})
    history = await client.connect(page.url, token, after=0)
    return str(next(one["files"][0]["url"] for one in history if one.get("files")))


async def _add_heartbeat(store: Store, chat: ThreadKey, words: str) -> None:
    """What a heartbeat of the conversation leaves: a log in another thread, and a report for the next."""
    thread = heartbeat_thread(chat).encode()
    key = f"heartbeat of {chat.chat}"
    accepted = await store.accept(entry(key, thread=thread, body={"text": words}))
    lease = await lease_on(store, thread, owner="heartbeat")
    report = StateWrite(owner="anyone", graph=state_in(thread), revision=0, body={"summary": words})
    done = turn(accepted.seq, record("notice", message=f"msg-{key}", text=words))
    await store.commit_turn(lease, replace(done, states=(report,)))
    await store.release_lease(lease)


def _change(thread: str) -> NewChange:
    return NewChange(
        action="act_1",
        tool="write_file",
        root="/workspace",
        path=f"files/{thread}.txt",
        thread=thread,
        message_id="m_1",
        author="ann",
        owner="",
        before=NO_FILE,
        at=0.0,
    )


async def _status(page: OpenPage, path: str) -> int:
    async with aiohttp.ClientSession() as session, session.get(page.url + path) as response:
        return response.status
