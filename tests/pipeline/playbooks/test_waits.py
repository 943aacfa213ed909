"""Waits and questions of a playbook: due times on record, and answers in any words."""

from __future__ import annotations

import pytest

from pipeline.domain.errors import GraphError
from tests.pipeline.playbooks.documents import PlaybookTest, agent, node, playbook, route, trigger, way


async def test_a_wait_is_a_due_time_on_record_and_continues_when_it_has_come() -> None:
    edges = route("start > hi > w > a")
    nodes = [trigger(), node("response", "hi", text="Welcome."), node("wait", "w", amount=3, unit="d")]
    run = PlaybookTest(playbook(*nodes, agent("a"), edges=edges))
    record = await run.begin()
    assert (record.status, record.current, run.prompt) == ("waiting", ("w",), "Welcome.")
    (gate,) = run.outcome.gates
    assert (gate.expires_at, gate.asks) == (run.clock.now() + 259_200, "nothing")
    assert (await run.pass_time(259_199)).status == "waiting"
    record = await run.pass_time(1)
    assert (record.status, run.said) == ("completed", "a")
    assert record.failure == ""


async def test_a_wait_that_says_nothing_says_when_it_continues() -> None:
    nodes = [trigger(), node("wait", "w", amount=90, unit="min"), agent("a")]
    run = PlaybookTest(playbook(*nodes, edges=route("start > w > a")))
    await run.begin()
    assert run.prompt == "I continue in 1.5 hours."


async def test_a_wait_that_is_over_before_it_was_shown_loses_no_words() -> None:
    nodes = [
        trigger(),
        node("wait", "w", amount=1, unit="h", message="Wait."),
        node("response", "r", text="Go."),
    ]
    run = PlaybookTest(playbook(*nodes, edges=route("start > w > r")))
    await run.begin()
    await run.clock.advance(7_200)
    await run.resume()  # the same turn, which had not answered yet
    assert run.said == "Wait.\n\nGo."


async def test_two_waits_in_branches_run_at_the_same_time() -> None:
    edges = [*route("start > one > a > m > end"), *route("start > two > b > m")]
    nodes = [trigger(), node("wait", "one", amount=2, unit="h"), node("wait", "two", amount=1, unit="h")]
    nodes += [agent("a"), agent("b"), node("merge", "m"), node("response", "end")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    await run.begin()
    assert (await run.pass_time(3_600)).status == "waiting"
    assert run.asked == ["b"]
    assert (await run.pass_time(3_600)).status == "completed"
    assert run.asked == ["b", "a"]


async def test_user_input_waits_for_words_and_its_answer_is_its_result() -> None:
    nodes = [
        trigger(),
        node("user-input", "ask", prompt="Your name, {{trigger}}?"),
        agent("a", "{{ask.result}}"),
    ]
    run = PlaybookTest(playbook(*nodes, edges=route("start > ask > a")))
    record = await run.begin()
    assert (record.status, record.current, run.prompt) == ("waiting", ("ask",), "Your name, hello?")
    assert run.outcome.gates[0].asks == "words"
    await run.answer("Ada")
    assert run.said == "Ada"


async def test_user_input_with_options_takes_only_these() -> None:
    nodes = [trigger(), node("user-input", "ask", prompt="Go?", options=["go", "stop"])]
    edges = [*route("start > ask > if"), way("if > a", "condition-true")]
    nodes += [node("condition", "if", expression="ask.result == 'go'"), agent("a")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    await run.begin()
    with pytest.raises(GraphError):
        await run.answer("perhaps")
    await run.answer("go")
    assert run.said == "a"


async def test_while_a_question_is_open_a_wait_beside_it_continues() -> None:
    edges = [*route("start > ask > a"), *route("start > w > remind")]
    nodes = [trigger(), node("user-input", "ask", prompt="Name?"), node("wait", "w", amount=1, unit="h")]
    nodes += [agent("a", "{{ask.result}}"), node("response", "remind", text="Still there?")]
    run = PlaybookTest(playbook(*nodes, edges=edges))
    await run.begin()
    assert run.prompt == "Name?"
    assert (await run.pass_time(3_600)).status == "waiting"
    assert run.prompt == "Still there?\n\nName?"
    record = await run.answer("Ada")
    assert (record.status, record.outputs["a"]["result"]) == ("completed", "Ada")
