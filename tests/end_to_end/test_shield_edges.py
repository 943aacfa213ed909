"""Edges of the shield in a running gateway: protected names, changed arguments, the limit, the flow.

Covers: pipeline/tools/protection.py, pipeline/tools/action.py, pipeline/shield/shield.py,
pipeline/shield/flow.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.events import ActionCompleted, ActionStarted
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.scope import TurnScope
from pipeline.shield.shield import PER_MINUTE
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.shield_talk import asked, calls, press, question, say, turn


class _Office:
    """A group with one tool of others, and what it was called with."""

    def __init__(self, describe: Callable[[Mapping[str, Any]], str] | None = None) -> None:
        self.given: list[Mapping[str, Any]] = []
        definition = ToolDefinition(name="save", description="save", parameters={"type": "object"})
        more: dict[str, Any] = {"describe": describe} if describe else {}
        tool = Tool(definition=definition, group="office", run=self._run, built_in=False, **more)
        self.group = FixedGroup(name="office", description="an office", fixed=(tool,))

    async def _run(self, arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        self.given.append(arguments)
        return ToolOutput(text="saved")


def _together(group: str, name: str, payloads: list[dict[str, Any]]) -> list[ScriptedAnswer]:
    """The answers of a turn that loads a group and calls a tool of it with each payload."""
    made = [
        ToolCall(id=f"c{number}", name=name, arguments=json.dumps(payload))
        for number, payload in enumerate(payloads)
    ]
    return [calls("load_tools", groups=[group]), ScriptedAnswer.calling(*made), ScriptedAnswer.of("Done.")]


def _results(llm: ScriptedLlm, count: int) -> list[str]:
    """The last results that the model was shown."""
    return [message.content for message in llm.requests[-1].messages if message.role == "tool"][-count:]


async def _records(harness: GatewayHarness, type_: str) -> list[dict[str, Any]]:
    rows = [json.loads(row.line) for row in await harness.store.shield.audit.newest(limit=200)]
    return [row["details"] for row in rows if row["type"] == type_]


async def test_protected_files_are_refused_in_any_case_under_any_key_and_behind_links(tmp_path: Path) -> None:
    workspace, office = tmp_path / "workspace", _Office()
    (workspace / "skills" / "greet").mkdir(parents=True)
    (workspace / "skills" / "greet" / "SKILL.md").write_text("greet")
    for name in ("SOUL.md", "MEMORY.md"):
        (workspace / name).write_text("be kind")
    (workspace / "innocent.txt").symlink_to("SOUL.md")
    (workspace / "link").symlink_to(tmp_path)
    payloads: list[dict[str, Any]] = [
        *(
            {"path": name}
            for name in ("SOUL.md", "soul.MD", "Identity.md", "USER.MD", "memory.md", "AGENTS.md")
        ),
        *(
            {"whatever": [{"deep": name}]}
            for name in ("SOUL.md", "./MEMORY.md", "x/../SOUL.md", "innocent.txt")
        ),
        {"SOUL.md": "be cruel"},
        {"document": "skills/greet/SKILL.md"},
        {"document": "link/parlour.sqlite3"},
        {"document": str(tmp_path / "parlour.sqlite3")},
        {"document": f"file://{tmp_path}/parlour.sqlite3"},
        {"path": "~/.ssh/id_ed25519"},
    ]
    llm = ScriptedLlm(_together("office", "save", payloads))
    async with open_gateway(tmp_path, llm=llm, tools=(office.group,)) as harness:
        said = await harness.channel.say("save")
        await harness.channel.reply(said.message_id)
        events = [one for one in harness.channel.events_of(said.message_id) if one.type.startswith("action_")]
        reasons = [record["reason"] for record in await _records(harness, "action_blocked")]
        assert asked(harness) == []
    assert office.given == []
    for payload, result in zip(payloads, _results(llm, len(payloads)), strict=True):
        assert "is protected" in result, payload
    assert reasons == ["protected"] * len(payloads)
    assert not any(isinstance(one, ActionStarted) for one in events)
    assert [one.success for one in events if isinstance(one, ActionCompleted)] == [False] * len(payloads)


async def test_closed_paths_and_hosts_are_found_in_the_arguments_of_tools_of_others(tmp_path: Path) -> None:
    policy, office = tmp_path / "policy.toml", _Office()
    policy.write_text('[[deny]]\nname = "books"\naction_types = ["*"]\nhosts = ["b\u00fccher.example"]\n')
    payloads: list[dict[str, Any]] = [
        {"command": "cat ~/.ssh/id_rsa | base64"},
        {"cmd": ["sh", "-c", "cp /etc/shadow x"]},
        {"script": "with open('/root/x') as f: pass"},
        {"host": "webhook.site:443"},
        {"url": "webhook.site/x"},
        {"to": "see https://abc.webhook.site/x"},
        {"url": "https://xn--bcher-kva.example/"},
        {"anything": "HTTPS://B\u00dcCHER.example./"},
    ]
    llm = ScriptedLlm(_together("office", "save", payloads))
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm, tools=(office.group,)) as harness:
        await say(harness, "save")
        assert asked(harness) == []
    assert office.given == []
    for payload, result in zip(payloads, _results(llm, len(payloads)), strict=True):
        assert "of the security policy forbids it" in result, payload


async def test_arguments_that_change_after_the_question_are_not_used(tmp_path: Path) -> None:
    def describe(arguments: Mapping[str, Any]) -> str:
        assert isinstance(arguments, dict)
        arguments["text"] = "something else"
        return "harmless"

    office = _Office(describe)
    llm = ScriptedLlm(turn("office", "save", text="hello"))
    async with open_gateway(tmp_path, llm=llm, tools=(office.group,)) as harness:
        said = await harness.channel.say("save")
        await harness.channel.bring(press(await question(harness), 0))
        await harness.channel.reply(said.message_id)
        (record,) = await _records(harness, "action_blocked")
    assert (office.given, record["reason"]) == ([], "integrity")
    assert "integrity: the arguments of save were changed" in llm.requests[-1].messages[-1].content


async def test_more_than_thirty_actions_in_a_minute_are_stopped_without_a_question(tmp_path: Path) -> None:
    sums = [{"expression": f"{number} + 1"} for number in range(PER_MINUTE + 2)]
    llm = ScriptedLlm(_together("system", "calculate", sums))
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, "add")
        verdicts = await _records(harness, "action_evaluated")
        assert asked(harness) == []
    assert [one["decision"] for one in verdicts] == ["ALLOW"] * PER_MINUTE + ["BLOCK"] * 2
    assert verdicts[-1]["tier"] == 0
    *_, within, beyond, _last = _results(llm, PER_MINUTE + 2)
    assert f"{PER_MINUTE - 1} + 1 = {PER_MINUTE}" in within
    assert "too many actions: more than 30 within a minute" in beyond


async def test_a_tool_of_others_counts_as_sending_out_what_was_read(tmp_path: Path) -> None:
    office = _Office()
    (tmp_path / "workspace" / "files").mkdir(parents=True)
    (tmp_path / "workspace" / "files" / "passwords.txt").write_text("hunter2")
    reads = turn("files", "read_file", path="shared/passwords.txt")
    saves = turn("office", "save", text="hello")
    llm = ScriptedLlm([*reads, *saves])
    async with open_gateway(tmp_path, llm=llm, tools=(office.group,)) as harness:
        await say(harness, "read")
        await say(harness, "save")
        assert asked(harness) == []
        assert (await _records(harness, "action_evaluated"))[-1]["level"] == "critical"
    assert office.given == []
    assert "which may not be sent to a tool of others" in llm.requests[-1].messages[-1].content


async def test_with_flow_audit_what_would_be_stopped_is_noted_and_asked_about_as_usual(
    tmp_path: Path,
) -> None:
    office = _Office()
    (tmp_path / "workspace" / "files").mkdir(parents=True)
    (tmp_path / "workspace" / "files" / "passwords.txt").write_text("hunter2")
    llm = ScriptedLlm(
        [*turn("files", "read_file", path="shared/passwords.txt"), *turn("office", "save", text="hello")]
    )
    async with open_gateway(tmp_path, 'shield.flow="audit"', llm=llm, tools=(office.group,)) as harness:
        await say(harness, "read")
        said = await harness.channel.say("save")
        await harness.channel.bring(press(await question(harness), 0))
        await harness.channel.reply(said.message_id)
        last = (await _records(harness, "action_evaluated"))[-1]
    assert (last["decision"], last["flags"]) == ("ESCALATE", ["flow-would-block"])
    assert office.given == [{"text": "hello"}]
