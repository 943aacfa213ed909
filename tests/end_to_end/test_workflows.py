"""A workflow document is an agent of a running gateway: message in, approval buttons, answer out.

Covers: pipeline/workflows/compiling.py, pipeline/workflows/steps.py, pipeline/workflows/agent_step.py,
pipeline/workflows/run_record.py, pipeline/graph/execution/held_back.py, pipeline/graph_book.py,
gateway/interactions/answer_matching.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigurationProblems
from gateway.storage.codec import resume_entry
from gateway.turns.run_codec import runs_of
from pipeline.domain.events import ApprovalRequired, ErrorEvent, LlmToken
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.end_to_end.test_access import press_of
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.all_platforms import open_all_platforms
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.platform_acts import ask, bot_said, press
from tests.support.posting_channel import MemoryPosts
from tests.support.workflow_child import DRAFT, TRIAGE, triage_model
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_TRIAGE_DOCUMENT = Path("examples/workflows/triage.workflow.json").read_text("utf-8")
BACK = "I want my money back"


def _agent(folder: Path, found: dict[str, Any]) -> str:
    path = folder / "own.json"
    path.write_text(json.dumps(found), "utf-8")
    return f'agent.graph="{path}"'


async def _record(harness: GatewayHarness, source: str | dict[str, Any]) -> WorkflowRun:
    """The public record of the only run in the store."""
    ((_, records),) = runs_of(await harness.records()).items()
    return run_record(read_workflow(source), records)


async def _asked(harness: GatewayHarness, text: str = BACK) -> str:
    """A message whose run has asked; the id of its oldest question."""
    accepted = await harness.channel.say(text)
    await harness.channel.reply(accepted.message_id)
    return (await harness.store.pending_interactions(THREAD, now=0.0))[0].id


async def test_the_triage_example_asks_with_buttons_and_answers_on_every_platform(tmp_path: Path) -> None:
    llm = triage_model(*["refund", DRAFT, "question", "From 9 to 18."] * 3)
    async with open_all_platforms(tmp_path, TRIAGE, llm=llm) as everywhere:
        for platform, chat in everywhere.private():
            await ask(platform, chat, BACK, "Shall this go to the customer?")
            before = len(platform.bot_texts(chat))
            await press(platform, chat, "approve")
            await platform.until(lambda: bot_said(platform, chat, before, DRAFT))  # noqa: B023 - used at once
            await ask(platform, chat, "When are you open?", "From 9 to 18.")
    sorted_, written = llm.requests[0].messages, llm.requests[1].messages
    assert "bicycle shop" in sorted_[0].content
    assert sorted_[1].content.startswith(f"A customer writes: {BACK}\n\nWhat does")
    assert written[1].content.startswith(f"A customer writes: {BACK}")


async def test_the_public_record_of_a_run_in_the_store_is_whole_after_its_end(tmp_path: Path) -> None:
    source = _TRIAGE_DOCUMENT
    async with open_gateway(tmp_path, TRIAGE, llm=triage_model("refund", DRAFT)) as harness:
        question = await _asked(harness)
        record = await _record(harness, source)
        assert (record.status, record.current_node) == ("paused", "review")
        await harness.channel.bring(answer_to(question, "approve"))
        assert (await harness.channel.reply("m_answer")).text == DRAFT
        record = await _record(harness, source)
    assert (record.status, record.current_node, record.waiting_for_input) == ("completed", None, False)
    assert [(entry.node, entry.type) for entry in record.logs] == [
        ("start", "step_start"),
        ("start", "start_prompt"),
        ("sort", "step_start"),
        ("sort", "llm_response"),
        ("kind", "step_start"),
        ("kind", "logic_check"),
        ("draft", "step_start"),
        ("draft", "llm_response"),
        ("review", "step_start"),
        ("review", "wait_input"),
        ("review", "input_received"),
    ]
    expected = {"start": BACK, "sort": "refund", "kind": "refund", "draft": DRAFT, "previous_output": DRAFT}
    assert record.state.items() >= expected.items()
    assert record.plain()["logs"][0]["timestamp"].endswith("Z")


async def test_a_short_run_is_recorded_with_its_last_steps_too(tmp_path: Path) -> None:
    source = document(start(), agent("a"), routes=[way("start > a")])
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=triage_model("yes")) as harness:
        accepted = await harness.channel.say("hello")
        assert (await harness.channel.reply(accepted.message_id)).text == "yes"
        record = await _record(harness, source)
    assert record.state == {"start": "hello", "previous_output": "yes", "a": "yes"}


async def test_a_note_is_typed_behind_the_word_and_reaches_the_next_agent(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "Shorter.")
    async with open_gateway(tmp_path, TRIAGE, llm=llm) as harness:
        await _asked(harness)
        answered = await harness.channel.say("Reject: it is\ntoo long")
        said = (await harness.channel.reply(answered.message_id)).text
        assert said.startswith("Shall this go to the customer?\n\nShorter.")
        record = await _record(harness, _TRIAGE_DOCUMENT)
    assert record.state["review_approval"] == {"decision": "reject", "note": "it is\ntoo long"}
    assert "What the reviewer said: it is\ntoo long" in llm.requests[-1].messages[-1].content


async def test_a_new_message_that_begins_with_the_word_is_a_message(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "other", "A colleague will write.")
    async with open_gateway(tmp_path, TRIAGE, llm=llm) as harness:
        await _asked(harness)
        other = await harness.channel.say("approve my account please")
        assert (await harness.channel.reply(other.message_id)).text == "A colleague will write."
        assert len(await harness.store.pending_interactions(THREAD, now=0.0)) == 1


async def test_a_voice_note_answers_with_a_note(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "Shorter.")
    hears = ScriptedTranscriber.always("Reject, too long.")
    async with open_gateway(tmp_path, TRIAGE, llm=llm, transcriber=hears) as harness:
        await _asked(harness)
        answered = await harness.channel.say("", voice=b"OggS")
        assert "Shorter." in (await harness.channel.reply(answered.message_id)).text
    assert "What the reviewer said: too long" in llm.requests[-1].messages[-1].content


async def test_only_the_named_people_may_answer(tmp_path: Path) -> None:
    nodes = (start(), agent("a"), approval("ok", prompt="Good?", approvers=["memory:boss"]))
    source = document(*nodes, routes=[way("start > a"), way("a > ok"), way("ok > a", "reject")])
    posts = MemoryPosts()
    async with open_gateway(
        tmp_path, _agent(tmp_path, source), llm=triage_model("yes"), posts=posts
    ) as harness:
        await posts.receive("go", native_id="n1", chat="r1", author="ann", private=False)
        await posts.until(lambda: any(one.buttons == ("approve", "reject") for one in posts.messages))
        ((question,),) = [await harness.store.pending_interactions(posts.thread("r1").encode(), now=0.0)]
        assert question.allowed_users == ("boss",)
        mine = await posts.bring(press_of(posts, question.id, author="ann", chat="r1", private=False))
        assert mine.status == "refused"
        await posts.bring(press_of(posts, question.id, author="boss", chat="r1", private=False))
        await posts.until(lambda: "yes" in posts.texts("r1"))
        ((_, records),) = runs_of(await harness.records(thread=posts.thread("r1").encode())).items()
        assert [one["by"] for one in records if one is not None and one["do"] == "answer"] == ["boss"]
    # The run continues as the person who began it.
    pressed = press_of(posts, question.id, author="boss", chat="r1")
    entry = resume_entry(pressed, question)
    assert (entry.body["author"], entry.body["by"]) == ("ann", "boss")


async def test_two_approvals_are_both_asked_and_answered_in_any_order(tmp_path: Path) -> None:
    nodes = (start(), approval("one", prompt="One?"), approval("two", prompt="Two?"), agent("a"), agent("b"))
    routes = [way("start > one"), way("start > two"), way("one > a", "approve"), way("two > b", "approve")]
    llm = triage_model("second", "first")
    async with open_gateway(tmp_path, _agent(tmp_path, document(*nodes, routes=routes)), llm=llm) as harness:
        accepted = await harness.channel.say("go")
        await harness.channel.reply(accepted.message_id)
        asked = [
            one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
        ]
        assert [one.tool_name for one in asked] == ["one", "two"]
        await harness.channel.bring(answer_to(asked[1].interaction_id, "approve", name="second"))
        again = await harness.channel.reply("m_second")
        assert again.text.startswith("One?")
        await harness.channel.bring(answer_to(asked[0].interaction_id, "approve", name="first"))
        assert (await harness.channel.reply("m_first")).text == "second\n\nfirst"


async def test_stop_aborts_a_run_with_its_branches(tmp_path: Path) -> None:
    slow = ScriptedLlm.echo(delay_s=30.0)
    routes = [way("start > a"), way("start > b")]
    source = document(start(), agent("a"), agent("b"), routes=routes)
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=slow) as harness:
        accepted = await harness.channel.say("go")
        await harness.channel.until(lambda: len(slow.requests) == len(routes))
        await harness.channel.say("/stop")
        ended = await harness.channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.code == "stopped"
        assert (await _record(harness, source)).status == "failed"


async def test_a_failed_branch_ends_the_run_with_its_error_and_keeps_the_others(tmp_path: Path) -> None:
    broken = agent("bad", tools={"groups": ["attic"]})
    source = document(start(), broken, agent("b"), routes=[way("start > bad"), way("start > b")])
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=triage_model("fine")) as harness:
        accepted = await harness.channel.say("go")
        ended = await harness.channel.terminal(accepted.message_id)
        assert isinstance(ended, ErrorEvent)
        assert ended.message == "The tools attic are not available here."
        record = await _record(harness, source)
        shown = [
            one.text for one in harness.channel.events_of(accepted.message_id) if isinstance(one, LlmToken)
        ]
    assert (record.status, record.state["b"]) == ("failed", "fine")
    assert "".join(shown).strip() == "fine"


async def test_every_mistake_of_a_document_is_a_problem_of_the_configuration(tmp_path: Path) -> None:
    wrong = document(start(), agent("a", userPromt="x"), routes=[way("start > b")])
    with pytest.raises(ConfigurationProblems) as raised:
        async with open_gateway(tmp_path, _agent(tmp_path, wrong)):
            pass
    words = str(raised.value)
    assert "node a: data.userPromt: there is no such field" in words
    assert "connections[0] (start -> b): target: there is no node 'b'" in words


async def test_an_older_document_is_run_as_a_new_one(tmp_path: Path) -> None:
    old = document(
        start(),
        {"id": "if", "type": "if", "data": {"condition": "pay"}},
        {"id": "ask", "type": "input", "data": {"prompt": "Pay?"}},
        agent("a"),
        routes=[way("start > if"), way("if > ask", "true"), way("ask > a", "approve")],
    )
    async with open_gateway(tmp_path, _agent(tmp_path, old), llm=triage_model("paid")) as harness:
        question = await _asked(harness, "Please PAY Ann")
        await harness.channel.bring(answer_to(question, "approve"))
        assert (await harness.channel.reply("m_answer")).text == "paid"


async def test_an_agent_answers_for_itself_and_has_no_conversation(tmp_path: Path) -> None:
    source = document(start(), agent("a"), routes=[way("start > a")])
    llm = ScriptedLlm([ScriptedAnswer.of("one"), ScriptedAnswer.of("two")])
    async with open_gateway(tmp_path, _agent(tmp_path, source), llm=llm) as harness:
        for text in ("first", "second"):
            accepted = await harness.channel.say(text)
            await harness.channel.reply(accepted.message_id)
    assert [message.content for message in llm.requests[1].messages[1:]] == ["second"]


async def test_a_workflow_that_asks_a_person_cannot_be_a_gate(tmp_path: Path) -> None:
    gate = _agent(tmp_path, json.loads(_TRIAGE_DOCUMENT)).replace("agent.graph", "agent.gate")
    with pytest.raises(ConfigurationProblems, match="graph triage: asks a person"):
        async with open_gateway(tmp_path, gate):
            pass
