"""A playbook is an agent of a gateway: it asks, waits for days over restarts, and continues by itself.

Covers: pipeline/playbooks/compiling.py, pipeline/playbooks/steps.py, pipeline/playbooks/sub_agent.py,
pipeline/playbooks/starting.py, pipeline/playbooks/run_record.py, gateway/interactions/word_questions.py,
gateway/ingress/answers.py, gateway/interactions/question_expiry.py, pipeline/graph_book.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigurationProblems
from gateway.turns.run_codec import runs_of
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalRequired, ErrorEvent
from pipeline.graph_book import document_text
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import PlaybookRun, playbook_record
from tests.pipeline.playbooks.documents import agent, node, playbook, route, trigger, way
from tests.pipeline.workflows.documents import Echo
from tests.support.channel import MemoryChannel
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.playbook_child import DAY, HELP, ONBOARDING, PLAN, scripted
from tests.support.posting_channel import MemoryPosts
from voice.transcription.scripted_transcriber import ScriptedTranscriber

pytestmark = pytest.mark.usefixtures("days_pass_quickly")

_ONBOARDING = Path("examples/workflows/onboarding.playbook.json")
_RESEARCH = Path("examples/workflows/research.playbook.json")


def _agent(folder: Path, found: dict[str, Any], name: str = "own.json") -> str:
    path = folder / name
    path.write_text(json.dumps(found), "utf-8")
    return f'agent.graph="{path}"'


async def _record(harness: GatewayHarness, source: str | dict[str, Any]) -> PlaybookRun:
    """The public record of the only run in the store."""
    ((_, records),) = runs_of(await harness.records()).items()
    return playbook_record(read_playbook(source), records)


async def _said(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def test_the_onboarding_example_takes_three_days_over_restarts(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_gateway(tmp_path, ONBOARDING, llm=scripted(PLAN, "MET"), clock=clock) as harness:
        asked = await _said(harness, "I am new here")
        assert asked.endswith("first three days.\n\nWhat may I call you?")
        assert await _said(harness, "Ada") == f"{PLAN}\n\nI ask you tomorrow how it goes."
    await clock.advance(DAY - 60)
    async with open_gateway(tmp_path, ONBOARDING, clock=clock) as harness:
        assert harness.channel.sent == []
        await clock.advance(61)
        await harness.channel.until(lambda: harness.channel.sent)
        assert harness.channel.sent[-1].text == "Ada, did you find everything?\n(yes / no)"
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    async with open_gateway(tmp_path, ONBOARDING, llm=scripted(HELP), clock=clock) as harness:
        await harness.channel.bring(answer_to(question.id, "no"))
        assert (await harness.channel.reply("m_answer")).text == f"{HELP}\n\nI write again in two days."
    # The time comes while no process runs.
    await clock.advance(3 * DAY)
    async with open_gateway(tmp_path, ONBOARDING, clock=clock) as harness:
        await harness.channel.until(lambda: harness.channel.sent)
        assert harness.channel.sent[-1].text.startswith("Your first three days are over, Ada.")
        record = await _record(harness, document_text(_ONBOARDING))
        users = [one.body["text"] for one in await harness.records("user")]
    assert record.status == "completed"
    assert record.completed[-3:] == ("both", "two_days", "bye")
    assert users == ["I am new here", "Ada", "no"]


async def test_the_research_example_asks_three_agents_at_once_and_merges(tmp_path: Path) -> None:
    source = document_text(_RESEARCH)
    llm = ScriptedLlm([ScriptedAnswer.of(text) for text in ("one", "two", "three", "Whole.", "MET")])
    async with open_gateway(tmp_path, f'agent.graph="{_RESEARCH}"', llm=llm) as harness:
        assert await _said(harness, "Why is the sky blue?") == "Whole."
        record = await _record(harness, source)
    assert record.status == "completed"
    merged = llm.requests[3].messages[-1].content
    assert all(f"{name}:\n" in merged for name in ("Facts", "Doubts", "Examples"))


def _waits(**config: Any) -> dict[str, Any]:
    nodes = [trigger(), node("wait", "w", amount=1, unit="h", **config), agent("a", "back to {{trigger}}")]
    return playbook(*nodes, edges=route("start > w > a"))


async def test_a_waiting_run_does_not_block_the_chat(tmp_path: Path) -> None:
    clock, source = ManualClock(), _waits()
    async with open_gateway(tmp_path, _agent(tmp_path, source), clock=clock, model=Echo({})) as harness:
        assert await _said(harness, "one") == "I continue in 1 hour."
        await clock.advance(1_800)
        assert await _said(harness, "two") == "I continue in 1 hour."
        assert "Runs that wait for a time: 2" in await _said(harness, "/status")
        await clock.advance(1_801)
        await harness.channel.until(lambda: harness.channel.sent[-1].text == "back to one")
        await clock.advance(1_801)
        await harness.channel.until(lambda: harness.channel.sent[-1].text == "back to two")


async def test_a_wait_shows_no_question(tmp_path: Path) -> None:
    clock, channel = ManualClock(), MemoryChannel()
    async with open_gateway(tmp_path, _agent(tmp_path, _waits()), clock=clock, channel=channel) as harness:
        accepted = await channel.say("one")
        await channel.reply(accepted.message_id)
        events = channel.events_of(accepted.message_id)
        assert not [one for one in events if isinstance(one, ApprovalRequired)]
        (waits,) = await harness.store.pending_interactions(THREAD, now=0.0)
        assert (waits.options, waits.asks, waits.expires_at) == ((), "nothing", clock.now() + 3_600)


async def test_stop_ends_a_wait_and_a_question(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_gateway(tmp_path, _agent(tmp_path, _waits()), clock=clock) as harness:
        await _said(harness, "one")
        assert await _said(harness, "/stop") == "Stopped 1 message."
        assert await harness.store.pending_interactions(THREAD, now=clock.now()) == ()
        assert await _said(harness, "/stop") == "There is nothing to stop."
        await clock.advance(7_200)
        assert await _said(harness, "two") == "I continue in 1 hour."
        assert not [one for one in harness.channel.sent if one.text == "back to one"]


def _asks(**config: Any) -> dict[str, Any]:
    nodes = [trigger(), node("user-input", "ask", prompt="Which?", **config), agent("a", "[{{ask.result}}]")]
    return playbook(*nodes, edges=route("start > ask > a"))


async def test_the_next_message_answers_a_question_that_takes_any_words(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _agent(tmp_path, _asks()), model=Echo({})) as harness:
        assert await _said(harness, "the first 1") == "Which?"
        assert await _said(harness, "The red one,\nplease. " + "x" * 300) == (
            "[The red one,\nplease. " + "x" * 300 + "]"
        )
        # It is answered, so this begins a new run.
        assert await _said(harness, "another") == "Which?"


async def test_only_messages_after_the_question_answer_it(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _agent(tmp_path, _asks()), model=Echo({})) as harness:
        first, second = await harness.channel.say("one"), await harness.channel.say("two")
        assert (await harness.channel.reply(first.message_id)).text == "Which?"
        assert (await harness.channel.reply(second.message_id)).text == "Which?"
        assert await _said(harness, "blue") == "[blue]"
        assert await _said(harness, "red") == "[red]"


async def test_a_command_is_no_answer(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _agent(tmp_path, _asks()), model=Echo({})) as harness:
        await _said(harness, "go")
        assert "Agent:" in await _said(harness, "/status")
        assert "There is no command" in await _said(harness, "/nothing")
        assert len(await harness.store.pending_interactions(THREAD, now=0.0)) == 1


async def test_a_voice_note_answers_a_question_that_takes_any_words(tmp_path: Path) -> None:
    hears = ScriptedTranscriber.always("The red one.")
    async with open_gateway(
        tmp_path, _agent(tmp_path, _asks()), transcriber=hears, model=Echo({})
    ) as harness:
        await _said(harness, "go")
        answered = await harness.channel.say("", voice=b"OggS")
        assert (await harness.channel.reply(answered.message_id)).text == "[The red one.]"


async def test_words_answer_on_a_posting_channel_and_only_those_of_who_was_asked(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, _agent(tmp_path, _asks()), posts=posts, model=Echo({})):
        await posts.receive("go", native_id="n1", chat="r1", author="ann", private=False)
        await posts.until(lambda: "Which?" in posts.texts("r1"))
        await posts.receive("mine", native_id="n2", chat="r1", author="bob", private=False)
        await posts.until(lambda: posts.texts("r1").count("Which?") == 2)
        await posts.receive("green", native_id="n3", chat="r1", author="ann", private=False)
        await posts.until(lambda: "[green]" in posts.texts("r1"))
        assert posts.texts("r1").count("Which?") == 2


async def test_options_leave_other_words_to_the_chat(tmp_path: Path) -> None:
    source = _asks(options=["red", "blue"])
    async with open_gateway(tmp_path, _agent(tmp_path, source), model=Echo({})) as harness:
        assert await _said(harness, "go") == "Which?\n(red / blue)"
        assert await _said(harness, "what do you mean?") == "Which?\n(red / blue)"
        pending = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(pending[0].id, "blue"))
        assert (await harness.channel.reply("m_answer")).text == "[blue]"


async def test_off_the_record_a_playbook_cannot_wait(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _agent(tmp_path, _waits())) as harness:
        await harness.channel.say("/otr")
        accepted = await harness.channel.say("one")
        ended = await harness.channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.message == "Off the record nothing is stored, so the playbook cannot wait here."


async def test_a_failed_playbook_says_why(tmp_path: Path) -> None:
    nodes = [trigger(), agent("a", tools={"groups": ["attic"]})]
    source = playbook(*nodes, edges=route("start > a"))
    async with open_gateway(tmp_path, _agent(tmp_path, source)) as harness:
        accepted = await harness.channel.say("go")
        ended = await harness.channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.message == "The tools attic are not available here."
        assert (await _record(harness, source)).status == "failed"


async def test_stop_aborts_a_running_playbook(tmp_path: Path) -> None:
    slow = ScriptedLlm.echo(delay_s=30.0)
    source = playbook(trigger(), agent("a"), agent("b"), edges=[*route("start > a"), *route("start > b")])
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=slow) as harness:
        accepted = await harness.channel.say("go")
        await harness.channel.until(lambda: len(slow.requests) == 2)
        await harness.channel.say("/stop")
        assert isinstance(await harness.channel.terminal(accepted.message_id), ErrorEvent)
        record = await _record(harness, source)
    assert (record.status, record.events[-1].type) == ("aborted", "workflow_aborted")


async def test_a_sub_workflow_is_a_file_beside_the_document(tmp_path: Path) -> None:
    child = playbook(trigger(), agent("c", "child {{trigger}}"), edges=route("start > c"))
    (tmp_path / "child.playbook.json").write_text(json.dumps(child), "utf-8")
    nodes = [trigger(), node("sub-workflow", "sub", workflow="child.playbook.json")]
    nodes = [*nodes, agent("b", "[{{sub.result}}]")]
    source = playbook(*nodes, edges=route("start > sub > b"))
    async with open_gateway(tmp_path, _agent(tmp_path, source), model=Echo({})) as harness:
        assert await _said(harness, "x") == "[child x]"


async def test_every_mistake_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    nodes = [trigger(), node("wait", "w", amout=1), node("transfer", "t", workflow="none.json")]
    wrong = playbook(*nodes, edges=[*route("start > w"), way("start > x")])
    with pytest.raises(ConfigurationProblems) as raised:
        async with open_gateway(tmp_path, _agent(tmp_path, wrong)):
            pass
    words = str(raised.value)
    assert "node w: config.amout: there is no such field; did you mean amount?" in words
    assert "edges[1] (start -> x): target: there is no node 'x'" in words


async def test_an_agent_starts_a_playbook_and_the_chat_continues_while_it_waits(tmp_path: Path) -> None:
    source = _waits(message="I come back in an hour.") | {"startedBy": "agent", "description": "Reminds."}
    call = ToolCall(id="c1", name="start_workflow", arguments='{"message": "the tea"}')
    llm = ScriptedLlm(
        [ScriptedAnswer.calling(call), ScriptedAnswer.of("All is well."), ScriptedAnswer.of("Tea!")]
    )
    clock = ManualClock()
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=llm, clock=clock) as harness:
        assert await _said(harness, "remind me of the tea") == "I come back in an hour."
        assert await _said(harness, "how are you?") == "All is well."
        await clock.advance(3_601)
        await harness.channel.until(lambda: harness.channel.sent[-1].text == "Tea!")
    assert llm.requests[-1].messages[-1].content == "back to the tea"
