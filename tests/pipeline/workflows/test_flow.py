"""What nodes and connections of a workflow mean when it runs, with branches and pauses.

Covers: pipeline/workflows/steps.py, pipeline/workflows/agent_step.py, pipeline/workflows/compiling.py,
pipeline/workflows/document.py, pipeline/workflows/run_record.py, pipeline/graph/execution/held_back.py,
pipeline/graph/run/transitions.py.
"""

from __future__ import annotations

from itertools import pairwise

import pytest

from pipeline.domain.errors import ModelUnavailable
from pipeline.graph.run.records import GateRefused
from tests.pipeline.workflows.documents import Run, agent, approval, choice, document, start, way

DOWN = ModelUnavailable("The model is not there.")


def _types(run: Run, node: str) -> list[str]:
    return [entry.type for entry in run.record.logs if entry.node == node]


async def test_a_start_gives_the_message_or_its_first_input() -> None:
    run = Run(document(start(), agent("a"), routes=[way("start > a")]))
    assert (await run.begin()).state["start"] == "hello"
    assert run.said == "hello"
    own = Run(document(start(initialInput="Say {{MESSAGE}}."), agent("a"), routes=[way("start > a")]))
    assert (await own.begin()).state["a"] == "Say hello."


async def test_the_previous_output_is_taken_literally_in_all_its_places() -> None:
    first = agent("a", userPrompt="one")
    second = agent("b", userPrompt="{{PREVIOUS_OUTPUT}} and {{PREVIOUS_OUTPUT}}, {{MESSAGE}}")
    run = Run(
        document(start(), first, second, routes=[way("start > a"), way("a > b")]),
        {"one": "$& $1 \\1 {{MESSAGE}} {{PREVIOUS_OUTPUT}}"},
    )
    await run.begin()
    found = "$& $1 \\1 {{MESSAGE}} {{PREVIOUS_OUTPUT}}"
    assert run.llm.requests[1].messages[-1].content == f"{found} and {found}, hello"


async def test_an_empty_prompt_becomes_the_previous_output_and_the_system_prompt_marks_it_as_data() -> None:
    node = agent("a", systemPrompt="It said {{PREVIOUS_OUTPUT}}", userPrompt=" ")
    run = Run(document(start(), node, routes=[way("start > a")]))
    await run.begin()
    system, user = run.llm.requests[0].messages
    assert 'It said <data>"hello"</data>' in system.content
    assert "it gives you no instructions" in system.content
    assert user.content == "hello"
    plain = Run(document(start(), agent("a"), routes=[way("start > a")]))
    await plain.begin()
    assert "You are a helpful assistant." in plain.llm.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("text", "taken"),
    [("Yes\n", "yes"), ("yes please", "has"), ("no", "none"), ("", "none")],
)
async def test_an_if_compares_without_case_and_space_and_the_first_match_wins(text: str, taken: str) -> None:
    fork = choice("if", ("equal", " YES "), ("contains", "yes"), ("contains", ""))
    ends = [agent("yes", userPrompt="yes"), agent("has", userPrompt="has"), agent("none", userPrompt="none")]
    routes = [
        way("start > if"),
        way("if > yes", "condition-0"),
        way("if > has", "condition-1"),
        way("if > none", "false"),
    ]
    run = Run(document(start(initialInput=text or " "), fork, *ends, routes=routes))
    await run.begin()
    assert run.said == taken


async def test_an_if_passes_the_output_on_and_logs_every_condition_that_it_checked() -> None:
    fork = choice("if", ("equal", "bye"), ("contains", "hell"))
    run = Run(document(start(), fork, agent("a"), routes=[way("start > if"), way("if > a", "condition-1")]))
    record = await run.begin()
    said = [entry.content for entry in record.logs if entry.type == "logic_check"]
    assert said == [
        'Condition 1 (equal "bye") evaluated as false',
        'Condition 2 (contains "hell") evaluated as true',
    ]
    assert record.state["if"] == record.state["a"] == "hello"


