"""Tools, from a message to the stored answer: loading, calls, approvals by the author alone, crashes.

Covers: pipeline/agent/tool_node.py, pipeline/tools/gate.py.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.channels.timeline import StoreTimeline
from gateway.storage.ports import Interaction
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ActionCompleted, ApprovalRequired, ApprovalResolved, ShieldVerdict
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.channel import types_of
from tests.support.harness import THREAD, GatewayHarness, open_gateway

_OPTIONS = ("Allow", "Deny", "Allow for this conversation")

LOAD_FILES = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["files"]}'))


def _asking(name: str, call_id: str = "c", **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=call_id, name=name, arguments=json.dumps(arguments)))


def _llm(*answers: ScriptedAnswer | str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in answers])


def _writing() -> ScriptedLlm:
    return _llm(LOAD_FILES, _asking("write_file", path="a.txt", text="hello"), "Done.")


def _written(data: Path) -> list[str]:
    return [path.read_text() for path in data.glob("workspace/people/*/files/a.txt")]


def _notes(data: Path) -> list[Path]:
    return list(data.glob("workspace/people/*/notes/*"))


async def _question(harness: GatewayHarness) -> Interaction:
    """The question that the turn asks, once it is shown."""
    await harness.channel.until(
        lambda: any(isinstance(one, ApprovalRequired) for one in harness.channel.events)
    )
    (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
    return question


def _press(question: Interaction, choice: str, *, name: str = "press") -> ApprovalReply:
    return ApprovalReply(
        message_id=f"m_{name}",
        native_id=name,
        thread=ThreadKey.decode(question.thread),
        author=Author(id="owner"),
        received_at=1_700_000_000.0,
        interaction_id=button_handle(question.id),
        choice="",
        option=question.options.index(choice),
    )


async def test_a_turn_loads_a_group_uses_its_tool_and_answers(tmp_path: Path) -> None:
    loading = ScriptedAnswer.calling(
        ToolCall(id="l", name="load_tools", arguments='{"groups": ["system"]}'), text="Let me see."
    )
    llm = _llm(loading, _asking("calculate", expression="6 * 7"), "It is 42.")
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("what is six times seven?")
        reply = await harness.channel.reply(said.message_id)
        events = harness.channel.events_of(said.message_id)
        (answer,) = await harness.records("assistant")
    assert "It is 42." in reply.text
    assert [tool.name for tool in llm.requests[0].tools] == ["load_tools"]
    assert {"load_tools", "calculate", "current_time"} <= {tool.name for tool in llm.requests[-1].tools}
    assert llm.requests[-1].messages[-1].content == "6 * 7 = 42"
    shown = [one for one in types_of(events) if one.startswith(("action", "shield"))]
    assert shown == ["action_started", "shield_verdict", "action_completed"]
    assert "6 * 7 = 42" in json.dumps(answer.body)


async def test_a_note_is_kept_without_asking_and_read_again_later(tmp_path: Path) -> None:
    load = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["notes"]}'))
    llm = _llm(
        load, _asking("write_note", title="Bread", text="buy rye"), "Kept.",
        load, _asking("read_notes", title="bread"), "Rye.",
    )  # fmt: skip
    async with open_gateway(tmp_path, llm=llm) as harness:
        for text in ("note it", "and?"):
            said = await harness.channel.say(text)
            await harness.channel.reply(said.message_id)
        assert not any(isinstance(one, ApprovalRequired) for one in harness.channel.events)
    results = [request.messages[-1].content for request in llm.requests]
    assert "kept" in results[2]
    assert "buy rye" in results[5]


async def test_a_file_is_written_only_once_its_author_allows_it(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=_writing()) as harness:
        said = await harness.channel.say("write it down")
        question = await _question(harness)
        assert (question.options, question.allowed_users) == (_OPTIONS, ("owner",))
        assert _written(tmp_path) == []
        assert (await harness.channel.bring(_press(question, "Allow"))).status == "accepted"
        assert (await harness.channel.reply(said.message_id)).text.endswith("Done.")
        events = harness.channel.events_of(said.message_id)
    assert _written(tmp_path) == ["hello"]
    about = [one for one in types_of(events) if one.startswith(("action", "shield", "approval"))]
    assert about == [
        "action_started",
        "shield_verdict",
        "approval_required",
        "approval_resolved",
        "action_completed",
    ]
    (asked,) = [one for one in events if isinstance(one, ApprovalRequired)]
    assert not asked.paused
    assert 200 < asked.timeout_s <= 300
    assert "hello" in asked.reasoning
    assert [one.decision for one in events if isinstance(one, ShieldVerdict)] == ["ESCALATE"]


async def test_a_refusal_is_reported_to_the_model_and_nothing_is_written(tmp_path: Path) -> None:
    llm = _writing()
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("write it down")
        await harness.channel.bring(_press(await _question(harness), "Deny"))
        await harness.channel.reply(said.message_id)
        events = harness.channel.events_of(said.message_id)
    assert _written(tmp_path) == []
    assert "did not allow write_file" in llm.requests[-1].messages[-1].content
    assert [one.success for one in events if isinstance(one, ActionCompleted)] == [False]


async def test_a_second_press_changes_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=_writing()) as harness:
        said = await harness.channel.say("write it down")
        question = await _question(harness)
        assert (await harness.channel.bring(_press(question, "Deny", name="p2"))).status == "accepted"
        second = await harness.channel.bring(_press(question, "Allow", name="p3"))
        assert (second.status, second.over) == ("refused", True)
        await harness.channel.reply(said.message_id)
    assert _written(tmp_path) == []


async def _pending(
    harness: GatewayHarness, holds: Callable[[], bool], clock: ManualClock, seconds: float
) -> None:
    """Turn the clock on, 200 times at most, until something holds: threads answer at their own pace,
    and the turn's time must not run out meanwhile."""
    async with asyncio.timeout(60):
        for left in itertools.count(200, -1):
            if holds():
                return
            if left > 0:
                await clock.advance(seconds)
            await asyncio.sleep(0.01)


