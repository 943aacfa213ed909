"""What a turn of the companion leaves in its state: keys, diagnostics, and nothing of the turn before.

Covers: pipeline/companion/state.py, pipeline/companion/safety_nodes.py, pipeline/companion/extractors.py,
pipeline/companion/memory_node.py, pipeline/companion/turn_end.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.companion.safety_nodes import crisis_gate
from pipeline.companion.state import NoOwner, NoWorkflow
from pipeline.companion.turn_end import finalize_turn
from pipeline.domain.messages import Author
from pipeline.llm.scripted import ScriptedLlm
from pipeline.memory.modes import NoMemory
from pipeline.runtime.workflow_context import WorkflowContext
from tests.support.companion import Talk, open_companion
from tests.support.contexts import context, scope

GATE = {"crisis_gate_ms", "crisis_level", "crisis_classifier_path"}
LOADED = {
    *("load_memory_ms", "semantic_hits", "semantic_store_size", "episodic_hits", "episodic_store_size"),
    *("procedural_count", "proactive_recall", "retrieval_path"),
}
FACTS = {
    *("extract_facts_ms", "extract_facts_reason", "semantic_writes", "semantic_bumps"),
    *("semantic_candidates", "semantic_commit_now_candidates", "semantic_session_end_holds"),
    *("semantic_repeat_required", "semantic_policy_drops"),
}
RULES = {
    *("extract_procedural_ms", "extract_procedural_reason", "procedural_writes", "procedural_candidates"),
    *("procedural_commit_now_candidates", "procedural_session_end_holds", "procedural_policy_drops"),
}


async def written(talk: Talk) -> dict[str, Mapping[str, Any]]:
    """What each node of the newest run wrote."""
    await talk.rested()
    rows = await talk.harness.store.read_log(talk.thread)
    records = [one for one in list(runs_of(rows).values())[-1] if one is not None]
    return {one["node"]: one.get("update", {}) for one in records if one["do"] == "step"}


async def test_an_ordinary_turn_leaves_every_key_of_the_state_and_of_the_diagnostics(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I love hiking in the mountains")
        state = await talk.state()
        assert {"message", "channel", "user_id", "session_id", "installed_skills"} <= state.keys()
        assert [one["role"] for one in state["history"]] == ["user", "assistant"]
        assert state["history"] == state["transcript"]
        assert {"turn_count", "stage", "intent", "crisis_level_max"} <= state["progress"].keys()
        assert {
            *("route", "response_style", "response_style_source", "response_style_type"),
            *("therapeutic_approach", "crisis_override_kind", "crisis_classifier_path"),
            "crisis_llm_failure_occurred",
        } <= state["routing"].keys()
        assert {"kind", "text", "should_persist_memory", "closing_hint_shown"} <= state["response"].keys()
        diagnostics = state["diagnostics"]
        assert diagnostics.keys() >= GATE | LOADED | FACTS | RULES | {"turn_total_ms"}
        assert diagnostics["semantic_writes"] == 1
        assert all(
            value == round(value, 2) >= 0 for name, value in diagnostics.items() if name.endswith("_ms")
        )


async def test_a_crisis_turn_has_the_diagnostics_of_its_nodes_alone(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I want to kill myself")
        diagnostics = (await talk.state())["diagnostics"]
        assert diagnostics["crisis_level"] == 2
        assert diagnostics.keys() >= GATE | {"turn_total_ms", "extract_facts_ms", "extract_procedural_ms"}
        assert diagnostics.keys().isdisjoint(LOADED), "memory was not read"


async def test_the_two_extractors_write_different_keys(tmp_path: Path) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I love tea. Please keep your answers short from now on.")
        updates = await written(talk)
        facts = updates["extract_semantic_facts"]["diagnostics"].keys()
        rules = updates["extract_procedural_rules"]["diagnostics"].keys()
        assert facts >= FACTS
        assert rules >= RULES
        assert facts.isdisjoint(rules)


async def test_a_turn_writes_only_what_it_changes_and_begins_without_the_last_ones_crisis(
    tmp_path: Path,
) -> None:
    async with open_companion(tmp_path) as talk:
        await talk.say("I want to kill myself")
        await talk.say("No, I am safe and I do not want to die.")
        updates = await written(talk)
        assert len(updates["crisis_gate"]["history"]) == 1
        assert updates["crisis_gate"]["progress"].keys() == {"turn_count", "crisis_level_max"}
        state = await talk.state()
        assert (state["crisis"]["level"], state["routing"]["route"]) == (0, "therapeutic")
        assert state["routing"]["response_style"] != "safety_check"
        assert (state["progress"]["turn_count"], state["progress"]["crisis_level_max"]) == (2, 2)


async def test_an_empty_answer_is_not_taken_into_the_history() -> None:
    state = {"crisis": {"level": 0}, "routing": {"route": "therapeutic"}, "response": {"text": " "}}
    update = (await finalize_turn(state, context(received_at=1.0))).update
    assert update.keys().isdisjoint({"history", "transcript"})
    said = (await finalize_turn({**state, "response": {"text": "Hello."}}, context())).update
    assert [one["content"] for one in said["history"]] == ["Hello."]


async def test_no_turn_runs_without_an_owner_of_its_memory() -> None:
    flow = WorkflowContext(llm_client=ScriptedLlm.echo(), memory_store=NoMemory())
    with pytest.raises(NoOwner):
        await crisis_gate({}, context(workflow=flow, scope=scope(author=Author(id=""))))
    with pytest.raises(NoWorkflow):
        await crisis_gate({}, context())
