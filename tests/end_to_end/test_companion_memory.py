"""What a companion remembers: written after the answer, recalled in another session, of one person alone.

Covers: pipeline/companion/extractors.py, pipeline/companion/memory_node.py, pipeline/companion/prompt.py,
gateway/turns/after_answer.py, gateway/turns/session_memory.py, gateway/app/companion.py,
pipeline/runtime/workflow_context.py, pipeline/agent/recalled.py, pipeline/memory/recall_request.py,
pipeline/memory/source_message.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.turns import after_turn
from pipeline.domain.clock import ManualClock
from tests.support.companion import CompanionModel, Talk, open_companion
from tests.support.posting_channel import MemoryPosts

HIKING = "I love hiking in the mountains"
TRIGGER = "Crowded trains always give me panic attacks"
ASKED = "I can't decide what to do. Would hiking in the mountains help?"


def prompt(talk: Talk) -> str:
    """The system message of the newest reply."""
    return talk.harness.llm.requests[-1].messages[0].content


async def test_a_fact_is_stored_after_the_answer_and_recalled_in_the_next_session(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.rested()
        (fact,) = await talk.facts()
        assert fact.evidence_quote == HIKING
        assert fact.write_timing == "immediate"
        await talk.say("/new")
        await talk.say(ASKED)
        assert HIKING in prompt(talk)
        assert "Do not mention earlier conversations" in prompt(talk)
        state = await talk.state()
        assert state["diagnostics"]["semantic_hits"] == 1
        assert "working_memory" not in state, "no record of a run holds what was recalled"


async def test_a_rule_changes_how_the_next_answers_are_asked_for(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("Please keep your answers short from now on.")
        await talk.rested()
        await talk.say(ASKED)
        assert "# How This Person Wants To Be Answered" in prompt(talk)


async def test_off_the_record_nothing_is_read_or_written(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.rested()
        await talk.say("/otr")
        await talk.say("I love swimming in the sea, and hiking in the mountains")
        await talk.rested()
        assert HIKING not in prompt(talk)
        assert len(await talk.facts()) == 1


async def test_two_people_and_a_room_share_nothing(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_companion(tmp_path, posts=posts) as talk:
        for number, (author, chat) in enumerate(
            (("ann", "c1"), ("ben", "c2"), ("ann", "room"), ("ann", "c1"))
        ):
            text = HIKING if number == 0 else ASKED
            known = len(posts.texts(chat))
            await posts.receive(text, native_id=str(number), author=author, chat=chat, private=chat != "room")
            await posts.until(lambda: len(posts.texts(chat)) > known)  # noqa: B023 - used before the next turn
            await talk.rested()
        shown = [HIKING in request.messages[0].content for request in talk.harness.llm.requests]
        assert shown == [False, False, False, True]


async def test_a_message_that_is_taken_back_before_its_turn_comes_leaves_nothing(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.say("/undo")
        await talk.rested()
        facts = await talk.facts()
        assert facts == ()


async def test_the_end_of_a_session_leaves_an_arc_that_the_next_one_begins_with(tmp_path: Path) -> None:
    arc = {"too_thin": False, "summary": "They spoke about hiking.", "primary_themes": ["hiking"]}
    arc |= {"mood_opened": "tired", "mood_closed": "calm", "open_loops": [], "resolved_threads": []}
    async with open_companion(tmp_path, llm=CompanionModel(session_arc=[arc])) as talk:
        await talk.say(HIKING)
        await talk.say(ASKED)
        assert (await talk.say("/end")).startswith("This conversation is over.")
        await talk.rested()
        (found,) = await talk.harness.store.memories.arcs(talk.owner)
        assert (found.summary, found.turn_count) == ("They spoke about hiking.", 2)
        await talk.say("I can't sleep at all")
        assert "Last session (hiking): They spoke about hiking." in prompt(talk)
        await talk.say("I can't sleep at all, again")
        assert "They spoke about hiking." not in prompt(talk), "only the first turn catches up"


async def test_a_session_ends_after_twenty_minutes_and_is_remembered_once(tmp_path: Path) -> None:
    clock = ManualClock(start=1_900_000_000.0)
    llm = CompanionModel()
    async with open_companion(tmp_path, clock=clock, llm=llm) as talk:
        await talk.say(HIKING)
        await talk.rested()
        await talk.say(ASKED)
        await talk.rested()
        await talk.sessions(1)
        clock.step_wall(1_201)
        await clock.advance(1_201)
        await talk.sessions(2)
        await talk.rested()
        asked = [request.schema.name for request in llm.asked if request.schema]
        assert asked.count("session_arc") == 1


async def test_a_long_session_ends_after_its_last_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_turn, "ROTATION_TURNS", 2)
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.say(ASKED)
        lines = await talk.sessions(2)
        assert lines[-1].body["text"] == "New conversation: the one before has become long"


async def test_what_rests_on_a_turn_that_is_taken_back_is_forgotten(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I love swimming in the sea")
        await talk.say(HIKING)
        await talk.say("/undo")
        await talk.rested()
        assert [fact.evidence_quote for fact in await talk.facts()] == ["I love swimming in the sea"]
        await talk.say(HIKING)
        await talk.rested()
        assert len(await talk.facts()) == 2
        await talk.say("/undo")
        await talk.rested()
        assert [fact.evidence_quote for fact in await talk.facts()] == ["I love swimming in the sea"]


async def test_what_waits_for_the_end_of_the_session_goes_with_the_turn_that_is_taken_back(
    tmp_path: Path,
) -> None:
    async with open_companion(tmp_path) as talk:
        book = talk.harness.store.memories

        async def waiting() -> list[str]:
            await talk.rested()
            return [one.candidate.evidence_quote for one in (await book.everything(talk.owner)).held]

        await talk.say(TRIGGER)
        assert await waiting() == [TRIGGER]
        await talk.say("/undo")
        assert await waiting() == []
        await talk.say("/new")
        assert await waiting() == []
        assert await talk.facts() == ()


async def test_other_agents_know_what_is_remembered_where_the_settings_say_so(tmp_path: Path) -> None:
    beside = (
        'agents.helper.graph="conversation"',
        'agents.helper.description="x"',
        'routes.1.also=["helper"]',
    )
    for agents, known in (("companions", False), ("all", True)):
        (tmp_path / agents).mkdir()
        async with open_companion(tmp_path / agents, *beside, f'memory.agents="{agents}"') as talk:
            await talk.say(HIKING)
            await talk.rested()
            await talk.say("/agent helper")
            await talk.say("Where could I go hiking in the mountains?")
            assert (HIKING in prompt(talk)) is known


async def test_earlier_conversations_are_brought_up_only_when_that_is_asked_for(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(ASKED)
        assert "Do not mention earlier conversations" in prompt(talk)
        await talk.say("Please remind me of what we talked about last time")
        assert "You may mention an earlier conversation" in prompt(talk)
        await talk.rested()
        await talk.say(ASKED)
        assert "You may mention an earlier conversation" in prompt(talk)


async def test_two_chats_of_one_person_at_once_lose_no_rule(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        other = Talk(talk.harness, chat="c2")
        rules = ("Please keep your answers short from now on.", "Please call me Tom from now on.")
        async with asyncio.TaskGroup() as group:
            for chat, text in zip((talk, other), rules, strict=True):
                group.create_task(chat.say(text))
        await talk.rested()
        profile = await talk.harness.store.memories.profile(talk.owner)
        assert len(profile.rules) == 2