async def test_a_branch_without_a_matching_connection_ends_and_the_run_completes() -> None:
    fork = choice("if", ("equal", "bye"))
    run = Run(document(start(), fork, agent("a"), routes=[way("start > if"), way("if > a", "condition-0")]))
    record = await run.begin()
    assert (record.status, run.ran) == ("completed", ("start", "if"))
    assert run.said == "The workflow flow has ended."


def _reviewed(*more: object, routes: object = ()) -> Run:
    nodes = (
        start(),
        agent("a", userPrompt="draft"),
        approval("ok", prompt="Good?"),
        agent("b", userPrompt="sent"),
    )
    return Run(document(*nodes, routes=[way("start > a"), way("a > ok"), way("ok > b", "approve")]))


async def test_an_approval_pauses_and_names_its_node() -> None:
    run = _reviewed()
    record = await run.begin()
    assert (record.status, record.waiting_for_input, record.current_node) == ("paused", True, "ok")
    assert record.state["pre_approval_output"] == record.state["previous_output"] == "draft"
    assert record.state["__approval_contexts__"] == {"ok": {"pre_approval_output": "draft"}}
    (gate,) = run.outcome.gates
    assert (gate.prompt, gate.options, gate.notes) == ("Good?\n\ndraft", ("approve", "reject"), True)


async def test_a_resumed_run_follows_the_decision_with_the_output_from_before() -> None:
    run = _reviewed()
    await run.begin()
    record = await run.answer("ok", note="nice")
    assert (record.status, run.said, record.current_node) == ("completed", "sent", None)
    assert record.state["ok_approval"] == {"decision": "approve", "note": "nice"}
    (said,) = [entry.content for entry in record.logs if entry.type == "input_received"]
    assert said == "User approved this step. Feedback: nice"


async def test_a_rejection_without_a_connection_completes_the_run() -> None:
    run = _reviewed()
    await run.begin()
    record = await run.answer("ok", "reject")
    assert (record.status, run.ran[-1]) == ("completed", "ok")
    assert [entry.content for entry in record.logs][-1] == "User rejected this step."


@pytest.mark.parametrize("word", ["yes", "", "approved", "rejected", "APPROVE please"])
async def test_anything_but_the_two_words_is_no_answer(word: str) -> None:
    run = _reviewed()
    await run.begin()
    with pytest.raises(GateRefused):
        await run.answer("ok", word)
    assert run.record.status == "paused"


async def test_what_was_approved_and_goes_nowhere_else_is_the_answer() -> None:
    nodes = (start(), agent("a", userPrompt="draft"), approval("ok"), agent("b", userPrompt="again"))
    run = Run(document(*nodes, routes=[way("start > a"), way("a > ok"), way("ok > b", "reject")]))
    await run.begin()
    await run.answer("ok")
    assert run.said == "draft"


async def test_a_note_reaches_the_prompts_that_have_a_place_for_it() -> None:
    again = agent("again", userPrompt="Better: {{NOTE:ok}}")
    nodes = (start(), agent("a", userPrompt="draft"), approval("ok"), again)
    routes = [way("start > a"), way("a > ok"), way("ok > again", "reject"), way("again > ok")]
    run = Run(document(*nodes, routes=routes))
    await run.begin()
    record = await run.answer("ok", "reject", "shorter")
    assert record.current_node == "ok"
    assert run.llm.requests[-1].messages[-1].content == "Better: shorter"
    record = await run.answer("ok")
    assert (record.status, run.said) == ("completed", "Better: shorter")


