"""Every request of the page's protocol, tried by a person with what belongs to another one, or to no one.

Covers: adapters/guests.py, adapters/web/handshake.py, adapters/web/visitors.py, adapters/web/uploads.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import aiohttp
import pytest

from adapters.guests import person_of
from adapters.web import protocol
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from tests.adapters.web.harness import WebHarness
from tests.support.file_reader import FakeFileReader
from tests.support.gate_graph import Ledger, gate_graph
from tests.support.looks import look_again
from tests.support.page_people import Client, Disconnected, Frame, OpenPage, new_token, open_page
from tests.support.page_requests import INVENTED, UNNAMED, Things, requests_for
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker

SECRET = "the heron lands at nine"
DOCUMENT = Path(__file__).parents[2] / "docs" / "web-protocol.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """A person with a conversation, whose things another one must not reach."""

    client: Client
    token: str
    things: Things
    link: str
    """The path of a file in their conversation."""


def test_every_frame_is_tried_and_documented() -> None:
    tried = requests_for(INVENTED)
    assert set(tried) == set(get_args(protocol.ClientFrame))
    text = DOCUMENT.read_text().partition("## Client to server")[2].partition("## Server to client")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) | {"hello"}
    assert documented == {str(frame["type"]) for frames in tried.values() for frame in frames}


@pytest.mark.parametrize(
    ("whose", "by"), [("owner", "Eve"), ("Victim", "owner"), ("Victim", "Eve")], ids=lambda name: name
)
async def test_what_belongs_to_another_person_is_answered_like_what_does_not_exist(
    tmp_path: Path, whose: str, by: str
) -> None:
    async with _open(tmp_path) as page, _victim(page, whose) as victim:
        before = await _state(page, victim.things)
        theirs = await _tried(page, by, victim.things)
        invented = await _tried(page, by, INVENTED)
        assert theirs.answers == invented.answers
        assert SECRET not in json.dumps(theirs.seen)
        assert SECRET not in await _kept_by(page, theirs.client)
        assert await _state(page, victim.things) == before
        await victim.client.ping()
        assert SECRET in json.dumps(await victim.client.connect(page.url, victim.token, after=0))
        assert await _status(page, "GET", victim.link) == 200


async def test_a_removed_persons_open_page_does_nothing_more(tmp_path: Path) -> None:
    """The clock does not move, so that nothing looks for removed people, which would close the pages."""
    requests = [(kind, frame) for kind, frames in requests_for(INVENTED).items() for frame in frames]
    async with open_page(
        tmp_path, clock=ManualClock(1_900_000_000.0), speaker=ScriptedSpeaker(), file_reader=FakeFileReader()
    ) as page:
        # One page for each frame, because the first one ends it; a person may open 40.
        tokens = [await page.join(f"Ann {number}") for number in range(len(requests) // 40 + 1)]
        clients = [Client() for _ in requests]
        for number, client in enumerate(clients):
            await client.__aenter__()
            await client.connect(page.url, tokens[number // 40])
        for one in await page.store.page.people.people():
            assert await page.remove(one.id)
        for client, (_, frame) in zip(clients, requests, strict=True):
            await client.send(client_id="t1", token=tokens[0], **frame)
            assert await client.read_to_the_end() == 4403, frame
            assert [problem["code"] for problem in client.seen.problems] == ["signed_out"]
            assert client.seen.accepted == {}
            await client.__aexit__(None, None, None)
        assert await page.store.threads_of("web", "local", limit=9) == ()


async def test_a_removed_persons_token_and_links_count_nowhere(tmp_path: Path) -> None:
    async with _open(tmp_path) as page, _victim(page, "Victim") as victim, Client() as other:
        assert await _status(page, "GET", victim.link) == 200
        assert await page.remove(await page.id_of("Victim"))
        assert await _upload_status(page, victim.token, victim.things.chat) == 401
        with pytest.raises(Disconnected, match="wrong_token"):
            await other.connect(page.url, victim.token)
        await page.erased()
        assert await _status(page, "GET", victim.link) == 404


async def test_every_route_is_closed_to_what_is_another_persons(tmp_path: Path) -> None:
    async with _open(tmp_path) as page, _victim(page, "Victim") as victim:
        eve = await page.join("Eve")
        cases: dict[tuple[str, str], Callable[[], Awaitable[object]]] = {
            ("GET", "/"): lambda: _shows_nothing(page, "/"),
            ("GET", "/static/{name:.+}"): lambda: _shows_nothing(page, "/static/app.js"),
            ("GET", "/sw.js"): lambda: _shows_nothing(page, "/sw.js"),
            ("GET", "/f/{token}/{name}"): lambda: _only_the_signed_link(page, victim.link),
            ("GET", "/ws"): lambda: _no_wrong_token(page, victim.things.chat),
            ("POST", "/files/{chat}"): lambda: _only_own_uploads(page, victim, eve),
        }
        adapter = WebHarness(tmp_path).adapter
        served = {(one.method, one.path) for one in (*adapter.routes(), *adapter.upload_routes())}
        assert served == set(cases)
        for case in cases.values():
            await case()
        # The numbers are the operator's.
        assert await _status(page, "GET", "/metrics", eve) == 401
        assert await _status(page, "GET", "/metrics", page.owner_token) == 200


async def test_a_token_of_one_person_is_no_token_of_another(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as client:
        await page.join("Ann")
        with pytest.raises(Disconnected, match="wrong_token"):
            await client.connect(page.url, new_token())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    client: Client
    seen: list[Frame]
    answers: list[tuple[object, ...]]


@asynccontextmanager
async def _open(folder: Path) -> AsyncIterator[OpenPage]:
    graph = gate_graph(Ledger(folder / "ledger"))
    async with open_page(
        folder, graph=graph, speaker=ScriptedSpeaker(), file_reader=FakeFileReader()
    ) as page:
        yield page


async def _tried(page: OpenPage, by: str, things: Things) -> _Tried:
    """All requests about the things, each with its answer, by a person in a chat of the same name."""
    token = page.owner_token if by == "owner" else await page.join(f"{by} {things.words}")
    async with Client(chat=things.chat) as client:
        seen = await client.connect(page.url, token)
        answers: list[tuple[object, ...]] = []
        for kind, frames in requests_for(things).items():
            for number, frame in enumerate(frames):
                key = f"{kind.__name__}_{number}"
                await client.send(client_id=key, **(frame | _fresh(kind, things)))
                if kind is protocol.VoiceAnnouncement:
                    await client.send_bytes(b"abc")
                got = await _answer(client, kind, key, seen)
                answers.append((key, got["type"], got.get("code"), got.get("message")))
                if got["type"] == "chat_deleted":
                    # That was the person's own chat of that name: its windows are closed.
                    assert await client.read_to_the_end() == 4404
                    seen += await client.connect(page.url, token)
        await _idle(page)
        seen += await client.connect(page.url, token, after=0)
        return _Tried(client=client, seen=seen, answers=answers)


def _fresh(kind: type, things: Things) -> Frame:
    """What two persons cannot both have."""
    return {"name": f"Called {things.words}"} if kind.__name__ == "RenamePerson" else {}


async def _answer(client: Client, kind: type, key: str, seen: list[Frame]) -> Frame:
    """The answer to the frame. Frames without a key are answered with `pong`, or with nothing before it."""
    is_silent = kind in (*UNNAMED, protocol.Hello)
    if is_silent:
        await client.send(type="ping")

    def found(frame: Frame) -> bool:
        seen.append(frame)
        return frame["type"] == "pong" if is_silent else frame.get("client_id") == key

    return await client.wait_for(found)


async def _idle(page: OpenPage) -> None:
    """Wait until no turn waits or runs."""
    while await page.store.open_threads():
        await look_again()


@asynccontextmanager
async def _victim(page: OpenPage, name: str) -> AsyncIterator[Victim]:
    """A person who has a message with a file, an answer, a question, feedback, a title, a device, and an
    upload whose message has not come."""
    token = page.owner_token if name == "owner" else await page.join(name)
    async with Client() as client:
        await client.connect(page.url, token)
        assert client.chat
        sent = await page.upload(token, client.chat, f"{SECRET} in a file".encode())
        file = {"handle": sent, "name": "notes.txt", "mime": "text/plain", "size": 20}
        await client.send(type="message", client_id="v1", text=SECRET, files=[file])
        message_id = await client.accepted("v1")
        line = await client.answer(message_id)
        await client.rate("v2", message_id, up=True)
        await client.ask(type="rename_chat", chat=client.chat, title=f"{SECRET} title")
        waiting = await page.upload(token, client.chat, f"{SECRET} waits".encode())
        history = await client.connect(page.url, token, after=0)
        question = next(one["event"] for one in history if one["type"] == "event")
        link = next(one["files"][0]["url"] for one in history if one.get("files"))
        devices = (await client.ask(type="account"))["devices"]
        yield Victim(
            client=client,
            token=token,
            link=link,
            things=Things(
                chat=client.chat,
                message_id=message_id,
                entry_id=line.entry_id,
                question=question["interaction_id"],
                device=devices[0]["device"] if devices else "d_none",
                handle=waiting,
                words="heron",
            ),
        )


async def _state(page: OpenPage, things: Things) -> object:
    """All that is stored of the person who has the things."""
    asked = await page.store.interaction(things.question)
    assert asked is not None
    thread = asked[0].thread
    return (
        thread,
        await page.store.read_log(thread),
        asked,
        await page.store.feedback.of_thread(thread),
        await page.store.page.chats.names((thread,)),
        await page.store.page.people.person(person_of(ThreadKey.decode(thread).chat)),
        [one for one in await page.store.page.people.devices() if one.id == things.device],
    )


async def _kept_by(page: OpenPage, client: Client) -> str:
    """Everything on record in the conversations of the client's chat name, but of the victim."""
    assert client.chat
    keys = await page.store.threads_of("web", "local", limit=99)
    own = [key for key in keys if key.endswith(client.chat)]
    logs = [await page.store.read_log(key) for key in own]
    return " ".join(str(record.body) for log in logs for record in log)


