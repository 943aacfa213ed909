"""What a playbook takes as an answer, and what it leaves on record about its places and its checkpoints.

Covers: gateway/ingress/answers.py, pipeline/playbooks/steps.py, pipeline/playbooks/templates.py,
pipeline/playbooks/run_record.py.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from gateway.turns.run_codec import runs_of
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import PlaybookRun, playbook_record
from tests.pipeline.playbooks.documents import Plain, agent, node, playbook, route, trigger
from tests.support.api_client import document_file
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.heartbeats import until

_ASKING = playbook(
    trigger(),
    agent("a", "work"),
    node("user-input", "ask", prompt="Which?"),
    node("response", "end", text="[{{ask.result}}]"),
    edges=route("start > a > ask > end"),
)


def _offered(folder: Path, book: Plain) -> tuple[str, ...]:
    return (
        f'agents.book.graph="{document_file(folder, book)}"',
        'routes.1.agent="default"',
        'routes.1.also=["book"]',
    )


async def _reply(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def _record(harness: GatewayHarness, book: Plain) -> PlaybookRun:
    runs = runs_of(await harness.records()).values()
    (found,) = [one for one in runs if one[0] is not None and one[0]["head"]["graph"] == "book"]
    return playbook_record(read_playbook(json.dumps(book)), found)


async def test_words_sent_while_an_agent_works_answer_no_later_question(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("worked",), gate=gate), ScriptedAnswer.of("I do not know.")])
    async with open_gateway(tmp_path / "data", *_offered(tmp_path, _ASKING), llm=llm) as harness:
        began = await harness.channel.say("/run book go")
        await until(harness, lambda: len(llm.requests) == 1)
        early = await harness.channel.say("The blue one.")
        gate.set()
        assert (await harness.channel.reply(began.message_id)).text == "Which?"
        # The chat's own agent gets what was sent before the question, and the question stays open.
        assert (await harness.channel.reply(early.message_id)).text == "I do not know."
        assert llm.requests[-1].messages[-1].content == "The blue one."
        assert await _reply(harness, "The red one.") == "[The red one.]"


async def test_words_sent_while_the_chats_own_playbook_works_begin_another_run(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("worked",), gate=gate), ScriptedAnswer.of("worked")])
    own = f'agent.graph="{document_file(tmp_path, _ASKING)}"'
    async with open_gateway(tmp_path / "data", own, llm=llm) as harness:
        began = await harness.channel.say("go")
        await until(harness, lambda: len(llm.requests) == 1)
        early = await harness.channel.say("The blue one.")
        gate.set()
        assert (await harness.channel.reply(began.message_id)).text == "Which?"
        assert (await harness.channel.reply(early.message_id)).text == "Which?"
        assert await _reply(harness, "The red one.") == "[The red one.]"
        assert len(llm.requests) == 2


async def test_a_place_without_a_value_is_logged_and_its_text_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    book = playbook(
        trigger(), node("response", "end", text="{{trigger}} {{missing}}"), edges=route("start > end")
    )
    async with open_gateway(tmp_path / "data", *_offered(tmp_path, book)) as harness:
        assert await _reply(harness, "/run book hello") == "hello {{missing}}"
    warned = [one for one in caplog.records if "has no value" in one.getMessage()]
    assert [(one.levelname, one.__dict__["place"]) for one in warned] == [("WARNING", "missing")]
    assert not [one for one in caplog.records if "hello" in one.getMessage()]


async def test_every_checkpoint_names_its_run_and_its_workflow(tmp_path: Path) -> None:
    llm = ScriptedLlm([ScriptedAnswer.of("worked")])
    async with open_gateway(tmp_path / "data", *_offered(tmp_path, _ASKING), llm=llm) as harness:
        assert await _reply(harness, "/run book go") == "Which?"
        waiting = (await _record(harness, _ASKING)).plain()
        assert await _reply(harness, "The red one.") == "[The red one.]"
        ended = (await _record(harness, _ASKING)).plain()
    # The same run before the answer and after it.
    run_id = waiting["executionId"]
    assert run_id
    assert ended["executionId"] == run_id
    assert [one["nodeId"] for one in ended["checkpoints"]] == ["start", "a", "ask", "end"]
    assert [one["sequence"] for one in ended["checkpoints"]] == [1, 2, 3, 4]
    for one in (*waiting["checkpoints"], *ended["checkpoints"]):
        assert (one["executionId"], one["workflowId"]) == (run_id, "book")