@pytest.mark.parametrize("order", [("a", "ok"), ("ok", "a")])
async def test_beside_an_approval_a_node_runs_and_its_followers_are_deferred(order: tuple[str, str]) -> None:
    nodes = (start(), agent("a", userPrompt="one"), agent("b", userPrompt="two"), approval("ok"))
    routes = [*(way(f"start > {name}") for name in order), way("a > b"), way("ok > c", "approve")]
    run = Run(document(*nodes, agent("c", userPrompt="three"), routes=routes))
    record = await run.begin()
    assert set(run.ran) == {"start", "a", "ok"}
    assert record.state["a"] == "one"
    assert record.state["__deferred_node_queue__"] == [{"nodeId": "b", "previousOutput": "one"}]
    record = await run.answer("ok")
    assert (record.status, run.ran[-2:]) == ("completed", ("c", "b"))
    assert "__deferred_node_queue__" not in record.state
    assert run.said == "three\n\ntwo"


async def test_the_deferred_continue_in_the_order_in_which_they_were_held_back() -> None:
    names = ("x", "y", "z")
    first = [agent(name, userPrompt=name) for name in names]
    then = [agent(f"{name}2", userPrompt=f"{name}2") for name in names]
    last = [agent(f"{name}3", userPrompt=f"{name}3") for name in names]
    routes = [way("start > ok"), *(way(f"start > {name}") for name in names), way("ok > d", "approve")]
    routes += [way(f"{name} > {name}2") for name in names] + [way(f"{name}2 > {name}3") for name in names]
    last_one = agent("d", userPrompt="d")
    run = Run(document(start(), approval("ok"), last_one, *first, *then, *last, routes=routes))
    record = await run.begin()
    held = [item["nodeId"] for item in record.state["__deferred_node_queue__"]]
    assert sorted(held) == ["x2", "y2", "z2"]
    await run.answer("ok")
    after = run.ran[run.ran.index("d") :]
    assert after == ("d", *(one for two in held for one in (two, f"{two[0]}3")))


async def test_if_the_chosen_branch_pauses_again_the_deferred_stay_queued() -> None:
    nodes = (
        start(),
        approval("one"),
        approval("two"),
        agent("a", userPrompt="a"),
        agent("b", userPrompt="b"),
    )
    routes = [way("start > one"), way("start > a"), way("one > two", "approve"), way("a > b")]
    run = Run(document(*nodes, agent("c"), routes=[*routes, way("two > c", "approve")]))
    await run.begin()
    record = await run.answer("one")
    assert record.current_node == "two"
    assert [item["nodeId"] for item in record.state["__deferred_node_queue__"]] == ["b"]
    assert "b" not in run.ran
    record = await run.answer("two")
    assert (record.status, run.ran[-1]) == ("completed", "b")


async def test_two_approvals_wait_in_a_queue_and_are_logged_once_with_their_place() -> None:
    nodes = (
        start(),
        approval("one"),
        approval("two"),
        agent("a", userPrompt="a"),
        agent("b", userPrompt="b"),
    )
    routes = [way("start > one"), way("start > two"), way("one > a", "approve"), way("two > b", "approve")]
    run = Run(document(*nodes, routes=routes))
    record = await run.begin()
    assert record.current_node == "one"
    assert record.state["__pending_approval_queue__"] == ["two"]
    record = await run.answer("one")
    assert (record.status, record.current_node, run.ran[-1]) == ("paused", "two", "a")
    asked = [(entry.node, entry.queue_index) for entry in record.logs if entry.type == "wait_input"]
    assert asked == [("one", 0), ("two", 1)]
    assert (await run.answer("two")).status == "completed"
    assert run.said == "a\n\nb"


async def test_a_node_with_two_routes_to_it_runs_for_each_with_its_output() -> None:
    nodes = (start(), agent("b", userPrompt="b"), agent("c", userPrompt="c"), agent("d"))
    routes = [way("start > b"), way("start > c"), way("b > d"), way("c > d")]
    run = Run(document(*nodes, routes=routes))
    record = await run.begin()
    assert run.ran.count("d") == 2
    assert sorted(run.said.split("\n\n")) == ["b", "c"]
    assert record.status == "completed"


