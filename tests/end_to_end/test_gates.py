"""A run that asks a person: the thread continues meanwhile, and the answer resumes exactly that run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.storage.ports import Interaction
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, ErrorEvent
from tests.support.channel import types_of
from tests.support.gate_graph import OPTIONS, PROMPT, Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, GatewayHarness, open_gateway


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger")


async def _asked(harness: GatewayHarness, text: str = "pay") -> tuple[str, Interaction]:
    """A message whose run has asked; its id, and the newest pending question."""
    accepted = await harness.channel.say(text)
    await harness.channel.reply(accepted.message_id)
    pending = await harness.store.pending_interactions(THREAD, now=0.0)
    return accepted.message_id, pending[-1]


async def test_a_question_is_asked_and_its_answer_continues_with_the_run(
    tmp_path: Path, ledger: Ledger
) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        message_id, question = await _asked(harness)
        asked = await harness.channel.reply(message_id)
        assert asked.text == f"{PROMPT}\n(approve / deny)"
        assert (question.options, question.allowed_users) == (OPTIONS, ("owner",))
        assert (await harness.store.counts()).inbox_open == 0

        assert (await harness.channel.bring(answer_to(question.id, "approve"))).status == "accepted"
        assert (await harness.channel.reply("m_answer")).text == "pay: approve by owner, after 0 lines"
        assert ledger.lines() == ["prepare", "ask", "act approve"]
        lines = [
            (record.kind, record.body["text"])
            for record in await harness.records("user", "assistant", "error")
        ]
        assert lines == [
            ("user", "pay"),
            ("assistant", f"{PROMPT}\n(approve / deny)"),
            ("user", "approve"),
            ("assistant", "pay: approve by owner, after 0 lines"),
        ]


async def test_the_events_name_the_question_and_end_each_turn_once(tmp_path: Path, ledger: Ledger) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        message_id, question = await _asked(harness)
        await harness.channel.bring(answer_to(question.id, "deny"))
        await harness.channel.terminal("m_answer")
        first, second = (harness.channel.events_of(one) for one in (message_id, "m_answer"))
    assert types_of(first)[-2:] == ["approval_required", "response_complete"]
    assert types_of(second) == [
        "turn_started",
        "approval_resolved",
        "node_started",
        "node_completed",
        "response_complete",
    ]
    required, resolved = first[-2], second[1]
    assert isinstance(required, ApprovalRequired)
    assert (required.interaction_id, required.reasoning) == (question.id, PROMPT)
    assert isinstance(resolved, ApprovalResolved)
    assert (resolved.interaction_id, resolved.choice) == (question.id, "deny")


async def test_while_a_question_waits_the_thread_answers_other_messages(
    tmp_path: Path, ledger: Ledger
) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        _, first = await _asked(harness, "one")
        _, second = await _asked(harness, "two")
        assert first.id != second.id
        await harness.channel.bring(answer_to(second.id, "deny", name="b"))
        await harness.channel.bring(answer_to(first.id, "approve", name="a"))
        # The first run sees the conversation as it was before its own message.
        assert (await harness.channel.reply("m_a")).text == "one: approve by owner, after 0 lines"
        assert (await harness.channel.reply("m_b")).text == "two: deny by owner, after 2 lines"


async def test_a_second_answer_is_refused_and_does_nothing(tmp_path: Path, ledger: Ledger) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        _, question = await _asked(harness)
        await harness.channel.bring(answer_to(question.id, "approve"))
        for name in ("answer", "again"):
            refused = await harness.channel.bring(answer_to(question.id, "deny", name=name))
            assert (refused.status, refused.reason) == ("refused", "This question has already been answered.")
        await harness.channel.reply("m_answer")
        counts = await harness.store.counts()
        assert (counts.inbox_open, counts.inbox_done) == (0, 2)
    assert ledger.lines() == ["prepare", "ask", "act approve"]


@pytest.mark.parametrize(
    ("choice", "chat", "words"),
    [
        ("APPROVE", "c1", "That is not one of the offered answers."),
        ("approve", "c2", "There is no such question in this chat."),
    ],
)
async def test_a_foreign_or_strange_answer_leaves_the_question_open(
    tmp_path: Path, ledger: Ledger, choice: str, chat: str, words: str
) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        _, question = await _asked(harness)
        refused = await harness.channel.bring(answer_to(question.id, choice, chat=chat))
        assert (refused.status, refused.reason) == ("refused", words)
        assert await harness.store.pending_interactions(THREAD, now=0.0) == (question,)
    assert ledger.lines() == ["prepare", "ask"]


async def test_a_late_answer_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    clock = ManualClock()
    async with open_gateway(tmp_path, graph=gate_graph(ledger, expires_s=60), clock=clock) as harness:
        _, question = await _asked(harness)
        assert question.expires_at == clock.now() + 60
        clock.step_wall(61)
        refused = await harness.channel.bring(answer_to(question.id, "approve"))
        assert (refused.status, refused.reason) == ("refused", "This question has expired; nothing was done.")
    assert ledger.lines() == ["prepare", "ask"]


async def test_a_gate_without_options_takes_the_one_word_it_offers(tmp_path: Path, ledger: Ledger) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger, options=())) as harness:
        _, question = await _asked(harness)
        assert question.options == ("continue",)
        await harness.channel.bring(answer_to(question.id, "continue"))
        assert (await harness.channel.reply("m_answer")).text.startswith("pay: continue")


async def test_a_question_outlives_a_restart(tmp_path: Path, ledger: Ledger) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        _, question = await _asked(harness)
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        await harness.channel.bring(answer_to(question.id, "approve"))
        assert (await harness.channel.reply("m_answer")).text == "pay: approve by owner, after 0 lines"
    assert ledger.lines() == ["prepare", "ask", "act approve"]


async def test_an_answer_to_a_graph_that_has_changed_does_nothing_twice(
    tmp_path: Path, ledger: Ledger
) -> None:
    async with open_gateway(tmp_path, graph=gate_graph(ledger)) as harness:
        _, question = await _asked(harness)
    async with open_gateway(tmp_path, graph=gate_graph(ledger, version="2")) as harness:
        await harness.channel.bring(answer_to(question.id, "approve"))
        event = await harness.channel.terminal("m_answer")
        assert isinstance(event, ErrorEvent)
        assert event.code == "graph_changed"
        assert "send your message again" in event.message
    assert ledger.lines() == ["prepare", "ask"]
