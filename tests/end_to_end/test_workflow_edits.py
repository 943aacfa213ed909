"""An approval whose text may be replaced: `edit:` and the new text, typed or said, and no bare press.

Covers: pipeline/workflows/steps.py, pipeline/workflows/compiling.py, pipeline/workflows/run_record.py,
gateway/interactions/answer_matching.py, gateway/ingress/inbox.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.domain.errors import GraphError
from pipeline.workflows.compiling import workflow_graph
from pipeline.workflows.reading import read_workflow
from pipeline.workflows.run_record import WorkflowRun, run_record
from tests.end_to_end.test_access import press_of
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts
from tests.support.workflow_child import triage_model
from voice.transcription.scripted_transcriber import ScriptedTranscriber

NEW_TEXT = "Dear Ann,\n\nhere is your money: 10 EUR."
_NODES = (start(), agent("draft"), approval("ok", prompt="Send it?", editable=True), agent("send"))
_ROUTES = [way("start > draft"), way("draft > ok"), way("ok > send", "approve")]
SOURCE = document(*_NODES, routes=_ROUTES)


def _setting(folder: Path, source: dict[str, Any]) -> str:
    path = folder / "own.json"
    path.write_text(json.dumps(source), "utf-8")
    return f'agent.graph="{path}"'


async def _asked(harness: GatewayHarness) -> str:
    accepted = await harness.channel.say("go")
    assert "(approve / reject / edit: …)" in (await harness.channel.reply(accepted.message_id)).text
    return (await harness.store.pending_interactions(THREAD, now=0.0))[0].id


async def _record(harness: GatewayHarness) -> WorkflowRun:
    ((_, records),) = runs_of(await harness.records()).items()
    return run_record(read_workflow(SOURCE), records)


async def test_the_edited_text_continues_and_the_record_keeps_both_and_who_answered(tmp_path: Path) -> None:
    llm = triage_model("the draft", "sent")
    async with open_gateway(tmp_path, _setting(tmp_path, SOURCE), llm=llm) as harness:
        await _asked(harness)
        answered = await harness.channel.say(f"Edit: {NEW_TEXT}")
        assert (await harness.channel.reply(answered.message_id)).text == "sent"
        assert llm.requests[-1].messages[-1].content == NEW_TEXT
        record = await _record(harness)
        ((_, records),) = runs_of(await harness.records()).items()
    answers = [one for one in records if one is not None and one["do"] == "answer"]
    assert [(one["choice"], one["note"], one["by"]) for one in answers] == [("edit", NEW_TEXT, "owner")]
    assert record.status == "completed"
    assert record.state["ok_approval"] == {
        "decision": "approve",
        "note": "",
        "edited": NEW_TEXT,
        "before": "the draft",
    }
    assert (record.state["draft"], record.state["ok"]) == ("the draft", NEW_TEXT)
    log = [(entry.node, entry.type, entry.content) for entry in record.logs]
    assert ("ok", "input_received", "User approved this step with another text.") in log


async def test_what_was_edited_and_leads_nowhere_else_is_the_result(tmp_path: Path) -> None:
    source = document(*_NODES[:3], routes=[*_ROUTES[:2], way("ok > draft", "reject")])
    async with open_gateway(tmp_path, _setting(tmp_path, source), llm=triage_model("the draft")) as harness:
        await _asked(harness)
        answered = await harness.channel.say("edit: better words")
        assert (await harness.channel.reply(answered.message_id)).text == "better words"


async def test_a_press_on_edit_says_how_and_leaves_the_question_open(tmp_path: Path) -> None:
    posts, llm = MemoryPosts(), triage_model("the draft", "sent")
    async with open_gateway(tmp_path, _setting(tmp_path, SOURCE), llm=llm, posts=posts) as harness:
        await posts.receive("go", native_id="n1")
        await posts.until(lambda: any(one.buttons == ("approve", "reject", "edit") for one in posts.messages))
        ((question,),) = [await harness.store.pending_interactions(posts.thread().encode(), now=0.0)]
        pressed = await posts.bring(press_of(posts, question.id, author="ann", chat="c1", option=2))
        assert (pressed.status, pressed.over) == ("refused", False)
        assert pressed.reason == "Write edit: and the new text behind it, as a message."
        await posts.receive("edit: from here", native_id="n2")
        await posts.until(lambda: any("sent" in text for text in posts.texts()))
        assert llm.requests[-1].messages[-1].content == "from here"


async def test_the_page_cannot_answer_edit_without_words_either(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, _setting(tmp_path, SOURCE), llm=triage_model("x", "sent")) as harness:
        question = await _asked(harness)
        assert (await harness.channel.bring(answer_to(question, "edit"))).status == "refused"
        await harness.channel.bring(answer_to(question, "approve"))
        assert (await harness.channel.reply("m_answer")).text == "sent"


async def test_a_voice_note_edits(tmp_path: Path) -> None:
    llm, hears = triage_model("the draft", "sent"), ScriptedTranscriber.always("Edit: make it short.")
    async with open_gateway(tmp_path, _setting(tmp_path, SOURCE), llm=llm, transcriber=hears) as harness:
        await _asked(harness)
        answered = await harness.channel.say("", voice=b"OggS")
        assert (await harness.channel.reply(answered.message_id)).text == "sent"
    assert llm.requests[-1].messages[-1].content == "make it short"


async def test_without_the_field_edit_is_a_message_like_any_other(tmp_path: Path) -> None:
    nodes = (*_NODES[:2], approval("ok", prompt="Send it?"), _NODES[3])
    source = document(*nodes, routes=_ROUTES)
    llm = triage_model("the draft", "another draft")
    async with open_gateway(tmp_path, _setting(tmp_path, source), llm=llm) as harness:
        accepted = await harness.channel.say("go")
        assert "(approve / reject)" in (await harness.channel.reply(accepted.message_id)).text
        other = await harness.channel.say("edit: something")
        assert "another draft" in (await harness.channel.reply(other.message_id)).text


def test_editable_is_true_or_false() -> None:
    wrong = document(*_NODES[:2], approval("ok", editable="yes"), _NODES[3], routes=_ROUTES)
    with pytest.raises(GraphError, match=r"data\.editable"):
        workflow_graph(wrong)


def test_a_node_named_like_the_editing_one_keeps_its_name() -> None:
    nodes = (*_NODES[:3], agent("ok_edited"))
    graph = workflow_graph(document(*nodes, routes=[*_ROUTES[:2], way("ok > ok_edited", "approve")]))
    assert {"ok", "ok_edited", "ok_edited_"} <= set(graph.specs)
