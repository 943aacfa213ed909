"""What each subtype of a playbook's nodes does, run by the engine without a gateway.

Covers: pipeline/playbooks/moves.py, pipeline/playbooks/settling.py, pipeline/playbooks/starting.py,
pipeline/playbooks/sub_agent.py, pipeline/playbooks/compiling.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.domain.chat import ToolCall
from pipeline.domain.errors import ModelUnavailable
from pipeline.llm.client import LlmRequest
from pipeline.llm.scripted import ScriptedAnswer
from tests.pipeline.playbooks.documents import PlaybookTest, agent, node, playbook, route, trigger, way

DOWN = ModelUnavailable("The model is down.")


async def test_agents_one_after_the_other_get_results_and_the_last_one_is_the_answer() -> None:
    book = playbook(
        trigger(),
        agent("a", "say {{trigger}}") | {"label": "First one"},
        agent("b", "{{First one.result}} and {{a.result}} and {{nothing}}"),
        edges=route("start > a > b"),
    )
    run = PlaybookTest(book)
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "say hello and say hello and {{nothing}}")
    assert record.completed == ("start", "a", "b")


async def test_values_are_filled_in_literally_and_once(caplog: pytest.LogCaptureFixture) -> None:
    book = playbook(trigger(), agent("a", "x"), agent("b", "[{{a.result}}]"), edges=route("start > a > b"))
    run = PlaybookTest(book, says={"x": r"{{trigger}} \1 $& {{b.result}} {{never}}"})
    await run.begin()
    assert run.asked[1] == r"[{{trigger}} \1 $& {{b.result}} {{never}}]"
    assert not caplog.records


async def test_a_place_without_a_value_stays_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    book = playbook(
        trigger(), agent("a", "{{b.result}} {{ name }}"), agent("b"), edges=route("start > a > b")
    )
    run = PlaybookTest(book)
    await run.begin()
    assert run.asked[0] == "{{b.result}} {{ name }}"
    assert [record.__dict__["place"] for record in caplog.records] == ["b.result", "name"]


async def test_an_agent_has_a_thread_that_later_texts_can_name() -> None:
    book = playbook(trigger(), agent("a"), agent("b", "{{a.threadId}}"), edges=route("start > a > b"))
    run = PlaybookTest(book)
    record = await run.begin()
    assert run.asked[1] == record.outputs["a"]["thread"] != ""


async def test_a_sub_agent_hands_back_and_its_summary_and_artifact_are_its_result() -> None:
    said = "Well.\n\nHAND_BACK\nSummary: Did it.\nArtifact: The list\nNeeds user input: none\n"
    book = playbook(trigger(), agent("a"), agent("b", "<{{a.result}}>"), edges=route("start > a > b"))
    run = PlaybookTest(book, says={"a": f"{said}Suggested next action: Rest."})
    record = await run.begin()
    assert run.asked[1] == "<Did it.\n\nThe list>"
    assert record.outputs["a"]["nextAction"] == "Rest."


async def test_prompts_before_and_after_a_sub_agent_write_its_task_and_judge_its_result() -> None:
    judged = agent("a", "sum {{trigger}}", before="Be precise.", after="Was it right?", successCriteria="42")
    before = "Be precise.\n\nWhat the task is about:\n\nsum hello"
    after = 'Was it right?\n\nIt succeeds if: 42\n\nThe result:\n\n<data>"forty-two"</data>'
    run = PlaybookTest(
        playbook(trigger(), judged, edges=route("start > a")),
        says={before: "Add the numbers.", "Add the numbers.": "forty-two", after: "MET"},
    )
    record = await run.begin()
    assert run.asked == [before, "Add the numbers.", after]
    assert (record.status, record.outputs["a"]["verdict"], run.said) == ("completed", "MET", "forty-two")


@pytest.mark.parametrize("verdict", ["NOT MET: it is 41", "Perhaps.", "Metal"])
async def test_a_result_that_is_not_accepted_fails_the_node(verdict: str) -> None:
    judged = agent("a", "x", successCriteria="42")
    after = 'It succeeds if: 42\n\nThe result:\n\n<data>"x"</data>'
    run = PlaybookTest(playbook(trigger(), judged, edges=route("start > a")), says={after: verdict})
    record = await run.begin()
    assert record.status == "failed"
    assert record.failure == f"What a has done was not accepted: {verdict}"


@pytest.mark.parametrize(
    "says",
    [
        "HAND_BACK\nSummary: half\nNeeds user input: Which year?",
        "<AGENT_BLOCKED><BLOCKER_REASON>Which year?</BLOCKER_REASON></AGENT_BLOCKED>",
    ],
)
async def test_a_blocked_agent_asks_the_person_and_runs_again_with_the_answer(says: str) -> None:
    book = playbook(trigger(), agent("a", "x"), agent("b", "{{a.result}}"), edges=route("start > a > b"))
    again = "x\n\nYou have asked the person: Which year?\n\nThe person has answered: 2026"
    run = PlaybookTest(book, says={"x": says, again: "the report"})
    record = await run.begin()
    assert (record.status, record.current, run.prompt) == ("waiting", ("a",), "Which year?")
    record = await run.answer("2026")
    assert (record.status, run.said) == ("completed", "the report")


async def test_a_failed_agent_fails_the_run_with_its_words() -> None:
    run = PlaybookTest(playbook(trigger(), agent("a", "x"), edges=route("start > a")), says={"x": DOWN})
    record = await run.begin()
    assert (record.status, record.failure) == ("failed", "The model is down.")
    assert [event.type for event in record.events][-2:] == ["node_failed", "workflow_failed"]


def _parallel(*, last: str = "{{both.result}}") -> dict[str, Any]:
    edges = [*route("start > fork > a > both > end"), *route("fork > b > both")]
    nodes = [trigger(), node("parallel", "fork"), agent("a"), agent("b"), node("merge", "both")]
    return playbook(*nodes, node("response", "end", text=last), edges=edges)


async def test_parallel_agents_run_at_once_and_a_merge_joins_their_results() -> None:
    run = PlaybookTest(_parallel())
    record = await run.begin()
    assert run.said == "a:\na\n\nb:\nb"
    assert record.completed == ("start", "fork", "a", "b", "both", "end")


async def test_a_failed_branch_is_recorded_and_the_others_continue() -> None:
    run = PlaybookTest(_parallel(), says={"a": DOWN})
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "b\n\nThe model is down.")
    assert [event.node for event in record.events if event.type == "node_failed"] == ["a"]
    assert run.asked == ["a", "b"]  # what failed is not run again


async def test_a_run_in_which_all_branches_fail_has_failed() -> None:
    run = PlaybookTest(_parallel(), says={"a": DOWN, "b": DOWN})
    record = await run.begin()
    assert record.status == "failed"
    assert record.failure == "All parallel branches failed: a: The model is down.; b: The model is down."


@pytest.mark.parametrize(("holds", "said"), [("trigger == 'hello'", "yes"), ("a.result == 'x'", "no")])
async def test_a_condition_is_checked_without_a_model(holds: str, said: str) -> None:
    edges = [*route("start > a > if"), way("if > yes", "condition-true"), way("if > no", "condition-false")]
    nodes = [trigger(), agent("a"), node("condition", "if", expression=holds), agent("yes"), agent("no")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    await run.begin()
    assert (run.said, run.asked) == (said, ["a", said])


@pytest.mark.parametrize(("answer", "said"), [("Yes.", "yes"), ("true", "yes"), ("no", "no")])
async def test_a_condition_asks_the_model_only_where_it_says_so(answer: str, said: str) -> None:
    edges = [*route("start > if"), way("if > yes", "condition-true"), way("if > no", "condition-false")]
    asks = node("condition", "if", mode="llm", prompt="Is it?")
    words = 'Is it?\n\nThe step before has given:\n\n<data>"hello"</data>'
    run = PlaybookTest(
        playbook(trigger(), asks, agent("yes"), agent("no"), edges=edges), says={words: answer}
    )
    await run.begin()
    assert run.said == said


async def test_an_unclear_answer_to_a_condition_fails_it() -> None:
    edges = [*route("start > if"), way("if > yes", "condition-true")]
    asks = node("condition", "if", mode="llm", prompt="Is it?")
    record = await PlaybookTest(playbook(trigger(), asks, agent("yes"), edges=edges)).begin()
    assert (record.status, record.failure) == ("failed", "if was answered with neither yes nor no.")


def _routed(**config: Any) -> dict[str, Any]:
    routes = [{"label": "Refund"}, {"label": "Question", "description": "asks something"}]
    edges = [*route("start > r"), way("r > one", "route-0"), way("r > two", "route-1")]
    router = node("router", "r", prompt="Which?", routes=routes, **config)
    return playbook(trigger(), router, agent("one"), agent("two"), edges=edges)


_ROUTE_PROMPT = (
    'Which?\n\nThe step before has given:\n\n<data>"hello"</data>\n\nLabels:\n- Refund\n'
    "- Question: asks something"
)


@pytest.mark.parametrize(("answer", "said"), [("question", "two"), ('"Refund".', "one")])
async def test_a_router_follows_the_route_that_the_model_names(answer: str, said: str) -> None:
    run = PlaybookTest(_routed(), says={_ROUTE_PROMPT: answer})
    await run.begin()
    assert run.said == said


async def test_a_router_without_a_match_takes_its_default_else_fails() -> None:
    run = PlaybookTest(_routed(default="Question"), says={_ROUTE_PROMPT: "neither"})
    await run.begin()
    assert run.said == "two"
    record = await PlaybookTest(_routed(), says={_ROUTE_PROMPT: "neither"}).begin()
    assert (record.status, record.failure) == ("failed", "r was answered with none of its routes.")


async def test_a_merge_behind_a_condition_waits_only_for_what_can_still_come() -> None:
    edges = [*route("start > a > both"), *route("start > if"), way("if > b", "condition-true")]
    edges += [*route("b > both > end"), way("if > both", "condition-false")]
    nodes = [trigger(), agent("a"), agent("b"), node("condition", "if", expression="trigger == 'no'")]
    book = playbook(
        *nodes, node("merge", "both"), node("response", "end", text="{{both.result}}"), edges=edges
    )
    run = PlaybookTest(book)
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "if:\nfalse\n\na:\na")


async def test_a_merge_of_the_first_fires_once() -> None:
    edges = [*route("start > a > b > m > end"), *route("start > c > m")]
    nodes = [trigger(), agent("a"), agent("b"), agent("c"), node("merge", "m", strategy="first")]
    run = PlaybookTest(playbook(*nodes, node("response", "end"), edges=edges))
    record = await run.begin()
    assert (record.status, run.said) == ("completed", "c")
    assert [event.node for event in record.events if event.type == "node_skipped"] == ["m"]
    assert record.completed.count("end") == 1


async def test_two_merges_that_wait_for_each_other_do_not_block_the_run() -> None:
    edges = [*route("start > m > n > m"), *route("start > n")]
    book = playbook(trigger(), node("merge", "m"), node("merge", "n"), edges=edges)
    record = await PlaybookTest(book).begin()
    assert record.status in ("completed", "failed")


def _loop(**config: Any) -> dict[str, Any]:
    edges = [*route("start > loop"), way("loop > a", "loop-start"), way("a > loop", into="loop-back")]
    edges += [way("loop > end", "loop-exit")]
    nodes = [trigger(), node("loop", "loop", **config), agent("a")]
    return playbook(*nodes, node("response", "end", text="done {{loop.result}}"), edges=edges)


@pytest.mark.parametrize(
    ("config", "times"),
    [
        ({}, 10),
        ({"maxIterations": 3}, 3),
        ({"condition": "iteration < 2"}, 2),
        ({"condition": "iteration > 5"}, 0),
    ],
)
async def test_a_loop_repeats_its_body(config: dict[str, Any], times: int) -> None:
    run = PlaybookTest(_loop(**config))
    record = await run.begin()
    assert run.asked == ["a"] * times
    assert run.said == ("done a" if times else "done")
    assert record.outputs["loop"]["iterations"] == times


async def test_a_loop_may_ask_the_model_whether_to_continue() -> None:
    first = 'More?\n\nThe step before has given:\n\n<data>"hello"</data>'
    again = 'More?\n\nThe step before has given:\n\n<data>"a"</data>'
    run = PlaybookTest(_loop(conditionMode="llm", prompt="More?"), says={first: "yes", again: "no"})
    await run.begin()
    assert run.asked == [first, "a", again]


async def test_a_failure_in_a_loop_fails_the_loop() -> None:
    record = await PlaybookTest(_loop(), says={"a": DOWN}).begin()
    assert (record.status, record.failure) == ("failed", "The model is down.")


async def test_branches_and_merges_inside_of_a_loop_are_joined_in_every_iteration() -> None:
    edges = [*route("start > loop"), way("loop > a", "loop-start"), way("loop > b", "loop-start")]
    edges += [*route("a > m"), *route("b > m"), way("m > loop", into="loop-back")]
    nodes = [trigger(), node("loop", "loop", maxIterations=2), agent("a"), agent("b"), node("merge", "m")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    record = await run.begin()
    assert run.asked == ["a", "b", "a", "b"]
    assert (record.status, run.said) == ("completed", "a:\na\n\nb:\nb")


async def test_a_nested_loop_begins_again_in_every_iteration_of_the_outer_one() -> None:
    edges = [*route("start > o"), way("o > i", "loop-start"), way("i > a", "loop-start")]
    edges += [way("a > i", into="loop-back"), way("i > o", "loop-exit", "loop-back")]
    nodes = [trigger(), node("loop", "o", maxIterations=2), node("loop", "i", maxIterations=3), agent("a")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    record = await run.begin()
    assert (record.status, len(run.asked)) == ("completed", 6)


async def test_a_run_of_too_many_steps_has_failed() -> None:
    loop = _loop(maxIterations=100)
    loop["nodes"] += [agent("b"), agent("c")]
    loop["edges"] = [edge for edge in loop["edges"] if edge["source"] != "a"]
    loop["edges"] += [*route("a > b > c"), way("c > loop", into="loop-back")]
    record = await PlaybookTest(loop).begin()
    assert (record.status, record.failure) == ("failed", "It took more than 200 steps and was ended.")


async def test_responses_are_said_in_order_and_streamed() -> None:
    nodes = [trigger(), node("response", "one", text="One {{trigger}}."), agent("a"), node("response", "two")]
    run = PlaybookTest(playbook(*nodes, edges=route("start > one > a > two")))
    await run.begin()
    assert run.said == "One hello.\n\na"
    assert run.watched.text == "One hello.\n\na\n\n"


async def test_an_unknown_tool_fails_the_run() -> None:
    nodes = [trigger(), node("tool-call", "t", tool="nothing", arguments={"x": "{{trigger}}"})]
    record = await PlaybookTest(playbook(*nodes, edges=route("start > t"))).begin()
    assert record.status == "failed"
    assert record.failure.startswith("t could not use nothing: ")


async def test_events_and_a_checkpoint_for_each_node_are_computed_from_the_records() -> None:
    run = PlaybookTest(playbook(trigger(), agent("a"), edges=route("start > a")))
    record = await run.begin()
    assert [(event.type, event.node) for event in record.events] == [
        ("workflow_started", ""),
        ("node_started", "start"),
        ("node_completed", "start"),
        ("edge_activated", ""),
        ("node_started", "a"),
        ("node_thinking", "a"),
        ("node_completed", "a"),
        ("workflow_completed", ""),
    ]
    plain = record.plain()["checkpoints"]
    assert [(one["nodeId"], one["subtype"], one["sequence"]) for one in plain] == [
        ("start", "chat-app", 1),
        ("a", "agent", 2),
    ]
    assert plain[1]["nodeOutput"]["result"] == "a"


async def test_an_agent_sees_its_task_and_nothing_of_the_conversation() -> None:
    run = PlaybookTest(playbook(trigger(), agent("a"), edges=route("start > a")), history=["before", "said"])
    await run.begin()
    requests: list[LlmRequest] = run.llm.requests
    assert [message.content for message in requests[0].messages[1:]] == ["a"]
    assert "HAND_BACK" in requests[0].messages[0].content


def _started() -> dict[str, Any]:
    given = {"startedBy": "agent", "description": "Plans a journey."}
    return playbook(trigger(), agent("a", "plan {{trigger}}"), edges=route("start > a"), **given)


async def test_the_agent_of_the_conversation_answers_without_the_playbook() -> None:
    run = PlaybookTest(_started(), script=[ScriptedAnswer.of("Hello.")])
    await run.begin()
    assert run.said == "Hello."
    assert run.record.events == ()


async def test_a_playbook_that_the_agent_starts_ends_its_loop_and_is_worked_on() -> None:
    call = ToolCall(id="c1", name="start_workflow", arguments='{"message": "Rome"}')
    asks = ScriptedAnswer.calling(call, text="I plan it.")
    run = PlaybookTest(_started(), script=[asks, ScriptedAnswer.of("Rome in two days.")])
    record = await run.begin()
    first, second = run.llm.requests
    assert [tool.name for tool in first.tools] == ["start_workflow"]
    assert "Plans a journey." in first.tools[0].description
    # The loop does not ask the model again: the next request is the sub-agent's.
    assert second.messages[-1].content == "plan Rome"
    assert (record.status, run.said) == ("completed", "I plan it.\n\nRome in two days.")
