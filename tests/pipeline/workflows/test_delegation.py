"""Sub-agents are tools of a workflow's agent: their calls, their events, their errors and their limits."""

from __future__ import annotations

import json
from typing import Any

from pipeline.agent.loops import END_AT
from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.llm.scripted import ScriptedAnswer
from pipeline.runtime.ports import ToolResult
from pipeline.workflows.delegation import definition, tool_names
from pipeline.workflows.document import WorkflowAgent
from pipeline.workflows.reading import read_workflow
from tests.pipeline.nodes.documents import OneTool
from tests.pipeline.workflows.documents import Plain, Run, agent, document, start, way
from tests.support.graph_log import MemoryRunLog

MANY = {"subagents": True}
LEGAL = "subagent_legal_counter_legal"


def _call(name: str, message: object = "Is it allowed?", number: str = "c1") -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=number, name=name, arguments=json.dumps({"message": message})))


def _said(text: str) -> ScriptedAnswer:
    return ScriptedAnswer.of(text)


def _staff(**legal: Any) -> Plain:
    nodes = (
        start(),
        agent("counter", name="Counter", tools=MANY, userPrompt="Answer: {{PREVIOUS_OUTPUT}}"),
        agent("legal", name="Legal counter", systemPrompt="You know the law.", **legal),
        agent("archive", name="Archive", userPrompt="Look it up"),
    )
    routes = [way("start > counter"), way("counter > legal", "subagent")]
    more = [way("legal > archive", "subagent")] if legal.get("tools") else []
    return document(*(nodes if more else nodes[:3]), routes=[*routes, *more])


async def test_a_sub_agent_is_a_tool_that_gives_its_answer() -> None:
    run = Run(_staff(), script=[_call(LEGAL), _said("It is."), _said("Yes, it is allowed.")])
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "Yes, it is allowed.")
    asked, sub, last = run.llm.requests
    (tool,) = asked.tools
    assert (tool.name, tool.description) == (LEGAL, "Legal counter: You know the law.")
    assert "You know the law." in sub.messages[0].content
    assert sub.messages[-1].content == "Is it allowed?"
    assert last.messages[-1].content == "It is."


async def test_calls_are_logged_with_their_start_and_end() -> None:
    run = Run(_staff(), script=[_call(LEGAL), _said("It is."), _said("Yes.")])
    record = await run.begin()
    events = [entry for entry in record.logs if entry.type.startswith("subagent")]
    assert [entry.node for entry in events] == ["counter", "counter"]
    first, second = (json.loads(entry.content) for entry in events)
    assert first == {
        "type": "subagent_call_start",
        "parentNodeId": "counter",
        "subagentNodeId": "legal",
        "subagentName": "Legal counter",
        "callId": "c1",
        "depth": 1,
        "message": "Is it allowed?",
    }
    assert (second["type"], second["message"]) == ("subagent_call_end", "It is.")


async def test_a_sub_agent_below_another_names_its_root_and_the_call_above() -> None:
    archive = "subagent_archive_archive"
    script = [_call(LEGAL), _call(archive, "Find it", "c2"), _said("Found."), _said("It is."), _said("Yes.")]
    run = Run(_staff(tools=MANY), script=script)
    record = await run.begin()
    events = [json.loads(entry.content) for entry in record.logs if entry.type.startswith("subagent")]
    assert [(one["type"][14:], one["subagentNodeId"], one["depth"]) for one in events] == [
        ("start", "legal", 1),
        ("start", "archive", 2),
        ("end", "archive", 2),
        ("end", "legal", 1),
    ]
    assert (events[1]["parentNodeId"], events[1]["parentCallId"], events[1]["callId"]) == (
        "counter",
        "c1",
        "c1.c2",
    )
    assert run.llm.requests[2].messages[-1].content == "Look it up\n\nFind it"
    assert "It can ask: Archive" in run.llm.requests[0].tools[0].description


async def test_an_error_of_a_sub_agent_is_the_tools_result_and_the_parent_continues() -> None:
    broken = [_call("subagent_unknown", number=f"x{at}") for at in range(END_AT)]
    run = Run(_staff(), script=[_call(LEGAL), *broken, _said("I could not ask.")])
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "I could not ask.")
    (failed,) = [entry for entry in record.logs if entry.type == "subagent_call_error"]
    assert json.loads(failed.content)["message"] in run.llm.requests[-1].messages[-1].content


