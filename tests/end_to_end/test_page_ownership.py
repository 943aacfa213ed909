"""Every request of the page's protocol, tried by a person with what belongs to another one.

Covers: adapters/guests.py, adapters/web/handshake.py, adapters/web/person_requests.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.guests import person_of
from pipeline.domain.ids import ThreadKey
from tests.support.gate_graph import Ledger, gate_graph
from tests.support.page_people import Client, Disconnected, Frame, OpenPage, new_token, open_page
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker

SECRET = "heron"
_ANSWERED_ALONE = {"rename_chat", "delete_chat", "account", "rename_person", "invite_device", "sign_out"}
_ANSWERS = {"chat_renamed", "chat_deleted", "account", "invitation", "problem"}
DOCUMENT = Path(__file__).parents[2] / "docs" / "web-protocol.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Victim:
    """What a person has, and what another one must not reach."""

    client: Client
    token: str
    message_id: str
    entry_id: int
    question: str
    device: str

    @property
    def chat(self) -> str:
        assert self.client.chat
        return self.client.chat


def attempts(victim: Victim) -> Mapping[str, list[Frame]]:
    """Frames of each type that name what is the victim's."""
    key = {"client_id": "t1"}
    return {
        "message": [{**key, "text": "mine"}, {**key, "text": "other", "edits": victim.message_id}],
        "voice": [{**key, "mime": "audio/webm", "size": 3}],
        "command": [{**key, "name": name} for name in ("stop", "new", "help", "unlink", "retry", "undo")],
        "approval": [{**key, "interaction": victim.question, "choice": "approve"}],
        "feedback": [{**key, "message_id": victim.message_id, "up": False, "on": True}],
        "live_start": [{**key, "hands_free": False}],
        "live_finish": [{}],
        "live_stop": [{}],
        "speak": [
            {**key, "entry_id": victim.entry_id},
            {**key, "entry_id": victim.entry_id, "part": 0},
            {**key, "message_id": victim.message_id, "part": 0},
        ],
        "speak_stop": [{}],
        "earlier": [{**key, "before": victim.entry_id + 1}],
        "chats": [key, {**key, "search": SECRET}],
        "rename_chat": [{**key, "chat": victim.chat, "title": "stolen"}],
        "delete_chat": [{**key, "chat": victim.chat}],
        "account": [key],
        "rename_person": [{**key, "name": "Victim"}],
        "invite_device": [key],
        "sign_out": [{**key, "device": victim.device}],
        "ping": [{}],
    }


def test_every_documented_request_is_tried() -> None:
    text = DOCUMENT.read_text().partition("## Client to server")[2].partition("## Server to client")[0]
    tried = attempts(
        Victim(client=Client(chat="c_"), token="", message_id="", entry_id=0, question="", device="")
    )
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(tried)


@pytest.mark.parametrize("whose", ["owner", "Victim"])
@pytest.mark.parametrize("by", ["owner", "Eve"])
async def test_no_request_reaches_what_belongs_to_another_person(tmp_path: Path, whose: str, by: str) -> None:
    if whose == by:
        return
    graph = gate_graph(Ledger(tmp_path / "ledger"))
    async with (
        open_page(tmp_path, graph=graph, speaker=ScriptedSpeaker()) as page,
        _victim(page, whose) as victim,
        Client(chat=victim.chat) as eve,
    ):
        before = await _state(page, victim)
        token = page.owner_token if by == "owner" else await page.join(by)
        seen = await eve.connect(page.url, token)
        for kind, frames in attempts(victim).items():
            for frame in frames:
                await eve.send(type=kind, **frame)
                if kind == "voice":
                    await eve.send_bytes(b"abc")
                if kind in _ANSWERED_ALONE:
                    # One at a time: the next one would be refused while this one is being carried out.
                    seen.append(await eve.wait_for(lambda got: got["type"] in _ANSWERS))
                if kind != "delete_chat":
                    seen += await _until_pong(eve)
                if kind == "delete_chat":
                    # That was Eve's own chat of that name: its windows are closed.
                    assert await eve.read_to_the_end() == 4404
                    await eve.connect(page.url, token)
        assert SECRET not in json.dumps(seen)
        assert await _state(page, victim) == before
        await victim.client.ping()
        assert SECRET in json.dumps(await victim.client.connect(page.url, victim.token, after=0))


async def test_a_token_of_one_person_is_no_token_of_another(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as client:
        await page.join("Ann")
        with pytest.raises(Disconnected, match="wrong_token"):
            await client.connect(page.url, new_token())


@asynccontextmanager
async def _victim(page: OpenPage, name: str) -> AsyncIterator[Victim]:
    token = page.owner_token if name == "owner" else await page.join(name)
    async with Client() as client:
        await client.connect(page.url, token)
        await client.send_text("v1", SECRET)
        message_id = await client.accepted("v1")
        line = await client.answer(message_id)
        history = await client.connect(page.url, token)
        question = next(one["event"] for one in history if one["type"] == "event")
        devices = (await client.ask(type="account"))["devices"]
        yield Victim(
            client=client,
            token=token,
            message_id=message_id,
            entry_id=line.entry_id,
            question=question["interaction_id"],
            device=devices[0]["device"] if devices else "d_none",
        )


async def _state(page: OpenPage, victim: Victim) -> object:
    """All that is stored of the victim."""
    asked = await page.store.interaction(victim.question)
    assert asked is not None
    thread = asked[0].thread
    return (
        thread,
        await page.store.read_log(thread),
        asked,
        await page.store.feedback.of_thread(thread),
        await page.store.page.chats.names((thread,)),
        await page.store.page.people.person(person_of(ThreadKey.decode(thread).chat)),
        [one for one in await page.store.page.people.devices() if one.id == victim.device],
    )


async def _until_pong(client: Client) -> list[Frame]:
    """What the gateway says next. A closed socket says nothing more."""
    heard: list[Frame] = []

    def note(frame: Frame) -> bool:
        heard.append(frame)
        return str(frame["type"]) == "pong"

    try:
        await client.send(type="ping")
        await client.wait_for(note)
    except Disconnected:
        pass
    return heard
