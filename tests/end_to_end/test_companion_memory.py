"""What a companion remembers: written after the answer, recalled in another session, of one person alone.

Covers: pipeline/companion/extractors.py, pipeline/companion/memory_node.py, pipeline/companion/prompt.py,
gateway/turns/after_answer.py, gateway/app/companion.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.companion import CompanionModel, Talk, open_companion

HIKING = "I love hiking in the mountains"
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


async def test_two_people_share_nothing(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.rested()
        other = Talk(talk.harness, chat="c2", user="other")
        await other.say(ASKED)
        assert HIKING not in prompt(other)


async def test_a_message_that_is_taken_back_before_its_turn_comes_leaves_nothing(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(HIKING)
        await talk.say("/undo")
        await talk.rested()
        facts = await talk.facts()
        assert facts == ()
