"""A graph that ends a turn at its first step causes no read of history, room or workspace.

Covers: pipeline/turn_reads.py, pipeline/intake/node.py, gateway/turns/sessions.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.ports import Record, Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import StorageError
from pipeline.domain.events import ErrorEvent
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.ports import WorkspaceTexts
from pipeline.runtime.scope import TurnScope
from pipeline.tools.workspace import WorkspaceFolder
from tests.pipeline.nodes.documents import node, steps
from tests.support.harness import open_gateway
from tests.support.platforms.telegram import FakeTelegram
from tests.support.two_channels import open_two_channels

EXEMPT = 'safety.gate="off"'
"""The crisis gate reads the last messages of the conversation first, as its rules need them."""
REFUSE = node("refuse", "reply", text="I do not talk about that.")
SAFE = steps(
    node("check", "condition", **{"if": "'secret' in message", "then": "refuse", "else": "answer"}),
    REFUSE,
    node("answer", "agent"),
)


class Reads:
    """Counts the reads of a gateway's history and workspace, and fails the next ones on demand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.history = self.texts = self.failing = 0
        self.begun = asyncio.Event()
        self.hangs = False
        reads, texts = self, WorkspaceFolder.texts

        def counted(read_log: Callable[..., Awaitable[tuple[Record, ...]]]) -> Any:
            async def counted_log(
                store: Store, thread: str, *, kinds: Sequence[Any] | None = None, **given: Any
            ) -> tuple[Record, ...]:
                # The page reads its visible lines without this kind.
                if "summary" in (kinds or ()):
                    await reads.note_history()
                return await read_log(store, thread, kinds=kinds, **given)

            return counted_log

        def counted_texts(folder: WorkspaceFolder, scope: TurnScope) -> WorkspaceTexts:
            reads.texts += 1
            if reads.failing:
                reads.failing -= 1
                raise OSError("the folder is gone")
            return texts(folder, scope)

        for kind in (SqliteStore, PostgresStore):
            monkeypatch.setattr(kind, "read_log", counted(kind.read_log))
        monkeypatch.setattr(WorkspaceFolder, "texts", counted_texts)

    async def note_history(self) -> None:
        """Count a read of the history."""
        self.history += 1
        self.begun.set()
        if self.hangs:
            await asyncio.Event().wait()
        if self.failing:
            self.failing -= 1
            raise StorageError("the disk does not answer")

    @property
    def all(self) -> tuple[int, int]:
        """The number of reads of the history and of the workspace."""
        return self.history, self.texts


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def _agent(tmp_path: Path, document: dict[str, Any]) -> str:
    path = tmp_path / "safe.json"
    path.write_text(json.dumps(document), "utf-8")
    return f'agent.graph="{path}"'


async def test_on_each_channel_a_check_comes_before_every_read(tmp_path: Path, reads: Reads) -> None:
    agent = _agent(tmp_path, SAFE)
    async with FakeTelegram() as telegram:
        async with open_two_channels(tmp_path, EXEMPT, agent, telegram=telegram) as place:
            for chat in place.chats:
                assert await chat.ask("hello") == "You said: hello"
        reads.history = reads.texts = 0
        page = place.page.page.chat
        async with open_two_channels(tmp_path, EXEMPT, agent, telegram=telegram, chat=page) as place:
            for chat in place.chats:
                assert await chat.ask("a secret") == "I do not talk about that."
            assert reads.all == (0, 0)
            assert place.harness.llm.requests == []
            for number, chat in enumerate(place.chats, 1):
                assert await chat.ask("and now?") == "You said: and now?"
                assert reads.all == (number, number)


