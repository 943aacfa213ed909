"""The work of the workflow bench for both engines: the triage example, its model, and a line of agents.

Plain functions over plain data, and the standard library only: the peer's process has none of our packages.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TRIAGE = Path(__file__).parents[1] / "examples" / "workflows" / "triage.workflow.json"
MESSAGE = "I bought a bicycle last week and I want a refund, because its lamp does not work."
DECISIONS = (("reject", "Offer a new lamp first."), ("approve", ""))
"""What the person says to the two approvals of a run."""
_STEP = re.compile(r"step\d+")
AGENTS = 20
"""Of the line."""


def triage() -> dict[str, Any]:
    """The document of the triage example."""
    found: dict[str, Any] = json.loads(TRIAGE.read_text("utf-8"))
    return found


def line() -> dict[str, Any]:
    """A document of agents one after the other."""
    names = [f"step{number}" for number in range(AGENTS)]
    nodes = [
        {
            "id": name,
            "type": "agent",
            "data": {"systemPrompt": f"You are {name}.", "userPrompt": step_prompt()},
        }
        for name in names
    ]
    ends = zip(["start", *names], names, strict=False)
    connections = [{"source": one, "target": other} for one, other in ends]
    return {
        "name": "line",
        "nodes": [{"id": "start", "type": "start", "data": {}}, *nodes],
        "connections": connections,
    }


def step_prompt() -> str:
    """The prompt of each agent of the line."""
    return "Continue: {{PREVIOUS_OUTPUT}}"


def reply(system: str, user: str) -> str:
    """What the model says."""
    if "What does the customer want?" in user:
        return "A refund."
    if "Rewrite this reply" in user:
        return "Dear customer, we send you a new lamp today. " + "Please keep the receipt. " * 6
    if user.startswith("A customer writes"):
        return "Dear customer, we pay you back. " + "Please send us the receipt. " * 6
    found = _STEP.search(system)
    return f"{found[0] if found else 'It'} has worked on it. ".ljust(120, "x")


def expected(graph: str) -> str:
    """The answer with which a run has to end."""
    if graph == "line":
        return reply(f"You are step{AGENTS - 1}.", "Continue: ").strip()
    return reply("", "Rewrite this reply").strip()


def data_of(node: str) -> Mapping[str, str]:
    """The prompts of an agent of the triage example."""
    found: Mapping[str, str] = next(one["data"] for one in triage()["nodes"] if one["id"] == node)
    return found
