"""In a running gateway, facts of a conversation that has read something confidential are not kept.

Covers: pipeline/tools/judged_facts.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.shield_talk import say, turn

_SETTINGS = ("agent.remember_facts=true", "llm.context_tokens=2400", "llm.max_tokens=200")


class _Model(ScriptedLlm):
    """A model that extracts and summarises, and says otherwise what its script says."""

    def _next(self, request: LlmRequest) -> ScriptedAnswer:
        words = " ".join(message.content for message in request.messages)
        if "list lasting facts about the user" in words:
            return ScriptedAnswer.of("- Ada lives with diabetes")
        if "summar" in words.casefold():
            return ScriptedAnswer.of("They talked.")
        return super()._next(request)


def _books(data: Path) -> list[str]:
    return [path.read_text() for path in data.glob("workspace/people/*/MEMORY.md")]


@pytest.mark.parametrize(("name", "kept"), [("garden.txt", 1), ("medical-report.txt", 0)])
async def test_facts_are_kept_of_what_may_go_to_the_memory(tmp_path: Path, name: str, kept: int) -> None:
    files = tmp_path / "workspace" / "files"
    files.mkdir(parents=True)
    (files / name).write_text("Ada has diabetes.")
    llm = _Model(turn("files", "read_file", path=f"shared/{name}"))
    async with open_gateway(tmp_path, *_SETTINGS, llm=llm) as harness:
        await say(harness, "read it")
        for number in range(12):
            await say(harness, f"{number}: {'tell me more ' * 60}")
        asked = [one for one in llm.requests if "list lasting facts" in str(one.messages)]
    assert asked, "the conversation was not long enough"
    assert len(_books(tmp_path)) == kept