async def test_without_an_answer_the_question_expires_and_a_late_press_does_nothing(tmp_path: Path) -> None:
    clock, llm = ManualClock(), _writing()
    async with open_gateway(tmp_path, "tools.approval_s=20", llm=llm, clock=clock) as harness:
        said = await harness.channel.say("write it down")
        question = await _question(harness)
        await clock.advance(19)
        assert _resolved(harness) == []
        await clock.advance(1.5)
        await harness.channel.until(lambda: _resolved(harness) == ["expired"])
        late = await harness.channel.bring(_press(question, "Allow"))
        assert late.status == "refused"
        await _pending(harness, lambda: bool(harness.channel.sent), clock, 0.5)
        assert (await harness.channel.reply(said.message_id)).text.endswith("Done.")
    assert _written(tmp_path) == []
    assert "No one answered in time" in llm.requests[-1].messages[-1].content


async def test_waiting_for_a_person_does_not_use_up_the_turns_time(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_gateway(tmp_path, "turn.timeout_s=30", llm=_writing(), clock=clock) as harness:
        said = await harness.channel.say("write it down")
        question = await _question(harness)
        await clock.advance(200)
        await harness.channel.bring(_press(question, "Allow"))
        await _pending(harness, lambda: bool(harness.channel.sent), clock, 0.1)
        assert (await harness.channel.reply(said.message_id)).text.endswith("Done.")
    assert _written(tmp_path) == ["hello"]


async def test_stop_ends_a_turn_that_waits_and_closes_its_question(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=_writing()) as harness:
        said = await harness.channel.say("write it down")
        question = await _question(harness)
        await harness.channel.say("/stop")
        ended = await harness.channel.terminal(said.message_id)
        assert ended.type == "error"
        assert (await harness.channel.bring(_press(question, "Allow"))).status == "refused"
        assert await harness.store.pending_interactions(THREAD, now=0.0) == ()
    assert _written(tmp_path) == []


async def test_a_history_shows_what_a_turn_asked_and_what_came_of_it(tmp_path: Path) -> None:
    wishes = (LOAD_FILES, _asking("write_file", path="a.txt", text="hello"))
    asked: list[ApprovalRequired] = []
    async with open_gateway(tmp_path, llm=_llm(*wishes, "Done.", *wishes)) as harness:
        for way in ("Allow", "/stop"):
            said = await harness.channel.say("write it down")
            asked.append(await _asked(harness, said.message_id))
            if way == "Allow":
                (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
                await harness.channel.bring(_press(question, way))
            else:
                await harness.channel.say(way)
            await harness.channel.reply(said.message_id)
        timeline = StoreTimeline(harness.store, ManualClock())
        entries = await timeline.entries(ThreadKey.decode(THREAD), after=0, limit=50)
    shown = [(entry.role, *(one.choice for one in entry.questions)) for entry in entries if entry.questions]
    assert shown == [("assistant", "Allow"), ("error", "")]
    reported = [(one.interaction_id, one.reasoning) for entry in entries for one in entry.questions]
    assert reported == [(one.interaction_id, one.reasoning) for one in asked]
    assert {(one.tool_name, one.options) for one in asked} == {("write_file", _OPTIONS)}


async def _asked(harness: GatewayHarness, message_id: str) -> ApprovalRequired:
    """The question of that message's turn, once it is shown."""

    def found() -> list[ApprovalRequired]:
        events = harness.channel.events_of(message_id)
        return [one for one in events if isinstance(one, ApprovalRequired)]

    await harness.channel.until(found)
    return found()[0]


async def test_a_question_survives_a_restart_and_its_answer_is_found(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=_writing(), drain_s=0.0) as harness:
        said = await harness.channel.say("write it down")
        first = await _question(harness)
    assert _written(tmp_path) == []
    async with open_gateway(tmp_path, llm=_llm("Done.")) as harness:
        second = await _question(harness)
        assert second == first
        await harness.channel.bring(_press(second, "Allow"))
        assert (await harness.channel.reply(said.message_id)).text.endswith("Done.")
    assert _written(tmp_path) == ["hello"]


async def test_a_voice_note_behind_a_waiting_turn_is_answered_once_the_question_is_over(
    tmp_path: Path,
) -> None:
    clock = ManualClock()
    async with open_gateway(tmp_path, "tools.approval_s=20", llm=_writing(), clock=clock) as harness:
        waiting = await harness.channel.say("write it down")
        await _question(harness)
        note = await harness.channel.say("", voice=b"sound")
        await _pending(harness, lambda: len(harness.channel.sent) == 2, clock, 2.0)
        assert [reply.message_id for reply in harness.channel.sent] == [waiting.message_id, note.message_id]
    assert _written(tmp_path) == []


async def test_arguments_without_json_come_back_to_the_model_and_the_turn_continues(tmp_path: Path) -> None:
    broken = ScriptedAnswer.calling(ToolCall(id="c", name="write_file", arguments='{"path": "a.txt", '))
    llm = _llm(LOAD_FILES, broken, _asking("fly"), "I could not.")
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("write it down")
        assert (await harness.channel.reply(said.message_id)).text.endswith("I could not.")
        events = harness.channel.events_of(said.message_id)
    results = [request.messages[-1].content for request in llm.requests[2:]]
    assert results[0].startswith("write_file was not done: the arguments are not valid JSON")
    assert 'Expected an object: {"path": …, "text": …}' in results[0]
    assert results[1] == "Unknown tool: fly"
    assert [one.success for one in events if isinstance(one, ActionCompleted)] == [False, False]


async def test_off_the_record_nothing_is_written(tmp_path: Path) -> None:
    load = ScriptedAnswer.calling(ToolCall(id="l", name="load_tools", arguments='{"groups": ["notes"]}'))
    llm = _llm(load, _asking("write_note", title="a", text="b"), "Not kept.")
    async with open_gateway(tmp_path, llm=llm) as harness:
        await harness.channel.say("/otr")
        await harness.channel.until(lambda: bool(harness.channel.sent))
        said = await harness.channel.say("note it")
        await harness.channel.reply(said.message_id)
        assert "otr_blocked" in types_of(harness.channel.events_of(said.message_id))
    assert _notes(tmp_path) == []


def _resolved(harness: GatewayHarness) -> list[str]:
    return [one.choice for one in harness.channel.events if isinstance(one, ApprovalResolved)]
