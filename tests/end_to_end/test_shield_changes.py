"""In a running gateway, what changes between the decision and the execution stops an allowed action.

Covers: pipeline/tools/gate.py, pipeline/shield/shield.py, pipeline/shield/policy_book.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.audit import NewAuditRecord
from gateway.storage.sqlite import SqliteStore
from gateway.storage.sqlite.audit import SqliteAudit
from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.scope import TurnScope
from pipeline.shield.verdict import VALID_S
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.shield_talk import asked, own_files, press, question, turn, writes

_DENIED = '[[deny]]\nname = "closed"\naction_types = ["write_file"]\n'
_VERIFIED = '[[verify]]\nname = "notes"\naction_types = ["write_note"]\ntier = 3\n'


def _notes(data: Path) -> int:
    return len(list(data.glob("workspace/people/*/notes/*.txt")))


async def _audit(harness: GatewayHarness) -> list[tuple[str, str]]:
    """The type of each record, and its reason or its decision."""
    rows = [json.loads(row.line) for row in await harness.store.shield.audit.newest(limit=99)]
    return [
        (row["type"], str(row["details"].get("reason", row["details"].get("decision", "")))) for row in rows
    ]


@pytest.mark.parametrize(
    ("change", "reason", "words"),
    [
        (
            lambda policy: policy.write_text(_DENIED),
            "rule",
            "the rule “closed” of the security policy forbids",
        ),
        (lambda policy: policy.write_text("[[deny"), "policy", "the security policy cannot be read"),
        (lambda policy: policy.unlink(), "policy", "the security policy cannot be read"),
    ],
    ids=["a new deny rule", "a policy with a mistake", "a policy that is gone"],
)
async def test_a_policy_that_changes_while_a_person_is_asked_stops_what_they_allow(
    tmp_path: Path, change: Callable[[Path], object], reason: str, words: str
) -> None:
    policy, llm = tmp_path / "policy.toml", ScriptedLlm(writes("hello"))
    policy.write_text("")
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm) as harness:
        said = await harness.channel.say("write")
        waiting = await question(harness)
        change(policy)
        assert (await harness.channel.bring(press(waiting, 0))).status == "accepted"
        await harness.channel.reply(said.message_id)
        assert (await _audit(harness))[-2:] == [("action_answered", ""), ("action_blocked", reason)]
    assert own_files(tmp_path) == []
    assert words in llm.requests[2].messages[-1].content


async def test_a_link_that_appears_while_a_person_is_asked_stops_what_they_allow(tmp_path: Path) -> None:
    """A tool of others gets a path; the file behind it becomes a link to one of the bot's own texts."""
    written: list[str] = []

    async def write(arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        written.append(arguments["document"])
        return ToolOutput(text="written")

    definition = ToolDefinition(name="save", description="save", parameters={"type": "object"})
    save = Tool(definition=definition, group="office", run=write, built_in=False)
    office = FixedGroup(name="office", description="an office", fixed=(save,))
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "SOUL.md").write_text("be kind")
    llm = ScriptedLlm(turn("office", "save", document="innocent.txt"))
    async with open_gateway(tmp_path, llm=llm, tools=(office,)) as harness:
        said = await harness.channel.say("save")
        waiting = await question(harness)
        (workspace / "innocent.txt").symlink_to(workspace / "SOUL.md")
        await harness.channel.bring(press(waiting, 0))
        await harness.channel.reply(said.message_id)
        assert (await _audit(harness))[-1] == ("action_blocked", "protected")
    assert written == []
    assert "SOUL.md is protected" in llm.requests[2].messages[-1].content


class _HeldAudit(SqliteAudit):
    """The audit, in which the first write takes until `release`."""

    def __init__(self, audit: SqliteAudit) -> None:
        super().__init__(audit._writer, audit._reader)
        self.begun = asyncio.Event()
        self._held: asyncio.Future[None] | None = None

    def append(self, records: Sequence[NewAuditRecord]) -> asyncio.Future[None]:
        writing = super().append(records)
        if self._held is not None:
            return writing
        self._held = asyncio.get_running_loop().create_future()
        self.begun.set()
        return self._held

    def release(self) -> None:
        """End the first write."""
        assert self._held is not None
        self._held.set_result(None)


@pytest.mark.parametrize(
    ("policy_then", "decisions", "end", "kept"),
    [
        ("", ["ALLOW", "ALLOW"], "action_executed", 1),
        (_VERIFIED, ["ALLOW", "ESCALATE"], "action_blocked", 0),
    ],
    ids=["the same policy", "a stricter one"],
)
async def test_a_decision_that_is_older_than_a_minute_is_made_again(
    tmp_path: Path, policy_then: str, decisions: list[str], end: str, kept: int
) -> None:
    policy, clock = tmp_path / "policy.toml", ManualClock()
    policy.write_text("")
    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    held = _HeldAudit(store.shield.audit)
    store.shield.audit = held
    llm = ScriptedLlm(turn("notes", "write_note", title="tea", text="green"))
    async with open_gateway(
        tmp_path, f'shield.policy="{policy}"', llm=llm, clock=clock, store=store
    ) as harness:
        said = await harness.channel.say("note")
        await held.begun.wait()
        policy.write_text(policy_then)
        await clock.advance(VALID_S + 1)
        held.release()
        await harness.channel.reply(said.message_id)
        assert asked(harness) == []
        audit = await _audit(harness)
        assert [said for kind, said in audit if kind == "action_evaluated"] == decisions
        assert audit[-1][0] == end
    assert _notes(tmp_path) == kept
