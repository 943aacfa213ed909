"""What documents say about flow holds in a running gateway: edges, fan-out, retries, judges, pauses.

Covers: pipeline/graph/execution/edge_selection.py, pipeline/graph/execution/routing.py,
pipeline/graph/execution/run_loop.py, pipeline/graph/execution/node_attempts.py,
pipeline/graph/run/transitions.py, pipeline/graph/run/outcome.py, pipeline/graph/definition/merging.py,
pipeline/graph/definition/expressions.py, pipeline/graph/definition/elements.py,
pipeline/graph/definition/joins.py, pipeline/agent/judge.py, pipeline/agent/task.py,
pipeline/agent/task_loop.py, pipeline/agent/task_prompt.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config import ConfigurationProblems
from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ApprovalRequired, ErrorEvent
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.nodes.documents import Node, edge, node, steps
from tests.support.gate_graph import answer_to
from tests.support.harness import open_gateway
from tests.support.verdicts import verdict

NO_TOOL = node("b", "tool", tool="none", group="attic", output="b")
ONE = node("a", "model", prompt="a", output="a")
TWO = node("b", "model", prompt="b", output="b")
SAY = node("say", "reply", text="{a}{b}{c}.")


def _agent(data: Path, document: dict[str, Any]) -> str:
    path = data / "bot.json"
    path.write_text(json.dumps(document), "utf-8")
    return f'agent.graph="{path}"'


async def _answer(
    data: Path, document: dict[str, Any], *script: str | ScriptedAnswer, text: str = "hello"
) -> tuple[str, ScriptedLlm]:
    """The answer to a message, or the words of its error, and the model that was asked."""
    llm = ScriptedLlm([ScriptedAnswer.of(one) if isinstance(one, str) else one for one in script])
    async with open_gateway(data, _agent(data, document), llm=llm) as harness:
        accepted = await harness.channel.say(text)
        reply = (await harness.channel.reply(accepted.message_id)).text
        errors = [e for e in harness.channel.events_of(accepted.message_id) if isinstance(e, ErrorEvent)]
    return reply or errors[0].message, llm


def _forked(*branches: Node, **given: Any) -> dict[str, Any]:
    """A step, branches that begin after it, and a reply where they meet."""
    start = node("start", "delay", seconds=0.001)
    edges = [edge("start", one["id"], when="on_success") for one in branches]
    edges += [edge(one["id"], "say") for one in branches]
    return steps(start, *branches, SAY, edges=edges, **given)


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("fail_all", "The tools attic are not available here."),
        ("continue_others", "one."),
        ("wait_all", "one."),
    ],
)
async def test_branches_run_side_by_side_and_fail_as_the_document_says(
    tmp_path: Path, policy: str, said: str
) -> None:
    failing = NO_TOOL | {"goes_to": []}
    document = _forked(ONE, failing, fan_out={"on_failure": policy})
    document["edges"] = [
        one | {"when": "on_success"} if one["source"] == "b" else one for one in document["edges"]
    ]
    reply, _ = await _answer(tmp_path, document, "one")
    assert reply == said


@pytest.mark.parametrize(("policy", "said"), [("last_wins", "2."), ("first_wins", "1.")])
async def test_branches_that_write_one_key_keep_one_value(tmp_path: Path, policy: str, said: str) -> None:
    first = node("one", "model", prompt="x", output="a")
    late = {"name": "late", "entry": "wait", "nodes": [], "edges": [edge("wait", "two")]}
    late["nodes"] = [node("wait", "delay", seconds=0.05), node("two", "model", prompt="x", output="a")]
    second = {"id": "second", "subgraph": late, "writes": ["a"]}
    document = _forked(first, second, fan_out={"on_conflict": policy})
    assert (await _answer(tmp_path, document, "1", "2"))[0] == said


async def test_branches_that_write_one_key_can_be_a_mistake(tmp_path: Path) -> None:
    other = node("other", "model", prompt="x", output="a")
    document = _forked(ONE, other, fan_out={"on_conflict": "error"})
    with pytest.raises(ConfigurationProblems, match="branches a and other both write a"):
        await _answer(tmp_path, document)


@pytest.mark.parametrize(
    ("text", "said"), [("tea please", "tea"), ("milk and tea", "tea"), ("milk", "milk"), ("?", "none")]
)
async def test_the_first_condition_that_holds_is_followed(tmp_path: Path, text: str, said: str) -> None:
    kinds = [node(one, "reply", text=one) for one in ("tea", "milk", "none")]
    edges = [
        edge("start", "tea", when={"if": "'tea' in message"}),
        edge("start", "milk", when={"if": "'milk' in message"}),
        edge("start", "none"),
    ]
    document = steps(node("start", "delay", seconds=0.001), *kinds, edges=edges)
    assert (await _answer(tmp_path, document, text=text))[0] == said


@pytest.mark.parametrize(("chosen", "said"), [('{"target": "tea"}', "tea"), ("I cannot say", "milk")])
async def test_a_model_that_knows_the_goal_chooses_an_edge_or_the_fallback_is_taken(
    tmp_path: Path, chosen: str, said: str
) -> None:
    edges = [
        edge("start", "tea", when={"llm_decide": "they are cold"}),
        edge("start", "milk", when={"llm_decide": "they are tired"}, fallback=True),
    ]
    kinds = [node(one, "reply", text=one) for one in ("tea", "milk")]
    goal = {"description": "Make them feel well"}
    document = steps(node("start", "delay", seconds=0.001), *kinds, edges=edges, goal=goal)
    reply, llm = await _answer(tmp_path, document, chosen, chosen)
    assert reply == said
    assert "Goal: Make them feel well" in llm.requests[0].messages[1].content


async def test_a_failed_step_is_tried_again_and_then_its_failure_has_an_edge(tmp_path: Path) -> None:
    ask = node("ask", "model", prompt="x", outputs={"a": {"enum": ["yes"]}})
    ask |= {"retry": {"max_attempts": 2, "delay_s": 0.001}}
    sorry = node("sorry", "reply", text="sorry")
    edges = [edge("ask", "say", when="on_success"), edge("ask", "sorry", when="on_failure")]
    document = steps(ask, SAY, sorry, edges=edges)
    reply, llm = await _answer(tmp_path, document, "no", "no", "no", '{"a": "yes"}')
    assert (reply, len(llm.requests)) == ("yes.", 4)
    reply, llm = await _answer(tmp_path, document, *["no"] * 4)
    assert (reply, len(llm.requests)) == ("sorry", 4)


async def test_a_document_can_stop_at_a_node_until_a_person_agrees(tmp_path: Path) -> None:
    document = steps(ONE, SAY, edges=[edge("a", "say")], pause_nodes=["a"])
    agent = _agent(tmp_path, document)
    async with open_gateway(tmp_path, agent, llm=ScriptedLlm([ScriptedAnswer.of("one")])) as harness:
        accepted = await harness.channel.say("hello")
        await harness.channel.reply(accepted.message_id)
        (asked,) = [
            one for one in harness.channel.events_of(accepted.message_id) if isinstance(one, ApprovalRequired)
        ]
        await harness.channel.bring(answer_to(asked.interaction_id, "continue"))
        assert (await harness.channel.reply("m_answer")).text == "one."


def _sets(**outputs: str) -> ScriptedAnswer:
    calls = [
        ToolCall(id=f"c{at}", name="set_output", arguments=json.dumps({"key": key, "value": value}))
        for at, (key, value) in enumerate(outputs.items())
    ]
    return ScriptedAnswer.calling(*calls)


def _tasks(**second: Any) -> dict[str, Any]:
    first = node("find", "task", instructions="Find a word.", outputs=["word"], criteria="It is short.")
    then = node("write", "task", instructions="Write it.", outputs=["text"], answer="text", **second)
    return steps(first, then, edges=[edge("find", "write", when="on_success")])


async def test_tasks_are_judged_share_one_conversation_and_see_who_they_are(tmp_path: Path) -> None:
    script = (_sets(word="hippopotamus"), verdict("RETRY", feedback="Too long."), _sets(word="cat"))
    reply, llm = await _answer(tmp_path, _tasks(), *script, verdict("ACCEPT"), _sets(text="cat!"))
    assert reply == "cat!"
    assert "Too long." in llm.requests[2].messages[-1].content
    written = llm.requests[4].messages
    assert "You are a helpful assistant" in written[0].content
    assert "Write it." in written[0].content
    said = "\n".join(message.content for message in written[1:])
    assert "find" in said
    assert "Too long." in said


async def test_a_task_that_is_given_up_fails_the_turn_and_an_isolated_one_sees_no_other(
    tmp_path: Path,
) -> None:
    reply, _ = await _answer(tmp_path, _tasks(), _sets(word="x"), verdict("ESCALATE", feedback="Never."))
    assert reply.startswith("Something went wrong inside the assistant")
    script = (_sets(word="cat"), verdict("ACCEPT"), _sets(text="cat!"))
    _, llm = await _answer(tmp_path, _tasks(isolated=True), *script)
    said = "\n".join(message.content for message in llm.requests[2].messages[1:])
    assert "Find a word." not in said
    assert "It is short." not in said


async def test_how_well_a_run_went_is_in_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = steps(NO_TOOL, SAY, edges=[edge("b", "say")])
    await _answer(tmp_path, failing)
    await _answer(tmp_path, failing | {"version": "2"}, text="again")
    place = f'data.dir="{tmp_path}"'
    main(["graph", "trace", "--set", place])
    newest = capsys.readouterr().out.split()[3]
    agent = f'agent.graph="{tmp_path / "bot.json"}"'
    assert main(["graph", "trace", newest, "--set", place, "--set", agent]) == 0
    printed = capsys.readouterr().out
    assert "completed, degraded" in printed
    assert "failed (step_failed: The tools attic are not available here.)" in printed
    assert 'n_say["say"]' in printed
