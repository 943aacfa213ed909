"""The gate in a resumed run: what an earlier process has done or begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pipeline.runtime.scope import TurnScope
from pipeline.shield.rules import ListName, Policy, PolicyRule
from pipeline.tools.tool import ToolOutput
from tests.support.contexts import scope
from tests.support.graph_log import MemoryRunLog
from tests.support.shields import RecordedAudit, shield
from tests.support.tool_gate import Person, call, gate, group, propose, tool


class _Ran:
    """A tool that counts its executions."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    async def __call__(self, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        self.calls.append(dict(arguments))
        return ToolOutput(text="fine")


class _Policies:
    """A source of one policy."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def current(self) -> Policy:
        return self._policy


@pytest.mark.parametrize("list_name", ["deny", "verify"])
async def test_a_done_action_is_not_judged_again_by_a_resumed_run(list_name: ListName) -> None:
    ran, log, audit = _Ran(), MemoryRunLog(), RecordedAudit()
    tools, asked = group(tool("write_note", ran)), call("write_note", {"text": "x"})
    await propose(gate(tools), asked, scope=scope(), log=log)
    rule = PolicyRule(name="no-notes", list=list_name, action_types=frozenset({"write_note"}), tier=3)
    stricter = _Policies(Policy(deny=(rule,)) if list_name == "deny" else Policy(verify=(rule,)))
    later = gate(tools, person=Person("refused"), judge=shield(policies=stricter, audit=audit))
    effects = [index for index, record in enumerate(log.records, 1) if record and record["do"] == "effect"]
    ran.calls.clear()
    for length, words in ((effects[0], "it is unknown whether it was done"), (effects[1], "fine")):
        (result,) = await propose(later, asked, scope=scope(), log=log.cut(length), resume=True)
        assert words in result.content
    assert (ran.calls, audit.types()) == ([], ["action_unknown", "action_executed"])
    assert audit.events[-1].details["again"] is True
