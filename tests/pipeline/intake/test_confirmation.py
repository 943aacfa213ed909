"""Asking back: when, what, and where each answer leads."""

from __future__ import annotations

import pytest

from pipeline.domain.messages import Speech
from pipeline.graph.definition.decisions import Next, Pause
from pipeline.graph.definition.spec import END
from pipeline.intake.confirmation import after_intake, set_aside
from pipeline.intake.node import intake_node, message_node
from pipeline.runtime.context import RunContext
from pipeline.runtime.settings import PipelineSettings
from tests.support.contexts import context as any_context

intake = intake_node(lambda _context, _state: 0)


def context(text: str, speech: Speech | None, *, confirm_below: float = 0.5) -> RunContext:
    return any_context(text, speech=speech, settings=PipelineSettings(confirm_below=confirm_below))


@pytest.mark.parametrize(
    ("speech", "confirm_below", "asks"),
    [
        (None, 0.5, False),
        (Speech(confidence=0.49), 0.5, True),
        (Speech(confidence=0.5), 0.5, False),
        (Speech(confidence=0.01), 0.0, False),
        (Speech(confidence=0.99), 1.0, True),
    ],
)
async def test_only_words_that_were_hardly_understood_are_asked_about(
    speech: Speech | None, confirm_below: float, *, asks: bool
) -> None:
    result = await intake({}, context("buy milk", speech, confirm_below=confirm_below))
    assert isinstance(result.decision, Pause if asks else Next)
    if isinstance(result.decision, Pause):
        assert result.decision.prompt == "I heard: “buy milk”"
        assert result.decision.options == ("Send", "Edit", "Retry")


async def test_what_a_note_replies_to_is_shown_as_a_quotation_and_not_as_heard() -> None:
    result = await intake({}, context("> shall we go?\n\nby milk", Speech(confidence=0.1)))
    assert isinstance(result.decision, Pause)
    assert result.decision.prompt == "I heard:\n\n> shall we go?\n\nby milk"


@pytest.mark.parametrize(
    ("speech", "choose_from_s", "asks"),
    [
        (Speech(seconds=119.9), 120.0, False),
        (Speech(seconds=120.0), 120.0, True),
        (Speech(seconds=3.0, forwarded=True), 120.0, True),
        (Speech(seconds=500.0, forwarded=True), 0.0, False),
        (None, 120.0, False),
    ],
)
async def test_the_sender_of_a_long_or_forwarded_note_chooses_what_is_done_with_it(
    speech: Speech | None, choose_from_s: float, *, asks: bool
) -> None:
    settings = PipelineSettings(choose_from_s=choose_from_s)
    result = await intake({}, any_context("buy milk", speech=speech, settings=settings))
    assert isinstance(result.decision, Pause if asks else Next)
    if isinstance(result.decision, Pause):
        assert result.decision.prompt == "The voice note says:\n\nbuy milk\n\nWhat shall I do with it?"
        assert result.decision.options == ("Answer it", "Only the transcript", "Sum it up")


async def test_a_summary_is_offered_only_where_the_graph_can_write_one() -> None:
    result = await message_node({}, any_context("buy milk", speech=Speech(forwarded=True)))
    assert isinstance(result.decision, Pause)
    assert result.decision.options == ("Answer it", "Only the transcript")


async def test_words_that_were_hardly_understood_are_confirmed_whatever_their_length() -> None:
    unclear = Speech(confidence=0.1, seconds=500.0, forwarded=True)
    result = await intake({}, context("buy milk", unclear))
    assert isinstance(result.decision, Pause)
    assert result.decision.options == ("Send", "Edit", "Retry")


async def test_only_the_transcript_means_that_nothing_else_is_done() -> None:
    state = {"answers": {"intake": {"choice": "Only the transcript"}}}
    result = await set_aside(state, context("buy milk", Speech(forwarded=True)))
    assert result.update["agent"]["answer"] == "The transcript is above. I did nothing else with it."


@pytest.mark.parametrize(
    ("choice", "target"),
    [
        (None, "agent"),
        ("Send", "agent"),
        ("Answer it", "agent"),
        ("Sum it up", "agent"),
        ("Edit", "set_aside"),
        ("Retry", "set_aside"),
        ("Only the transcript", "set_aside"),
    ],
)
def test_only_what_was_confirmed_reaches_the_agent(choice: str | None, target: str) -> None:
    state = {} if choice is None else {"answers": {"intake": {"choice": choice}}}
    assert after_intake(state) == target != END


async def test_edit_gives_the_words_to_copy_even_with_fences_in_them() -> None:
    state = {"answers": {"intake": {"choice": "Edit"}}}
    result = await set_aside(state, context("```x```", Speech(confidence=0.1)))
    assert result.update["agent"]["answer"].endswith("\n````\n```x```\n````")


async def test_retry_asks_to_say_it_again_and_repeats_nothing() -> None:
    state = {"answers": {"intake": {"choice": "Retry"}}}
    result = await set_aside(state, context("misheard", Speech(confidence=0.1)))
    assert "say it again" in result.update["agent"]["answer"]
    assert "misheard" not in result.update["agent"]["answer"]