async def _status(page: OpenPage, method: str, path: str, token: str = "", body: bytes = b"") -> int:
    status, _ = await _fetched(page, method, path, token, body)
    return status


async def _fetched(
    page: OpenPage, method: str, path: str, token: str = "", body: bytes = b""
) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    more: dict[str, Any] = {"data": body} if method == "POST" else {}
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, page.url + path, headers=headers, **more) as response,
    ):
        return response.status, await response.text()


async def _upload_status(page: OpenPage, token: str, chat: str) -> int:
    return await _status(page, "POST", f"/files/{chat}", token, b"x")


async def _shows_nothing(page: OpenPage, path: str) -> None:
    status, text = await _fetched(page, "GET", path)
    assert status == 200
    assert SECRET not in text


async def _only_the_signed_link(page: OpenPage, link: str) -> None:
    _, _, token, name = link.split("/")
    middle = len(token) // 2
    other = "A" if token[middle] != "A" else "B"
    for guess in (token[:middle] + other + token[middle + 1 :], "A" * len(token), "x"):
        assert await _fetched(page, "GET", f"/f/{guess}/{name}") == await _fetched(page, "GET", "/f/y/z.txt")
    assert await _status(page, "GET", f"/f/{token}/other.txt") == 404


async def _no_wrong_token(page: OpenPage, chat: str) -> None:
    async with Client(chat=chat) as client:
        with pytest.raises(Disconnected, match="wrong_token"):
            await client.connect(page.url, new_token())


async def _only_own_uploads(page: OpenPage, victim: Victim, eve: str) -> None:
    """Another person's chat is a chat of one's own, and another person's upload is none."""
    for token in ("", new_token()):
        assert await _upload_status(page, token, victim.things.chat) == 401
    assert await _upload_status(page, eve, "c_none") == 404
    assert await _upload_status(page, eve, victim.things.chat) == 200
    async with Client() as client:
        await client.connect(page.url, eve)
        assert client.chat
        own = await page.upload(eve, client.chat, b"seen")
        for handle in (victim.things.handle, INVENTED.handle, own):
            file = {"handle": handle, "name": "a.txt", "mime": "text/plain", "size": 4}
            await client.send(type="message", client_id=handle, text="read", files=[file])
            await client.answer(await client.accepted(handle))
        history = await client.connect(page.url, eve, after=0)
        messages = [one for one in history if one.get("role") == "user"]
        assert ["url" in str(one.get("files", ())) for one in messages] == [False, False, True]
