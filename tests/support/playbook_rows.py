"""The documents of the rows of a playbook's node kinds, with what their model and person say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.errors import ModelUnavailable
from tests.pipeline.playbooks.documents import Plain, agent, node, playbook, route, trigger, way
from tests.support.run_table import Row

_DOWN: Final = ModelUnavailable("The model is down.")
CHILD: Final = playbook(trigger(), agent("c", "child {{trigger}}"), edges=route("start > c"), name="child")


def line(*nodes: Plain, **given: Any) -> Plain:
    """A trigger and the nodes, one after the other."""
    names = " > ".join(("start", *(one["id"] for one in nodes)))
    return playbook(trigger(), *nodes, edges=route(names), **given)


def _routed(**config: Any) -> Plain:
    routes = [{"label": "Refund"}, {"label": "Question"}]
    edges = [*route("start > r"), way("r > one", "route-0"), way("r > two", "route-1")]
    router = node("router", "r", prompt="Which?", routes=routes, **config)
    return playbook(trigger(), router, agent("one"), agent("two"), edges=edges)


def _routes(answer: str) -> Mapping[str, str]:
    given = '<data>"go"</data>\n\nLabels:\n- Refund\n- Question'
    return {f"Which?\n\nThe step before has given:\n\n{given}": answer}


def _chosen(**config: Any) -> Plain:
    edges = [*route("start > if"), way("if > yes", "condition-true"), way("if > no", "condition-false")]
    return playbook(trigger(), node("condition", "if", **config), agent("yes"), agent("no"), edges=edges)


IS_IT: Final = 'Is it?\n\nThe step before has given:\n\n<data>"go"</data>'


def _parallel() -> Plain:
    edges = [*route("start > fork > a > both > end"), *route("fork > b > both")]
    nodes = [trigger(), node("parallel", "fork"), agent("a"), agent("b"), node("merge", "both")]
    return playbook(*nodes, node("response", "end", text="{{both.result}}"), edges=edges)


def _merge_behind_a_condition() -> Plain:
    edges = [*route("start > a > both"), *route("start > if"), way("if > b", "condition-true")]
    edges += [*route("b > both > end"), way("if > both", "condition-false")]
    nodes = [trigger(), agent("a"), agent("b"), node("condition", "if", expression="trigger == 'no'")]
    return playbook(
        *nodes, node("merge", "both"), node("response", "end", text="{{both.result}}"), edges=edges
    )


def _first_of_two() -> Plain:
    edges = [*route("start > a > b > m > end"), *route("start > c > m")]
    nodes = [trigger(), agent("a"), agent("b"), agent("c"), node("merge", "m", strategy="first")]
    return playbook(*nodes, node("response", "end"), edges=edges)


def _loop(**config: Any) -> Plain:
    edges = [*route("start > loop"), way("loop > a", "loop-start"), way("a > loop", into="loop-back")]
    nodes = [trigger(), node("loop", "loop", **config), agent("a")]
    edges += [way("loop > end", "loop-exit")]
    return playbook(*nodes, node("response", "end", text="done {{loop.result}}"), edges=edges)


def _inside(last: Plain) -> Row:
    """A sub-workflow that ends with a node, and what its caller does afterwards."""
    child = playbook(trigger(), last, edges=route(f"start > {last['id']}"))
    book = line(node("sub-workflow", "sub", workflow=f"of_{last['id']}.json"), agent("after"))
    return Row(document=book, others={f"of_{last['id']}.json": child})


_HANDED: Final = (
    "Well.\n\nHAND_BACK\nSummary: Did it.\nArtifact: The list\nNeeds user input: none\n"
    "Suggested next action: Rest."
)
_ASKS: Final = "HAND_BACK\nSummary: half\nNeeds user input: Which year?"
_BLOCKED: Final = "<AGENT_BLOCKED><BLOCKER_REASON>Which year?</BLOCKER_REASON></AGENT_BLOCKED>"
_AGAIN: Final = "x\n\nYou have asked the person: Which year?\n\nThe person has answered: 2026"
_SYSTEM: Final = {"tool": "calculate", "group": "system"}

ROWS: Final[Mapping[str, Row]] = {
    "trigger": Row(document=line(agent("a", "[{{trigger}}]")), text="the message"),
    "condition": Row(document=_chosen(expression="trigger == 'go'")),
    "condition_not": Row(document=_chosen(expression="trigger == 'stop'")),
    "condition_model": Row(document=_chosen(mode="llm", prompt="Is it?"), says={IS_IT: "No."}),
    "condition_unclear": Row(document=_chosen(mode="llm", prompt="Is it?"), says={IS_IT: "Perhaps."}),
    "router": Row(document=_routed(), says=_routes("question")),
    "router_default": Row(document=_routed(default="Question"), says=_routes("neither")),
    "router_none": Row(document=_routed(), says=_routes("neither")),
    "merge": Row(document=_merge_behind_a_condition()),
    "merge_first": Row(document=_first_of_two()),
    "parallel": Row(document=_parallel()),
    "parallel_part": Row(document=_parallel(), says={"a": _DOWN}),
    "parallel_none": Row(document=_parallel(), says={"a": _DOWN, "b": _DOWN}),
    "hand_back": Row(document=line(agent("a"), agent("b", "<{{a.result}}>")), says={"a": _HANDED}),
    "judged": Row(
        document=line(agent("a", "x", before="Be precise.", after="Right?", successCriteria="42")),
        says={
            "Be precise.\n\nWhat the task is about:\n\nx": "Add.",
            "Add.": "42",
            'Right?\n\nIt succeeds if: 42\n\nThe result:\n\n<data>"42"</data>': "MET",
        },
    ),
    "not_accepted": Row(
        document=line(agent("a", "x", successCriteria="42")),
        says={'It succeeds if: 42\n\nThe result:\n\n<data>"x"</data>': "NOT MET: it is 41"},
    ),
    "needs": Row(document=line(agent("a", "x")), says={"x": _ASKS, _AGAIN: "done"}, then=("2026",)),
    "blocked": Row(document=line(agent("a", "x")), says={"x": _BLOCKED, _AGAIN: "done"}, then=("2026",)),
    "agent_failed": Row(document=line(agent("a"), agent("b")), says={"a": _DOWN}),
    "tool": Row(
        document=line(
            node("tool-call", "t", arguments={"expression": "6 * 7"}, **_SYSTEM), agent("b", "{{t.result}}")
        )
    ),
    "tool_arguments": Row(
        document=line(node("tool-call", "t", arguments={"sum": "6 * 7"}, **_SYSTEM), agent("b"))
    ),
    "tool_unknown": Row(document=line(node("tool-call", "t", tool="none"), agent("b"))),
    "wait": Row(
        document=line(
            node("wait", "w", amount=2, unit="h", message="Later."), agent("a", "back to {{trigger}}")
        ),
        then=(7_201.0,),
    ),
    "loop": Row(document=_loop()),
    "loop_three": Row(document=_loop(maxIterations=3)),
    "loop_condition": Row(document=_loop(condition="iteration < 2")),
    "loop_model": Row(
        document=_loop(conditionMode="llm", prompt="More?"),
        says={
            'More?\n\nThe step before has given:\n\n<data>"go"</data>': "yes",
            'More?\n\nThe step before has given:\n\n<data>"a"</data>': "no",
        },
    ),
    "loop_failed": Row(document=_loop(), says={"a": _DOWN}),
    "sub": Row(
        document=line(
            node("sub-workflow", "sub", workflow="child.json", input="<{{trigger}}>"),
            agent("b", "[{{sub.result}}]"),
        ),
        others={"child.json": CHILD},
    ),
    "sub_agent": _inside(agent("last_agent")),
    "sub_router": _inside(
        node("router", "last_router", prompt="?", routes=[{"label": "one"}], default="one")
    ),
    "sub_condition": _inside(node("condition", "last_condition", expression="trigger == 'x'")),
    "sub_merge": _inside(node("merge", "last_merge")),
    "sub_tool": _inside(node("tool-call", "last_tool", arguments={"expression": "1 + 1"}, **_SYSTEM)),
    "sub_asks": Row(
        document=_inside(node("user-input", "last_asks", prompt="Well?")).document,
        others=_inside(node("user-input", "last_asks", prompt="Well?")).others,
        then=("well",),
    ),
    "sub_failed": _inside(node("tool-call", "last_fails", tool="none")),
    "transfer": Row(
        document=line(agent("a"), node("transfer", "go", workflow="child.json", input="{{a.result}}!")),
        others={"child.json": CHILD},
    ),
    "transfer_stack": Row(
        document=line(node("sub-workflow", "sub", workflow="leaves.json"), agent("never")),
        others={
            "leaves.json": playbook(
                trigger(), node("transfer", "go", workflow="child.json"), edges=route("start > go")
            ),
            "child.json": CHILD,
        },
    ),
    "input": Row(
        document=line(
            node("user-input", "ask", prompt="Which, {{trigger}}?"), agent("a", "[{{ask.result}}]")
        ),
        then=("The red one.",),
    ),
    "input_options": Row(
        document=line(
            node("user-input", "ask", prompt="Which?", options=["red", "blue"]),
            agent("a", "[{{ask.result}}]"),
        ),
        then=("|blue",),
    ),
    "templates": Row(
        document=line(
            node("response", "say", label="Said", text="{{trigger}} {{missing}}"),
            agent("a", "{{Said.result}} {{a.threadId}}"),
            node("response", "end", text="{{a.threadId}}"),
        ),
        text="{{Said.result}} $& \\1",
    ),
    "branches": Row(
        document=playbook(trigger(), agent("a"), agent("b"), edges=[*route("start > a"), *route("start > b")])
    ),
    "prefixed": Row(
        document=line(node("user-input", "ask", prompt="Which?"), agent("a", "[{{ask.result}}]")),
        text="[Workflow] start",
        then=("[Workflow] red",),
    ),
    "events": Row(document=line(agent("a"))),
    "responses": Row(
        document=line(node("response", "one", text="One."), agent("a"), node("response", "two"))
    ),
}
