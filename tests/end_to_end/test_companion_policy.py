"""The write policy in a running companion: each row of it by a message and what the store has afterwards.

Covers: pipeline/memory/policy/decisions.py, pipeline/memory/policy/small_talk.py,
pipeline/companion/extractors.py, pipeline/memory/sessions/ending.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.memory.candidates import proposed_fact
from tests.support.companion import CompanionModel, Talk, open_companion

NOW = "semantic_commit_now_candidates"
HELD = "semantic_session_end_holds"
REPEAT = "semantic_repeat_required"
DROPPED = "semantic_policy_drops"
SAID = "hills calm me"


async def _diagnostics(talk: Talk) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (await talk.state())["diagnostics"]
    return found


async def _held(talk: Talk) -> list[str]:
    everything = await talk.harness.store.memories.everything(talk.owner)
    return [one.decision for one in everything.held]


@pytest.mark.parametrize(
    ("fields", "key", "held"),
    [
        ({"evidence_quote": "I am a failure at everything"}, REPEAT, ["require_repetition"]),
        ({"sensitivity": "high"}, HELD, ["commit_at_session_end"]),
        ({"category": "loss"}, HELD, ["commit_at_session_end"]),
        ({"category": "trigger"}, HELD, ["commit_at_session_end"]),
        ({"scope": "turn"}, DROPPED, []),
        ({"durability": "transient"}, DROPPED, []),
        ({"predicate": "MENTIONED_IN"}, DROPPED, []),
        ({"category": "relationship"}, NOW, []),
        ({"category": "coping_strategy"}, NOW, []),
        ({"category": "goal"}, NOW, []),
        ({"category": "context"}, NOW, []),
    ],
)
async def test_each_row_of_the_policy_decides_a_models_candidate(
    tmp_path: Path, fields: dict[str, str], key: str, held: list[str]
) -> None:
    proposal = {**proposed_fact(SAID, "hills"), **fields}
    llm = CompanionModel(facts=[{"facts": [proposal], "reason": "one"}])
    async with open_companion(tmp_path, llm=llm) as talk:
        await talk.say(f"{proposal['evidence_quote']}, my friends say")
        assert (await _diagnostics(talk))[key] == 1
        assert await _held(talk) == held
        assert len(await talk.facts()) == (key == NOW)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Please never ask me if I'm safe", "procedural_policy_drops"),
        ("Please don't mention 988 to me", "procedural_policy_drops"),
        ("Please be short, just this once", "procedural_policy_drops"),
        ("Please keep your answers short from now on", "procedural_commit_now_candidates"),
    ],
)
async def test_a_rule_is_kept_unless_it_is_against_safety_or_for_one_turn(
    tmp_path: Path, text: str, key: str
) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say(text)
        diagnostics = await _diagnostics(talk)
        profile = await talk.harness.store.memories.profile(talk.owner)
        if key == "procedural_policy_drops":
            assert profile.rules == ()
        else:
            assert diagnostics[key] == 1
            assert len(profile.rules) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("thank you so much", "skipped: small talk"),
        ("Don't save this. I love hiking in the mountains", "skipped: a request about the memory"),
    ],
)
async def test_small_talk_and_requests_about_the_memory_are_not_searched(
    tmp_path: Path, text: str, reason: str
) -> None:
    llm = CompanionModel()
    async with open_companion(tmp_path, llm=llm) as talk:
        await talk.say(text)
        diagnostics = await _diagnostics(talk)
        assert (diagnostics["extract_facts_reason"], diagnostics["extract_procedural_reason"]) == (
            reason,
            reason,
        )
        assert await talk.facts() == ()
        asked = {request.schema.name for request in llm.asked if request.schema}
        assert asked.isdisjoint({"facts", "rules"}), "no model is asked"


async def test_a_message_without_words_is_no_small_talk(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("🙂")
        assert (await _diagnostics(talk))["extract_facts_reason"] != "skipped: small talk"


async def test_what_is_said_again_in_the_same_words_is_one_fact(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I love hiking in the mountains")
        await talk.rested()
        await talk.say("I love hiking in the mountains!")
        assert (await _diagnostics(talk))["semantic_bumps"] == 1
        assert len(await talk.facts()) == 1


async def test_a_held_fact_is_kept_at_the_end_if_two_turns_say_it_and_forgotten_if_one_does(
    tmp_path: Path,
) -> None:
    once = "Crowded trains always give me panic attacks"
    for turns, kept in (((once,), 0), ((once, "Oh those crowded trains, panic attacks again"), 1)):
        (tmp_path / str(kept)).mkdir()
        async with open_companion(tmp_path / str(kept)) as talk:
            for text in turns:
                await talk.say(text)
                await talk.rested()
            assert await talk.facts() == (), "not before the end"
            await talk.say("/end")
            await talk.rested()
            assert len(await talk.facts()) == kept
