"""Every row of a playbook's node kinds through a running gateway: a message in, replies, events and
the record in the store out. The documents share a gateway, which `ran` opens.

Covers: pipeline/playbooks/steps.py, pipeline/playbooks/moves.py, pipeline/playbooks/settling.py,
pipeline/playbooks/sub_agent.py, pipeline/playbooks/hand_back.py, pipeline/playbooks/run_record.py,
pipeline/playbooks/templates.py, pipeline/playbooks/progress.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from gateway.config import ConfigurationProblems, load
from pipeline.domain.events import ResponseComplete
from tests.pipeline.playbooks.documents import Plain, agent, node, playbook, route, trigger, way
from tests.support.playbook_rows import CHILD, IS_IT, ROWS, line
from tests.support.run_table import Ran, nodes_of, run_table


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Ran]:
    """What came of each row."""
    return asyncio.run(run_table(tmp_path_factory.mktemp("playbooks"), ROWS, 'tools.groups=["system"]'))


def _failed(one: Ran) -> str:
    """The words with which a run failed, the same for the person and in the record."""
    assert one.playbook.status == "failed"
    assert one.error == one.playbook.failure
    assert one.playbook.events[-1].type == "workflow_failed"
    return one.error


def test_a_trigger_completes_by_itself_with_the_message(ran: Mapping[str, Ran]) -> None:
    one = ran["trigger"]
    assert isinstance(one.ended, ResponseComplete)
    assert (one.reply, one.playbook.completed) == ("[the message]", ("start", "a"))
    assert one.playbook.outputs["start"]["result"] == "the message"


def test_a_condition_is_checked_without_a_model(ran: Mapping[str, Ran]) -> None:
    assert (ran["condition"].asked, ran["condition_not"].asked) == (("yes",), ("no",))


def test_a_condition_asks_the_model_only_where_it_says_so(ran: Mapping[str, Ran]) -> None:
    assert ran["condition_model"].asked == (IS_IT, "no")


def test_an_unclear_answer_to_a_condition_fails(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["condition_unclear"]) == "if was answered with neither yes nor no."


def test_a_router_follows_the_label_that_the_model_names_in_any_case(ran: Mapping[str, Ran]) -> None:
    assert ran["router"].reply == "two"


def test_a_router_without_a_match_takes_its_default(ran: Mapping[str, Ran]) -> None:
    assert ran["router_default"].reply == "two"


def test_a_router_without_a_match_and_a_default_fails(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["router_none"]) == "r was answered with none of its routes."
    assert len(ran["router_none"].asked) == 1


def test_a_merge_waits_only_for_what_can_still_come(ran: Mapping[str, Ran]) -> None:
    assert ran["merge"].reply == "if:\nfalse\n\na:\na"
    assert ran["merge"].playbook.status == "completed"


def test_a_merge_of_the_first_fires_once_and_ignores_what_comes_later(ran: Mapping[str, Ran]) -> None:
    one = ran["merge_first"]
    assert one.reply == "c"
    assert nodes_of(one.playbook.events, "node_skipped") == ["m"]
    assert one.playbook.completed.count("end") == 1


def test_parallel_branches_are_joined(ran: Mapping[str, Ran]) -> None:
    assert ran["parallel"].reply == "a:\na\n\nb:\nb"


def test_a_failed_branch_is_recorded_and_not_run_again(ran: Mapping[str, Ran]) -> None:
    one = ran["parallel_part"]
    # The person reads what came of the others, and what failed.
    assert (one.playbook.status, one.reply) == ("completed", "b\n\nThe model is down.")
    assert nodes_of(one.playbook.events, "node_failed") == ["a"]
    assert sorted(one.asked) == ["a", "b"]


def test_a_run_in_which_all_branches_fail_has_failed_with_their_words(ran: Mapping[str, Ran]) -> None:
    words = "All parallel branches failed: a: The model is down.; b: The model is down."
    assert _failed(ran["parallel_none"]) == words


def test_a_sub_agent_hands_back_its_summary_and_artifact(ran: Mapping[str, Ran]) -> None:
    one = ran["hand_back"]
    assert one.reply == "<Did it.\n\nThe list>"
    assert one.playbook.outputs["a"]["nextAction"] == "Rest."


def test_prompts_before_and_after_a_sub_agent_write_its_task_and_judge_it(ran: Mapping[str, Ran]) -> None:
    one = ran["judged"]
    assert (len(one.asked), one.reply, one.playbook.outputs["a"]["verdict"]) == (3, "42", "MET")


def test_a_result_that_is_not_accepted_fails(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["not_accepted"]) == "What a has done was not accepted: NOT MET: it is 41"


@pytest.mark.parametrize("name", ["needs", "blocked"])
def test_a_blocked_agent_waits_for_the_person_and_runs_again(ran: Mapping[str, Ran], name: str) -> None:
    one = ran[name]
    assert one.replies[-2:] == ("Which year?", "done")
    assert "node_waiting" in [event.type for event in one.playbook.events]
    assert one.playbook.status == "completed"


def test_a_failed_agent_fails_the_run(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["agent_failed"]) == "The model is down."
    assert ran["agent_failed"].asked == ("a",)


def test_a_tool_is_called_with_its_arguments(ran: Mapping[str, Ran]) -> None:
    assert "42" in ran["tool"].reply


def test_arguments_that_do_not_fit_the_tool_fail_before_it_runs(ran: Mapping[str, Ran]) -> None:
    words = _failed(ran["tool_arguments"])
    assert words.startswith("t could not use calculate: ")
    assert "expression" in words
    assert ran["tool_arguments"].asked == ()


def test_a_tool_that_is_not_there_fails_the_run(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["tool_unknown"]).startswith("t could not use none: ")


def test_a_wait_is_on_record_with_its_time_and_continues(ran: Mapping[str, Ran]) -> None:
    one = ran["wait"]
    assert one.replies == ("Later.", "back to go")
    (waits,) = [event for event in one.playbook.events if event.type == "node_waiting"]
    assert (waits.node, "due" in waits.details) == ("w", True)


@pytest.mark.parametrize(("name", "times"), [("loop", 10), ("loop_three", 3), ("loop_condition", 2)])
def test_a_loop_repeats_its_body(ran: Mapping[str, Ran], name: str, times: int) -> None:
    one = ran[name]
    assert (one.asked, one.reply) == (("a",) * times, "done a")
    assert one.playbook.outputs["loop"]["iterations"] == times


def test_a_loop_asks_the_model_whether_to_continue_where_it_says_so(ran: Mapping[str, Ran]) -> None:
    assert [text.partition("?")[0] for text in ran["loop_model"].asked] == ["More", "a", "More"]


def test_a_failure_in_a_loop_fails_it(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["loop_failed"]) == "The model is down."


def test_a_sub_workflow_gives_its_result_to_its_caller(ran: Mapping[str, Ran]) -> None:
    one = ran["sub"]
    assert one.reply == "[child <go>]"
    assert one.playbook.outputs["child.json/c"]["result"] == "child <go>"


@pytest.mark.parametrize("last", ["agent", "router", "condition", "merge", "tool", "asks"])
def test_a_sub_workflow_returns_whatever_its_last_node_is(ran: Mapping[str, Ran], last: str) -> None:
    one = ran[f"sub_{last}"]
    assert (one.playbook.status, one.asked[-1]) == ("completed", "after")


def test_the_failure_of_a_sub_workflow_is_its_callers(ran: Mapping[str, Ran]) -> None:
    assert _failed(ran["sub_failed"]).startswith("last_fails could not use none: ")
    assert ran["sub_failed"].asked == ()


def test_a_transfer_ends_everything_and_begins_the_other(ran: Mapping[str, Ran]) -> None:
    one = ran["transfer"]
    assert (one.reply, one.playbook.status) == ("child a!", "completed")
    assert one.playbook.plain()["lastCompletedWorkflow"] == {"workflow": "book", "transferredTo": "child"}


def test_a_transfer_from_a_sub_workflow_never_returns(ran: Mapping[str, Ran]) -> None:
    assert ran["transfer_stack"].asked == ("child go",)


def test_user_input_takes_the_words_after_its_question(ran: Mapping[str, Ran]) -> None:
    assert ran["input"].replies == ("Which, go?", "[The red one.]")


def test_user_input_with_options_takes_a_button(ran: Mapping[str, Ran]) -> None:
    assert ran["input_options"].replies == ("Which?\n(red / blue)", "[blue]")


def test_places_are_filled_once_and_literally_and_one_without_a_value_stays(ran: Mapping[str, Ran]) -> None:
    one = ran["templates"]
    said, thread = one.asked[0].rsplit(" ", 1)
    # What looks like a place in the message stays as it is.
    assert said == "{{Said.result}} $& \\1 {{missing}}"
    assert thread == "{{a.threadId}}"
    found = one.playbook.plain()["nodeOutputs"]["a"]
    assert one.reply.endswith(found["threadId"])
    assert "/main/a/" in found["threadId"]


def test_edges_without_a_handle_are_all_followed(ran: Mapping[str, Ran]) -> None:
    assert sorted(ran["branches"].asked) == ["a", "b"]


def test_words_that_look_like_the_orchestrators_are_the_persons(ran: Mapping[str, Ran]) -> None:
    assert ran["prefixed"].reply == "[[Workflow] red]"


def test_the_events_and_checkpoints_of_a_run_are_on_record(ran: Mapping[str, Ran]) -> None:
    one = ran["events"].playbook
    assert [(event.type, event.node) for event in one.events] == [
        ("workflow_started", ""),
        ("node_started", "start"),
        ("node_completed", "start"),
        ("edge_activated", ""),
        ("node_started", "a"),
        ("node_thinking", "a"),
        ("node_completed", "a"),
        ("workflow_completed", ""),
    ]
    found = [(each.node, each.subtype, each.sequence) for each in one.checkpoints]
    assert found == [("start", "chat-app", 1), ("a", "agent", 2)]
    plain = one.plain()
    last = plain["checkpoints"][-1]["nodeOutput"]
    assert last == plain["nodeOutputs"]["a"]
    assert {"nodeId", "label", "subtype", "category", "result", "threadId", "completedAt"} <= set(last)


def test_responses_are_said_in_order(ran: Mapping[str, Ran]) -> None:
    assert ran["responses"].reply == "One.\n\na"


def _with(*nodes: Plain, edges: Sequence[Plain]) -> Plain:
    return playbook(trigger(), *nodes, edges=edges)


_LEAVES: Final = node("transfer", "t", workflow="child.json")
MISTAKES: Final[Mapping[str, tuple[Plain, str]]] = {
    "a definition without a trigger": (
        playbook(agent("a")),
        "there is no trigger; add one node of a subtype such as chat-app",
    ),
    "a router without routes": (line(node("router", "r")), "config.routes: has no route"),
    "a transfer in a loop": (
        _with(node("loop", "l"), _LEAVES, edges=[*route("start > l"), way("l > t", "loop-start")]),
        "node t: is inside of a loop; lead out of the loop first",
    ),
    "a transfer beside another branch": (
        _with(agent("b"), _LEAVES, edges=[*route("start > b"), *route("start > t")]),
        "node t: is in a branch behind start; merge the branches first",
    ),
    "sub-workflows in a circle": (
        line(node("sub-workflow", "s", workflow="round.json")),
        "the sub-workflow round.json leads back to itself",
    ),
    "sub-workflows too deep": (
        line(node("sub-workflow", "s", workflow="d0.json")),
        "5 levels in all; at most 4",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_of_the_definition_is_a_problem_of_the_configuration(tmp_path: Path, name: str) -> None:
    source, words = MISTAKES[name]
    deep = {f"d{at}.json": line(node("sub-workflow", "s", workflow=f"d{at + 1}.json")) for at in range(4)}
    others = {"child.json": CHILD, "d4.json": CHILD, **deep}
    others["round.json"] = line(node("sub-workflow", "s", workflow="round.json"))
    for file, other in {**others, "own.json": source}.items():
        (tmp_path / file).write_text(json.dumps(other), "utf-8")
    with pytest.raises(ConfigurationProblems) as raised:
        load(None, {}, [f'agent.graph="{tmp_path / "own.json"}"'])
    assert words in str(raised.value)