async def test_what_was_said_before_is_read_by_the_step_that_needs_it(tmp_path: Path, reads: Reads) -> None:
    agent = _agent(tmp_path, SAFE)
    async with open_gateway(tmp_path, EXEMPT, agent) as harness:
        await harness.channel.reply((await harness.channel.say("I am Ada")).message_id)
    reads.history = reads.texts = 0
    async with open_gateway(tmp_path, EXEMPT, agent) as harness:
        refused = await harness.channel.say("a secret")
        await harness.channel.reply(refused.message_id)
        assert reads.all == (0, 0)
        await harness.channel.reply((await harness.channel.say("who am I?")).message_id)
        assert reads.all == (1, 1)
        await harness.channel.reply((await harness.channel.say("and now?")).message_id)
        assert reads.all == (1, 2), "the conversation of a live thread is known"
        said = [message.content for message in harness.llm.requests[0].messages[1:]]
    assert said == [
        "I am Ada",
        "You said: I am Ada",
        "a secret",
        "I do not talk about that.",
        "who am I?",
    ]


async def test_a_refused_message_of_the_conversation_graph_causes_no_read(
    tmp_path: Path, reads: Reads
) -> None:
    spam = "BUY NOW!!! " * 30
    async with open_gateway(tmp_path, EXEMPT, 'limits.spam="refuse"') as harness:
        await harness.channel.reply((await harness.channel.say("hello")).message_id)
    reads.history = reads.texts = 0
    async with open_gateway(tmp_path, EXEMPT, 'limits.spam="refuse"') as harness:
        reply = await harness.channel.reply((await harness.channel.say(spam)).message_id)
    assert reply.text.startswith("This looks like spam")
    assert reads.all == (0, 0)


async def test_a_history_that_cannot_be_read_is_tried_again_and_the_message_is_answered_once(
    tmp_path: Path, reads: Reads
) -> None:
    agent = _agent(tmp_path, SAFE)
    async with open_gateway(tmp_path, EXEMPT, agent) as harness:
        await harness.channel.reply((await harness.channel.say("I am Ada")).message_id)
    reads.history, reads.failing = 0, 1
    async with open_gateway(tmp_path, EXEMPT, agent) as harness:
        accepted = await harness.channel.say("who am I?")
        assert (await harness.channel.reply(accepted.message_id)).text == "You said: who am I?"
        assert reads.history == 2
        assert len(harness.llm.requests) == 1
        assert len(await harness.records("assistant")) == 2


async def test_texts_that_cannot_be_read_end_the_turn_in_words(tmp_path: Path, reads: Reads) -> None:
    reads.failing = 1
    async with open_gateway(tmp_path, EXEMPT) as harness:
        accepted = await harness.channel.say("hello")
        error = await harness.channel.terminal(accepted.message_id)
        assert isinstance(error, ErrorEvent)
        assert error.code == "workspace_unreadable"
        assert error.message == "I could not read the texts that I work with. Please send the message again."
        assert error.recoverable
        assert (await harness.channel.reply((await harness.channel.say("again")).message_id)).text


async def test_a_turn_that_is_stopped_reads_no_more(tmp_path: Path, reads: Reads) -> None:
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, EXEMPT, llm=llm) as harness:
        await harness.channel.reply((await harness.channel.say("hello")).message_id)
    reads.hangs = True
    reads.begun.clear()
    async with open_gateway(tmp_path, EXEMPT, llm=llm) as harness:
        accepted = await harness.channel.say("read")
        await reads.begun.wait()
        await harness.channel.say("/stop")
        error = await harness.channel.terminal(accepted.message_id)
        assert isinstance(error, ErrorEvent)
        assert error.code == "stopped"
    assert len(llm.requests) == 1
    assert reads.texts == 1


async def test_on_each_channel_a_gate_comes_before_every_read(tmp_path: Path, reads: Reads) -> None:
    check = node("check", "condition", **{"if": "'secret' in message", "then": "refuse"})
    gate = _agent(tmp_path, steps(check, REFUSE)).replace("agent.graph", "agent.gate")
    async with FakeTelegram() as telegram:
        async with open_two_channels(tmp_path, EXEMPT, gate, telegram=telegram) as place:
            for chat in place.chats:
                assert await chat.ask("hello") == "You said: hello"
        reads.history = reads.texts = 0
        page = place.page.page.chat
        async with open_two_channels(tmp_path, EXEMPT, gate, telegram=telegram, chat=page) as place:
            for chat in place.chats:
                assert await chat.ask("a secret") == "I do not talk about that."
                assert await chat.ask("/secret") == "I do not talk about that."
            assert reads.all == (0, 0)
