"""Agents that run a graph document: message in, answer out, questions that outlive a restart, mistakes.

Covers: pipeline/nodes/, gateway/app/agents.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.config import ConfigurationProblems, load
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ApprovalRequired, NodeStarted
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.gate_graph import answer_to
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts

EXAMPLES = Path(__file__).parents[2] / "examples" / "graphs"
REFUND = json.dumps({"category": "refund", "topic": "kettle"})
QUESTION = json.dumps({"category": "question", "topic": "kettle"})


def _agent(name: str = "support") -> str:
    return f'agent.graph="{EXAMPLES / name}.json"'


def _script(*answers: str) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer.of(one) for one in answers])


async def _ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


def _manual(data: Path) -> None:
    folder = data / "workspace" / "files"
    folder.mkdir(parents=True)
    (folder / "manual.txt").write_text("The kettle has a warranty of two years.\n", "utf-8")


async def test_a_document_answers_with_what_its_tools_found(tmp_path: Path) -> None:
    _manual(tmp_path)
    llm = _script(QUESTION, "Two years.", json.dumps({"action": "ACCEPT"}))
    async with open_gateway(tmp_path, _agent(), llm=llm) as harness:
        accepted = await harness.channel.say("How long is the warranty of my kettle?")
        assert (await harness.channel.reply(accepted.message_id)).text == "Two years."
        events = harness.channel.events_of(accepted.message_id)
        shown = [event.node for event in events if isinstance(event, NodeStarted)]
        assert shown[:2] == ["intake", "classify"]
        assert set(shown[2:4]) == {"search_manual", "search_notes"}
        assert shown[4:] == ["refund", "draft", "check", "reply"]
        drafted = llm.requests[1].messages[-1].content
        assert "warranty of two years" in drafted
        # The next turn sees the conversation, and the document begins again.
        assert await _ask(harness, "thanks") == "I have no answer to that. Please write to us again."


async def test_its_question_is_answered_after_a_restart_and_a_change_of_its_words(
    tmp_path: Path,
) -> None:
    document = json.loads((EXAMPLES / "support.json").read_text("utf-8"))
    path = tmp_path / "bot.json"
    path.write_text(json.dumps(document), "utf-8")
    agent = f'agent.graph="{path}"'
    async with open_gateway(tmp_path, agent, llm=_script(REFUND)) as harness:
        accepted = await harness.channel.say("I want my money back")
        asked = await harness.channel.reply(accepted.message_id)
        assert "Shall a person look at it?" in asked.text
        (question,) = [
            one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
        ]
    (hand_over,) = [one for one in document["nodes"] if one["id"] == "hand_over"]
    hand_over["with"]["text"] = "Noted: {message}"
    path.write_text(json.dumps(document), "utf-8")
    async with open_gateway(tmp_path, agent) as harness:
        await harness.channel.bring(answer_to(question.interaction_id, "Yes"))
        assert (await harness.channel.reply("m_answer")).text == "Noted: I want my money back"
        assert harness.llm.requests == []


async def test_a_question_of_a_document_that_has_another_version_is_over_in_words(tmp_path: Path) -> None:
    document = json.loads((EXAMPLES / "support.json").read_text("utf-8"))
    path = tmp_path / "bot.json"
    path.write_text(json.dumps(document), "utf-8")
    agent = f'agent.graph="{path}"'
    async with open_gateway(tmp_path, agent, llm=_script(REFUND)) as harness:
        accepted = await harness.channel.say("I want my money back")
        await harness.channel.reply(accepted.message_id)
        (question,) = [
            one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
        ]
    path.write_text(json.dumps(document | {"version": "9"}), "utf-8")
    async with open_gateway(tmp_path, agent) as harness:
        await harness.channel.bring(answer_to(question.interaction_id, "Yes"))
        assert (
            "The assistant has changed since it asked this" in (await harness.channel.reply("m_answer")).text
        )


async def test_two_agents_run_two_documents_on_two_channels(tmp_path: Path) -> None:
    posts = MemoryPosts()
    overrides = (
        f'agents.study.graph="{EXAMPLES / "research.json"}"',
        'routes.1.agent="study"',
        f'routes.1.account="{posts.account}"',
        _agent("companion"),
    )
    found = '{"findings": "It scatters.", "confidence": 0.9}'
    study = ('{"question": "why?"}', found, '{"target": "report"}', "Blue scatters.")
    llm = _script('{"danger": "yes"}', *study)
    async with open_gateway(tmp_path, *overrides, llm=llm, posts=posts) as harness:
        # The crisis gate does not know these words; the document's own model does.
        assert "your local emergency number" in await _ask(harness, "I am afraid of myself tonight")
        await posts.receive("Why is the sky blue?", native_id="n1", chat="ann", author="ann")
        await posts.until(lambda: "Blue scatters." in "".join(posts.texts("ann")))


async def test_an_agent_of_a_document_uses_tools_and_remembers_what_they_said(tmp_path: Path) -> None:
    calls = ToolCall(id="c1", name="calculate", arguments='{"expression": "6*7"}')
    document: dict[str, Any] = {
        "name": "sums",
        "entry": "talk",
        "nodes": [{"id": "talk", "run": "agent", "with": {"groups": ["system"], "prompt": "Be brief."}}],
    }
    path = tmp_path / "sums.json"
    path.write_text(json.dumps(document), "utf-8")
    llm = ScriptedLlm(
        [ScriptedAnswer.calling(calls), ScriptedAnswer.of("It is 42."), ScriptedAnswer.of("Yes.")]
    )
    async with open_gateway(tmp_path, f'agent.graph="{path}"', llm=llm) as harness:
        assert await _ask(harness, "6 times 7?") == "It is 42."
        assert await _ask(harness, "Sure?") == "Yes."
        prompt = [message.content for message in llm.requests[2].messages]
        assert "6 times 7?" in prompt
        assert any("42" in text for text in prompt if text != "It is 42.")


async def test_a_path_without_an_answer_ends_in_words(tmp_path: Path) -> None:
    path = tmp_path / "silent.json"
    wait = {"id": "wait", "run": "delay", "with": {"seconds": 0.001}}
    path.write_text(json.dumps({"name": "silent", "entry": "wait", "nodes": [wait]}), "utf-8")
    async with open_gateway(tmp_path, f'agent.graph="{path}"') as harness:
        assert await _ask(harness, "hello") == (
            "The assistant came to an end without an answer. Please put it in other words."
        )


def test_every_mistake_of_a_document_is_a_line_that_names_the_setting(tmp_path: Path) -> None:
    document = tmp_path / "bot.json"
    document.write_text('{"name": "x", "entri": "a", "nodes": [{"id": "a", "run": "robot"}]}', "utf-8")
    config = tmp_path / "parlour.toml"
    config.write_text(f'[agents.shop]\ndescription = "x"\ngraph = "{document}"\n\n[agent]\ngraph = "none"\n')
    with pytest.raises(ConfigurationProblems) as caught:
        load(config, {}, [])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"agents.shop.graph: {document}: graph x: ")
    assert all(f"(in {config}, line 3)" in line for line in lines[:-1])
    assert any("entri: there is no such field; did you mean entry?" in line for line in lines)
    assert any("there is no node function called 'robot' here" in line for line in lines)
    assert lines[-1].startswith(
        "agent.graph: there is no graph of this name; there are: conversation, sub_agent"
    )


def test_a_graph_is_a_name_or_a_json_file() -> None:
    with pytest.raises(ConfigurationProblems, match=r"agent\.graph: .*neither a name nor a file that ends"):
        load(None, {}, ['agent.graph="graphs/x.yaml"'])