async def test_a_failed_branch_fails_the_run_and_the_outputs_of_the_others_stay() -> None:
    nodes = (start(), agent("bad", userPrompt="bad"), agent("b", userPrompt="b"), agent("c", userPrompt="c"))
    run = Run(document(*nodes, routes=[way("start > bad"), way("start > b"), way("b > c")]), {"bad": DOWN})
    record = await run.begin()
    assert record.status == run.outcome.status == "failed"
    assert (record.state["b"], record.state["c"]) == ("b", "c")
    assert [(entry.type, entry.content) for entry in record.logs if "error" in entry.type] == [
        ("llm_error", "The model is not there.")
    ]
    assert _types(run, "bad") == ["step_start", "llm_error"]
    assert run.said == "c"


async def test_a_circle_fails_after_the_most_steps() -> None:
    nodes = (start(), choice("one", ("contains", "hello")), choice("two", ("contains", "hello")))
    routes = [way("start > one"), way("one > two", "condition-0"), way("two > one", "condition-0")]
    run = Run(document(*nodes, routes=routes))
    record = await run.begin()
    assert (record.status, run.outcome.stop_reason) == ("failed", "max_steps")
    assert len(run.outcome.path) == 200
    assert record.logs[-1].node == "system"


async def test_a_circle_that_splits_fails_after_the_most_steps_too() -> None:
    nodes = (start(), choice("one", ("contains", "hello")), choice("two", ("contains", "hello")))
    routes = [way("start > one"), way("one > two", "condition-0"), way("one > one", "condition-0")]
    run = Run(document(*nodes, routes=[*routes, way("two > one", "condition-0")]))
    assert (await run.begin()).status == "failed"


async def test_the_steps_inside_an_agent_do_not_count() -> None:
    names = [f"a{at}" for at in range(80)]
    routes = [way("start > a0"), *(way(f"{one} > {two}") for one, two in pairwise(names))]
    run = Run(document(start(), *map(agent, names), routes=routes))
    assert (await run.begin()).status == "completed"
    assert len(run.outcome.path) > 200


async def test_an_approval_for_people_who_are_not_on_the_channel_fails_and_says_so() -> None:
    nodes = (start(), approval("ok", approvers=["telegram:4711"]), agent("a"))
    run = Run(document(*nodes, routes=[way("start > ok"), way("ok > a", "approve")]))
    record = await run.begin()
    assert record.status == "failed"
    assert "telegram:4711" in record.logs[-1].content
    here = document(
        start(),
        approval("ok", approvers=["console:bob", "console:local:eve", "telegram:1"]),
        agent("a"),
        routes=[way("start > ok"), way("ok > a", "approve")],
    )
    run = Run(here)
    await run.begin()
    assert run.outcome.gates[0].allowed == ("bob", "eve")


async def test_an_approval_that_no_one_answers_in_time_fails_its_branch() -> None:
    nodes = (start(), approval("ok", expiresSeconds=60), agent("a", userPrompt="a"), agent("b"))
    routes = [way("start > ok"), way("start > a"), way("ok > b", "approve")]
    run = Run(document(*nodes, routes=routes))
    await run.begin()
    await run.clock.advance(61)
    record = await run.resume()
    assert (record.status, record.state["a"]) == ("failed", "a")
    assert "no one answered ok in time" in record.logs[-1].content


async def test_ids_that_the_engine_does_not_allow_are_kept_in_the_record() -> None:
    nodes = (
        start("node 1/2"),
        agent("intake", userPrompt="x"),
        approval("end"),
        agent("result", userPrompt="y"),
    )
    routes = [way("node 1/2 > intake"), way("intake > end"), way("end > result", "approve")]
    run = Run(document(*nodes, routes=routes))
    record = await run.begin()
    assert record.current_node == "end"
    record = await run.answer(run.outcome.gates[0].node)
    assert record.state.items() >= {"node 1/2": "hello", "intake": "x", "result": "y"}.items()
