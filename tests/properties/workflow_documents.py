"""Random workflow documents: all kinds of nodes, sub-agents, and circles that something leads out of.

Unlike those of test_broken_documents, nearly all of their runs come to an end.
"""

from __future__ import annotations

import random
from typing import Any

from tests.pipeline.workflows.documents import agent, approval, choice, document, start, way

Plain = dict[str, Any]
_PROMPTS = ("", "yes", "no", "{{PREVIOUS_OUTPUT}} x", "{{MESSAGE}}")
_WORDS = ("yes", "no", "x", "hello")


def flowing_document(dice: random.Random, most: int = 7) -> Plain:
    """A document of up to `most` nodes, sub-agents apart."""
    names = [f"n{at}" for at in range(1, dice.randint(2, most))]
    nodes = [_start(dice), *(_node(dice, name) for name in names)]
    routes: list[Plain] = []
    for at, node in enumerate(nodes):
        routes += _routes(dice, node, names[at:], names[:at])
    parents = [node for node in nodes if node["type"] == "agent"]
    for number in range(dice.choice((0, 0, 1, 2)) if parents else 0):
        parent = dice.choice(parents)
        parent["data"]["tools"] = {"subagents": True}
        below = agent(f"s{number}", userPrompt=dice.choice(_PROMPTS))
        nodes.append(below)
        routes.append(way(f"{parent['id']} > {below['id']}", "subagent"))
        parents.append(below)
    return document(*nodes, routes=routes)


def _start(dice: random.Random) -> Plain:
    return start(**dice.choice(({}, {}, {"initialInput": "yes"}, {"initialInput": "{{MESSAGE}} x"})))


def _node(dice: random.Random, name: str) -> Plain:
    match dice.choice(("agent", "agent", "agent", "if", "approval")):
        case "if":
            count = dice.randint(1, 2)
            return choice(
                name, *((dice.choice(("equal", "contains")), dice.choice(_WORDS)) for _ in range(count))
            )
        case "approval":
            return approval(name, **dice.choice(({}, {}, {"expiresSeconds": 60})))
        case _:
            return agent(name, userPrompt=dice.choice(_PROMPTS))


def _routes(dice: random.Random, node: Plain, later: list[str], earlier: list[str]) -> list[Plain]:
    """Connections to later nodes; of an if or an approval one handle may lead back."""
    handles = handles_of(node)
    back = dice.choice(handles) if len(handles) > 1 and earlier and dice.random() < 0.4 else None
    routes: list[Plain] = []
    for handle in handles:
        targets = dice.sample(later, k=min(len(later), dice.choice((0, 1, 1, 1, 2))))
        if node["type"] == "start" and not targets:
            targets = later[:1]
        if handle == back:
            targets = [dice.choice(earlier)]
        routes += [way(f"{node['id']} > {target}", handle) for target in targets]
    if not routes and node["type"] in ("if", "approval"):
        return _leading_on(node, later or earlier or [str(node["id"])])
    return routes


def _leading_on(node: Plain, targets: list[str]) -> list[Plain]:
    return [way(f"{node['id']} > {targets[0]}", handles_of(node)[0])]


def handles_of(node: Plain) -> tuple[str, ...]:
    """The handles of a node."""
    match node["type"]:
        case "if":
            return (*(f"condition-{at}" for at in range(len(node["data"]["conditions"]))), "false")
        case "approval":
            return ("approve", "reject")
        case _:
            return ("",)
