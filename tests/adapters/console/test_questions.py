"""Questions in the terminal: asked one at a time, answered by typing one of their choices."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

from adapters.console.adapter import THREAD
from pipeline.domain.events import (
    EXPIRED,
    ApprovalRequired,
    ApprovalResolved,
    TurnStarted,
)
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage
from tests.adapters.console.harness import Bot, Terminal, echo
from tests.adapters.fakes import MemoryTimeline


async def test_a_question_is_answered_by_typing_one_of_its_choices() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        ids: dict[str, Any] = {"session_id": "s", "message_id": bot.inbox.items[0].message_id}
        if isinstance(item, InboundMessage):
            question = ApprovalRequired(
                **ids,
                interaction_id="int_1",
                tool_name="shell",
                reasoning="it writes",
                options=("Allow", "Deny"),
                timeout_s=60.0,
            )
            await sender.send_event(TurnStarted(**ids))
            await sender.send_event(question)
        else:
            assert isinstance(item, ApprovalReply)
            assert (item.interaction_id, item.choice) == ("int_1", "Deny")
            await sender.send_event(ApprovalResolved(**ids, interaction_id="int_1", choice="Deny"))
            await bot.finish(bot.inbox.items[0].message_id, "then not")

    terminal = Terminal("write it", " deny ")
    await Bot(terminal, turn).chat()
    assert terminal.text == (
        "shell needs your approval: it writes\nType Allow or Deny within 60 seconds.\n"
        "approval: Deny\nthen not\n"
    )


async def test_a_question_that_no_one_answered_in_time_says_so() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        ids: dict[str, Any] = {"session_id": "s", "message_id": item.message_id}
        await sender.send_event(TurnStarted(**ids))
        await sender.send_event(replace(_asked(item.message_id), paused=False))
        await sender.send_event(ApprovalResolved(**ids, interaction_id="int_1", choice=EXPIRED))
        await bot.finish(item.message_id, "then not")

    terminal = Terminal("write it")
    await Bot(terminal, turn).chat()
    assert terminal.text.endswith("\napproval: no one answered in time\nthen not\n")


def _asked(message_id: str, interaction_id: str = "int_1", words: str = "Send 100?") -> ApprovalRequired:
    """A paused run's question."""
    return ApprovalRequired(
        session_id="s",
        message_id=message_id,
        interaction_id=interaction_id,
        tool_name="ask",
        reasoning=words,
        options=("Approve", "Deny"),
        timeout_s=0.0,
        paused=True,
    )


async def test_a_paused_run_is_answered_after_its_turn_and_other_messages_in_between() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        if isinstance(item, ApprovalReply):
            ids = {"session_id": "s", "message_id": item.message_id}
            choice = item.choice
            await sender.send_event(
                ApprovalResolved(**ids, interaction_id=item.interaction_id, choice=choice)
            )
            await bot.finish(item.message_id, f"then {choice}")
        elif isinstance(item, InboundMessage) and item.text == "pay":
            await sender.send_event(_asked(item.message_id))
            await bot.finish(item.message_id, "Send 100? (Approve / Deny)")
        else:
            await echo(bot, item)

    terminal = Terminal("pay", "why approve?", "APPROVE", "approve")
    bot = Bot(terminal, turn)
    await bot.chat()
    assert terminal.text == (
        "Send 100? (Approve / Deny)\nType Approve or Deny.\nyou said why approve?\n"
        "approval: Approve\nthen Approve\nyou said approve\n"
    )
    assert [type(item) for item in bot.inbox.items] == [
        InboundMessage,
        InboundMessage,
        ApprovalReply,
        InboundMessage,
    ]


async def test_the_questions_of_an_earlier_run_are_asked_again_one_after_the_other() -> None:
    async def turn(bot: Bot, item: Inbound) -> None:
        await bot.finish(item.message_id, f"took {getattr(item, 'interaction_id', 'a message')}")

    timeline = MemoryTimeline()
    timeline.asked[THREAD] = [_asked("m_1"), _asked("m_2", "int_2", "Send 200?")]
    terminal = Terminal("deny", "approve")
    await Bot(terminal, turn, timeline=timeline).chat()
    assert terminal.text == (
        "ask needs your approval: Send 100?\nType Approve or Deny.\n"
        "took int_1\n"
        "ask needs your approval: Send 200?\nType Approve or Deny.\n"
        "took int_2\n"
    )


async def test_a_refused_answer_closes_the_question_and_the_word_is_a_message_again() -> None:
    timeline = MemoryTimeline()
    timeline.asked[THREAD] = [_asked("m_1")]
    terminal = Terminal()

    async def lines() -> AsyncIterator[str]:
        bot.inbox.refuse = "This question has expired; nothing was done."
        yield "deny"
        bot.inbox.refuse = None
        yield "deny"

    bot = Bot(terminal, echo, timeline=timeline, lines=lines())
    await bot.chat()
    assert terminal.text.endswith("not sent: This question has expired; nothing was done.\nyou said deny\n")


async def test_a_long_question_is_shown_in_part_and_whole_when_the_person_types_all() -> None:
    words = f'May I use send?\nText: "a\u202e{"x" * 2_000}THE MIDDLE{"y" * 2_000}"\nSHA-256: 12ab'

    async def turn(bot: Bot, item: Inbound) -> None:
        sender = bot.adapter.sender_for(THREAD)
        ids: dict[str, Any] = {"session_id": "s", "message_id": bot.inbox.items[0].message_id}
        if isinstance(item, InboundMessage):
            await sender.send_event(TurnStarted(**ids))
            await sender.send_event(replace(_asked(item.message_id), reasoning=words, paused=False))
        else:
            await bot.finish(bot.inbox.items[0].message_id, "then not")

    terminal = Terminal("send it", "all", "deny")
    bot = Bot(terminal, turn)
    await bot.chat()
    short, _, rest = terminal.text.partition("Type all to see the whole of it.\n")
    assert "THE MIDDLE" not in short
    assert 'Text: "a<U+202E>' in short
    assert rest.count("THE MIDDLE") == 1
    assert [type(item).__name__ for item in bot.inbox.items] == ["InboundMessage", "ApprovalReply"]
