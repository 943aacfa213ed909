"""The companion's graph in a running gateway: modes, exercises, crises, and what comes after the answer.

Covers: pipeline/companion/graph.py, pipeline/companion/mode_nodes.py, pipeline/companion/safety_nodes.py,
pipeline/companion/turn_end.py, pipeline/companion/reply.py, gateway/turns/after_answer.py.
"""

from __future__ import annotations

from pathlib import Path

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.companion import open_companion

PARENT = {
    "crisis_gate",
    "crisis_response",
    "crisis_log",
    "load_memory",
    "therapeutic_subgraph",
    "finalize_turn",
    "extract_semantic_facts",
    "extract_procedural_rules",
}


async def test_a_message_passes_the_gate_memory_one_mode_and_both_extractors(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("That sounds hard.")])
    async with open_companion(tmp_path, llm=llm) as talk:
        assert await talk.say("I can't calm down, nothing is helping") == "That sounds hard."
        path = await talk.path()
        assert path[:2] == ["crisis_gate", "load_memory"]
        assert path[2] == "therapeutic_subgraph.dispatcher"
        assert path[3:6] == ["therapeutic_subgraph.supportive", "therapeutic_subgraph", "finalize_turn"]
        assert set(path[6:]) == {"extract_semantic_facts", "extract_procedural_rules"}