async def test_a_call_without_a_message_is_refused() -> None:
    run = Run(_staff(), script=[_call(LEGAL, 3), _call(LEGAL, " ", "c2"), _said("Sorry.")])
    await run.begin()
    assert "needs the argument message" in run.llm.requests[1].messages[-1].content
    assert "needs the argument message" in run.llm.requests[2].messages[-1].content


async def test_twenty_turns_are_the_most_with_those_of_sub_agents() -> None:
    script: list[ScriptedAnswer] = []
    for at in range(12):
        script += [_call(LEGAL, f"Question {at}", f"c{at}"), _said(f"Answer {at}")]
    run = Run(_staff(), script=[*script, _said("Enough.")])
    record = await run.begin()
    assert record.status == "completed"
    assert len(run.llm.requests) <= 20


async def test_an_agent_has_the_tools_of_its_groups_and_no_others() -> None:
    tools = OneTool(ToolResult(content="seen"))
    node = agent("a", tools={"groups": ["library"]})
    look = ScriptedAnswer.calling(ToolCall(id="c1", name="look", arguments="{}"))
    run = Run(document(start(), node, routes=[way("start > a")]), script=[look, _said("done")], tools=tools)
    await run.begin()
    assert [tool.name for tool in run.llm.requests[0].tools] == ["look"]
    assert run.said == "done"
    bare = Run(document(start(), agent("a"), routes=[way("start > a")]), script=[_said("x")], tools=_Loader())
    await bare.begin()
    assert bare.llm.requests[0].tools == ()


class _Loader(OneTool):
    """A gate that offers the loader."""

    def offered(self, groups: Any, scope: Any) -> tuple[ToolDefinition, ...]:
        del groups, scope
        return (ToolDefinition(name="load_tools", description="Loads.", parameters={"type": "object"}),)


async def test_a_group_that_is_not_here_fails_the_agent_and_says_so() -> None:
    node = agent("a", tools={"web_search": True})
    run = Run(document(start(), node, routes=[way("start > a")]), script=[], tools=OneTool())
    record = await run.begin()
    assert record.status == "failed"
    assert "The tools web are not available here." in record.logs[-1].content


async def test_a_finished_call_is_not_made_again_after_a_crash() -> None:
    script = [_call(LEGAL), _said("It is."), _said("Yes.")]
    whole = Run(_staff(), script=script)
    await whole.begin()
    done = next(at for at, plain in enumerate(whole.log.records) if plain and plain.get("state") == "done")
    again = Run(_staff(), script=[_said("Yes again.")])
    again.log = MemoryRunLog(whole.log.texts[: done + 1])
    record = await again.resume()
    assert (record.status, again.said) == ("completed", "Yes again.")
    assert [entry.type[14:] for entry in record.logs if entry.type.startswith("subagent")] == ["start", "end"]


async def test_a_call_that_may_have_changed_something_is_not_repeated() -> None:
    script = [_call(LEGAL), _said("It is."), _said("Yes.")]
    source = _staff()
    source["nodes"][2]["data"]["tools"] = {"groups": ["library"]}
    whole = Run(source, script=script, tools=OneTool())
    await whole.begin()
    began = next(at for at, plain in enumerate(whole.log.records) if plain and plain.get("state") == "began")
    again = Run(source, script=[_said("I do not know.")], tools=OneTool())
    again.log = MemoryRunLog(whole.log.texts[: began + 1])
    assert (await again.resume()).status == "completed"
    assert "it is unknown what it did" in again.llm.requests[0].messages[-1].content


def test_names_of_tools_are_unique_and_fit_every_provider() -> None:
    agents = [
        WorkflowAgent(id=name, name=title)
        for name, title in (("a b", "Ünï"), ("a/b", "Ünï"), ("x" * 90, "y" * 90))
    ]
    found = list(tool_names(agents))
    assert len(set(found)) == len(found)
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isalnum() for name in found)


def test_a_description_is_short_and_names_four_agents_below() -> None:
    below = [agent(f"b{at}") for at in range(6)]
    routes = [
        way("start > top"),
        way("top > mid", "subagent"),
        *(way(f"mid > b{at}", "subagent") for at in range(6)),
    ]
    top, mid = agent("top", tools=MANY), agent("mid", tools=MANY, userPrompt="z" * 500)
    workflow = read_workflow(document(start(), top, mid, *below, routes=routes))
    (found,) = workflow.subagents("top")
    words = definition("t", found, workflow).description
    assert words == f"mid: {'z' * 279}…\nIt can ask: b0, b1, b2, b3, …"
