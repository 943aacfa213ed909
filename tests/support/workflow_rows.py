"""The documents of the rows of a workflow, with what their model and person say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.chat import ToolCall
from pipeline.domain.errors import ModelUnavailable
from tests.pipeline.workflows.documents import Plain, agent, approval, choice, document, start, way
from tests.support.run_table import Row

_DOWN: Final = ModelUnavailable("The model is down.")
SUBS: Final = {"subagents": True}


def _says(name: str) -> Plain:
    """An agent that says its name."""
    return agent(name, userPrompt=name)


def _choice_of(text: str) -> Row:
    conditions = (("equal", "yes"), ("contains", "yes"), ("contains", ""))
    handles = ("condition-0", "condition-1", "condition-2", "false")
    routes = [way("start > if"), *(way(f"if > {one}", one) for one in handles)]
    agents = [agent(name, userPrompt=f"{name} {{{{PREVIOUS_OUTPUT}}}}") for name in handles]
    return Row(document=document(start(), choice("if", *conditions), *agents, routes=routes), text=text)


def _fan_out(*order: str) -> Plain:
    nodes = (start(), approval("ok"), *map(_says, ("side", "next", "after")))
    routes = [*(way(f"start > {name}") for name in order), way("side > next"), way("ok > after", "approve")]
    return document(*nodes, routes=routes)


def _two_approvals() -> Plain:
    nodes = (start(), approval("one", prompt="One?"), approval("two", prompt="Two?"))
    routes = [way("start > one"), way("start > two"), way("one > a", "approve"), way("two > b", "approve")]
    return document(*nodes, _says("a"), _says("b"), routes=routes)


def _nested() -> Plain:
    """The chosen branch asks again, beside a branch whose follower is deferred."""
    nodes = [start(), approval("one", prompt="One?"), _says("side"), _says("next")]
    nodes += [approval("two", prompt="Two?"), _says("after")]
    routes = [way("start > one"), way("start > side"), way("side > next")]
    return document(*nodes, routes=[*routes, way("one > two", "approve"), way("two > after", "approve")])


def _deferred_twice() -> Plain:
    """Two branches whose followers are deferred."""
    nodes = (start(), approval("ok"), *map(_says, ("a", "b", "c", "d", "chosen")))
    routes = [way("start > ok"), way("start > a"), way("start > b"), way("a > c"), way("b > d")]
    return document(*nodes, routes=[*routes, way("ok > chosen", "approve")])


def _call(name: str, text: str, number: str = "c1") -> ToolCall:
    return ToolCall(id=number, name=name, arguments=json.dumps({"message": text}))


def _staff() -> Plain:
    boss = agent("boss", name="Boss", tools=SUBS, userPrompt="ask {{PREVIOUS_OUTPUT}}")
    legal = agent("legal", name="Legal", tools=SUBS, systemPrompt="You know the law.")
    archive = agent("archive", name="Archive", userPrompt="Look it up")
    routes = [way("start > boss"), way("boss > legal", "subagent"), way("legal > archive", "subagent")]
    return document(start(), boss, legal, archive, routes=routes)


_LEGAL: Final = "subagent_legal_legal"
_ARCHIVE: Final = "subagent_archive_archive"


def _legacy(**if_data: Any) -> Plain:
    fork = {"id": "if", "type": "if", "data": if_data}
    ask = {"id": "ask", "type": "input", "data": {"prompt": "Well?"}}
    routes = [way("start > if"), way("if > ask", "true"), way("if > no", "false"), way("ask > a", "approve")]
    nodes = (start(), fork, ask, _says("a"), _says("no"), {"id": "end", "type": "end"})
    return document(*nodes, routes=[*routes, way("a > end")])


_ONE: Final = [way("start > a")]
ROWS: Final[Mapping[str, Row]] = {
    "first_input": Row(
        document=document(start(initialInput="Good morning"), agent("a"), routes=[way("start > a")])
    ),
    "message": Row(document=document(start(), agent("a"), routes=[way("start > a")]), text="the message"),
    "prompts": Row(
        document=document(
            start(),
            agent("a", systemPrompt="You are brief.", userPrompt="<{{PREVIOUS_OUTPUT}}> {{PREVIOUS_OUTPUT}}"),
            agent("b"),
            routes=[way("start > a"), way("a > b")],
        ),
        text="$& $1 {{MESSAGE}}",
    ),
    **{f"if_{at}": _choice_of(text) for at, text in enumerate((" YES\n", "oh yes", "no"))},
    "if_nothing": Row(
        document=document(
            start(),
            choice("if", ("equal", "x")),
            _says("a"),
            routes=[way("start > if"), way("if > a", "condition-0")],
        )
    ),
    "approved": Row(
        document=document(
            start(),
            agent("draft", userPrompt="draft"),
            approval("ok", prompt="Send it?"),
            agent("send", userPrompt="send {{PREVIOUS_OUTPUT}}"),
            routes=[way("start > draft"), way("draft > ok"), way("ok > send", "approve")],
        ),
        then=("|approve",),
    ),
    "asked_again": Row(
        document=document(
            start(),
            approval("ok"),
            agent("a", userPrompt="[{{NOTE:ok}}]"),
            _says("b"),
            routes=[way("start > ok"), way("ok > a", "reject"), way("ok > b", "approve")],
        ),
        then=("reject: too long, please approve nothing",),
    ),
    "rejected": Row(
        document=document(
            start(), approval("ok"), _says("a"), routes=[way("start > ok"), way("ok > a", "approve")]
        ),
        then=("|reject",),
    ),
    "approval_first": Row(document=_fan_out("ok", "side"), then=("|approve",)),
    "approval_last": Row(document=_fan_out("side", "ok"), then=("|approve",)),
    "two_approvals": Row(document=_two_approvals(), then=("|approve", "|approve")),
    "nested": Row(document=_nested(), then=("|approve", "|approve")),
    "deferred": Row(document=_deferred_twice(), then=("|approve",)),
    "diamond": Row(
        document=document(
            start(),
            *map(_says, ("a", "b")),
            agent("end"),
            routes=[way("start > a"), way("start > b"), way("a > end"), way("b > end")],
        )
    ),
    "failed_branch": Row(
        document=document(start(), _says("a"), _says("b"), routes=[way("start > a"), way("start > b")]),
        says={"a": _DOWN},
    ),
    "circle": Row(
        document=document(
            start(),
            choice("if"),
            choice("or"),
            routes=[way("start > if"), way("if > or", "false"), way("or > if", "false")],
        )
    ),
    "sub_agents": Row(
        document=_staff(),
        says={
            "ask go": _call(_LEGAL, "Is it?"),
            "Is it?": _call(_ARCHIVE, "Find it", "c2"),
            "Look it up\n\nFind it": "Found.",
            "Found.": "It is.",
            "It is.": "Yes, it is.",
        },
    ),
    "sub_agent_failed": Row(
        document=_staff(),
        says={"ask go": _call(_LEGAL, "Is it?"), "Is it?": _DOWN},
    ),
    "legacy": Row(document=_legacy(condition="YES"), text="oh yes", then=("|approve",)),
    "legacy_false": Row(document=_legacy(condition="YES"), text="no"),
    "legacy_both": Row(
        document=_legacy(condition="old", conditions=[{"operator": "equal", "value": "new"}]),
        text="new",
        then=("|approve",),
    ),
    "legacy_both_old": Row(
        document=_legacy(condition="old", conditions=[{"operator": "equal", "value": "new"}]), text="old"
    ),
}
