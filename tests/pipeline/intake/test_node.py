"""The intake node: always `next`, never a model call, and diagnostics that are true."""

from __future__ import annotations

import pytest

from pipeline.graph.decisions import Next
from pipeline.intake.node import intake
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from tests.support.contexts import context

LLM = ScriptedLlm.echo()


def _context(text: str, *history: str, token_ceiling: int = 4096) -> RunContext:
    return context(text, history, llm=LLM, settings=PipelineSettings(token_ceiling=token_ceiling))


async def test_a_clean_message_passes_with_every_diagnostic_at_rest() -> None:
    result = await intake({}, _context("hello", "a", "b"))
    assert isinstance(result.decision, Next)
    assert result.update["intake"] == {
        "sanitized": False,
        "turns_kept": 1,
        "messages_evicted": 0,
        "tokens_before": 10,
        "tokens_after": 10,
    }


async def test_a_cleaned_message_is_told_so() -> None:
    result = await intake({}, _context("nul\x00byte"))
    assert result.update["intake"]["sanitized"] is True


@pytest.mark.parametrize("window", [256, 300, 400])
async def test_what_is_counted_as_evicted_is_what_is_missing(window: int) -> None:
    history = tuple("x" * 150 for _ in range(20))
    diagnostics = (await intake({}, _context("hello", *history, token_ceiling=window))).update["intake"]
    assert diagnostics["messages_evicted"] > 0
    assert 2 * diagnostics["turns_kept"] + diagnostics["messages_evicted"] == 20
    assert diagnostics["tokens_after"] <= window < diagnostics["tokens_before"]


async def test_the_model_is_never_asked() -> None:
    before = len(LLM.requests)
    await intake({}, _context("hello"))
    assert len(LLM.requests) == before
