"""Every row of a workflow's node kinds, edges, sub-agents and pauses through a running gateway: a
message in, replies and the record in the store out. The documents share a gateway, which `ran` opens.

Covers: pipeline/workflows/steps.py, pipeline/workflows/agent_step.py, pipeline/workflows/delegation.py,
pipeline/workflows/normalising.py, pipeline/workflows/run_record.py, pipeline/workflows/compiling.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from gateway.config import ConfigurationProblems, load
from tests.pipeline.workflows.documents import Plain, agent, approval, document, start, way
from tests.support.run_table import Ran, run_table
from tests.support.workflow_rows import ROWS, SUBS


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Ran]:
    """What came of each row."""
    return asyncio.run(run_table(tmp_path_factory.mktemp("workflows"), ROWS))


def _types(one: Ran, node: str) -> list[str]:
    return [entry.type for entry in one.workflow.logs if entry.node == node]


# -- the nodes ------------------------------------------------------------------------------------


def test_a_start_gives_its_first_input_or_the_message(ran: Mapping[str, Ran]) -> None:
    assert (ran["first_input"].reply, ran["message"].reply) == ("Good morning", "the message")
    assert ran["first_input"].logged("start_prompt") == [("start", "Good morning")]


def test_an_agent_gets_the_previous_output_literally_in_all_its_places(ran: Mapping[str, Ran]) -> None:
    one = ran["prompts"]
    said = "<$& $1 {{MESSAGE}}> $& $1 {{MESSAGE}}"
    # An empty prompt becomes the output of the node before.
    assert one.asked == (said, said)
    assert "You are brief." in one.requests[0].messages[0].content


@pytest.mark.parametrize(
    ("name", "said"),
    [("if_0", "condition-0 YES"), ("if_1", "condition-1 oh yes"), ("if_2", "false no")],
)
def test_an_if_compares_trimmed_without_case_and_the_first_match_wins(
    ran: Mapping[str, Ran], name: str, said: str
) -> None:
    assert ran[name].reply.strip() == said
    assert ran[name].logged("logic_check")[0][0] == "if"


def test_an_empty_value_never_matches(ran: Mapping[str, Ran]) -> None:
    assert ran["if_2"].logged("logic_check")[-1][1].endswith("evaluated as false")


def test_a_branch_without_a_matching_connection_ends_and_the_run_completes(ran: Mapping[str, Ran]) -> None:
    one = ran["if_nothing"]
    assert (one.workflow.status, one.asked, one.reply) == ("completed", (), "The workflow flow has ended.")


def test_an_approval_pauses_and_continues_with_the_output_from_before(ran: Mapping[str, Ran]) -> None:
    one = ran["approved"]
    assert "Send it?" in one.replies[0]
    assert one.reply == "send draft"
    state = one.workflow.state
    assert state["pre_approval_output"] == state["draft"] == "draft"
    assert state["ok_approval"] == {"decision": "approve", "note": ""}
    assert _types(one, "ok") == ["step_start", "wait_input", "input_received"]
    assert one.logged("input_received") == [("ok", "User approved this step.")]


def test_a_rejection_with_a_note_follows_its_branch_and_the_note_is_logged(ran: Mapping[str, Ran]) -> None:
    one = ran["asked_again"]
    assert one.reply == "[too long, please approve nothing]"
    logged = "User rejected this step. Feedback: too long, please approve nothing"
    assert one.logged("input_received") == [("ok", logged)]


def test_a_rejection_without_a_connection_completes_the_run(ran: Mapping[str, Ran]) -> None:
    assert (ran["rejected"].workflow.status, ran["rejected"].asked) == ("completed", ())


# -- branches, pauses and the queue ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["approval_first", "approval_last"])
def test_a_branch_beside_an_approval_runs_and_its_follower_is_deferred(
    ran: Mapping[str, Ran], name: str
) -> None:
    assert ran[name].asked == ("side", "after", "next")
    assert ran[name].workflow.status == "completed"


def test_two_approvals_are_asked_one_after_the_other_and_logged_once(ran: Mapping[str, Ran]) -> None:
    one = ran["two_approvals"]
    assert one.asked == ("a", "b")
    waits = [(entry.node, entry.queue_index) for entry in one.workflow.logs if entry.type == "wait_input"]
    assert waits == [("one", 0), ("two", 1)]


def test_where_the_chosen_branch_pauses_again_the_deferred_stay_queued(ran: Mapping[str, Ran]) -> None:
    assert ran["nested"].asked == ("side", "after", "next")


def test_the_deferred_follow_the_chosen_branch_in_their_order(ran: Mapping[str, Ran]) -> None:
    assert ran["deferred"].asked == ("a", "b", "chosen", "c", "d")


def test_a_diamonds_last_node_runs_for_each_branch(ran: Mapping[str, Ran]) -> None:
    assert sorted(ran["diamond"].asked) == ["a", "a", "b", "b"]


def test_a_failed_branch_fails_the_run_and_keeps_the_output_of_the_other(ran: Mapping[str, Ran]) -> None:
    one = ran["failed_branch"]
    assert (one.error, one.workflow.status, one.workflow.state["b"]) == ("The model is down.", "failed", "b")
    assert [node for node, _ in one.logged("llm_error")] == ["a"]


def test_a_circle_without_an_end_fails_after_its_most_steps(ran: Mapping[str, Ran]) -> None:
    assert ran["circle"].workflow.status == "failed"
    assert [node for node, _ in ran["circle"].logged("error")] == ["system"]


# -- sub-agents -----------------------------------------------------------------------------------


def test_sub_agents_are_nested_tools_whose_calls_are_logged(ran: Mapping[str, Ran]) -> None:
    one = ran["sub_agents"]
    assert (one.reply, one.workflow.status) == ("Yes, it is.", "completed")
    logged = one.logged("subagent_call_start", "subagent_call_end")
    found = [json.loads(content) for _, content in logged]
    assert [(each["type"][14:], each["subagentNodeId"], each["depth"]) for each in found] == [
        ("start", "legal", 1),
        ("start", "archive", 2),
        ("end", "archive", 2),
        ("end", "legal", 1),
    ]
    assert {each["parentNodeId"] for each in found} == {"boss"}
    assert (found[1]["parentCallId"], found[1]["subagentName"]) == ("c1", "Archive")


def test_an_error_of_a_sub_agent_goes_back_to_its_parent_which_continues(ran: Mapping[str, Ran]) -> None:
    one = ran["sub_agent_failed"]
    ((_, content),) = one.logged("subagent_call_error")
    assert "The model is down." in json.loads(content)["message"]
    # The parent read the error as the result of its tool, and answered with it.
    assert one.workflow.status == "completed"
    assert one.requests[-1].messages[-1].role == "tool"
    assert "The model is down." in one.reply


# -- older documents ------------------------------------------------------------------------------


def test_an_older_document_asks_chooses_and_ends_as_a_new_one(ran: Mapping[str, Ran]) -> None:
    one = ran["legacy"]
    assert "Well?" in one.replies[0]
    assert (one.reply, one.workflow.status) == ("a", "completed")
    assert ran["legacy_false"].asked == ("no",)


def test_where_both_forms_of_a_condition_are_there_the_new_one_counts(ran: Mapping[str, Ran]) -> None:
    assert (ran["legacy_both"].asked, ran["legacy_both_old"].asked) == (("a",), ("no",))


# -- definitions that are refused -----------------------------------------------------------------

_A_B: Final = (agent("a", tools=SUBS), agent("b", tools=SUBS), agent("c"))
MISTAKES: Final[Mapping[str, tuple[Plain, str]]] = {
    "no start": (document(agent("a")), "there is no start node"),
    "two starts": (
        document(start(), start("s2"), agent("a"), routes=[way("start > a")]),
        "node s2: type: is a second",
    ),
    "nothing behind the start": (document(start(), agent("a")), "nothing follows the start"),
    "an unknown kind": (
        document(start(), {"id": "x", "type": "agnet", "data": {}}, routes=[way("start > x")]),
        "there is no type 'agnet'; there are start, agent, if, approval",
    ),
    "a sub-agent of an agent that may have none": (
        document(start(), agent("a"), agent("b"), routes=[way("start > a"), way("a > b", "subagent")]),
        "data.tools.subagents: must be true",
    ),
    "a sub-agent that is no agent": (
        document(start(), *_A_B, approval("ok"), routes=[way("start > a"), way("a > ok", "subagent")]),
        "target: ok is no agent",
    ),
    "an agent that is its own sub-agent": (
        document(start(), *_A_B, routes=[way("start > a"), way("a > a", "subagent")]),
        "an agent cannot be its own sub-agent",
    ),
    "sub-agents in a circle": (
        document(
            start(),
            *_A_B,
            routes=[way("start > c"), way("a > b", "subagent"), way("b > a", "subagent")],
        ),
        "(a -> b -> a); remove one connection",
    ),
    "a sub-agent of two parents": (
        document(
            start(),
            *_A_B,
            routes=[way("start > a"), way("start > b"), way("a > c", "subagent"), way("b > c", "subagent")],
        ),
        "parent",
    ),
    "a sub-agent in the run": (
        document(start(), *_A_B, routes=[way("start > a"), way("a > c", "subagent"), way("a > c")]),
        "c is a sub-agent, so no other connection",
    ),
    "a connection to nothing": (
        document(start(), agent("a"), routes=[way("start > a"), way("a > ghost")]),
        "there is no node 'ghost'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_definition_with_a_mistake_is_refused_at_the_start(tmp_path: Path, name: str) -> None:
    source, words = MISTAKES[name]
    (tmp_path / "own.json").write_text(json.dumps(source), "utf-8")
    with pytest.raises(ConfigurationProblems) as raised:
        load(None, {}, [f'agent.graph="{tmp_path / "own.json"}"'])
    assert words in str(raised.value)
