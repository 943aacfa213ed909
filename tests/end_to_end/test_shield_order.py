"""The order of an action in a running gateway, commands that only read, and files of one name.

Covers: pipeline/tools/gate.py, pipeline/shield/commands.py, pipeline/tools/snapshots.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.domain.events import (
    ActionCompleted,
    ActionStarted,
    ApprovalRequired,
    ApprovalResolved,
    ShieldVerdict,
)
from pipeline.llm.scripted import ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.sandbox import require_sandbox
from tests.support.shield_talk import asked, own_files, press, question, turn, writes

_OF_AN_ACTION = (ActionStarted, ShieldVerdict, ApprovalRequired, ApprovalResolved, ActionCompleted)
_OPEN = '[[allow]]\nname = "own-files"\naction_types = ["write_file"]\npaths = ["own/**"]\n'
_NO_QUESTION = '[[verify]]\nname = "write-files"\naction_types = ["write_file"]\npaths = ["none"]\ntier = 1\n'


async def _recorded(harness: GatewayHarness) -> list[str]:
    return [json.loads(row.line)["type"] for row in await harness.store.shield.audit.newest(limit=99)]


async def test_an_action_is_announced_judged_recorded_and_asked_about_before_it_is_done(
    tmp_path: Path,
) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm(writes("tea"))) as harness:
        said = await harness.channel.say("write")
        pending = await question(harness)
        # What was decided is in the audit, and nothing is done, while a person thinks.
        assert await _recorded(harness) == ["action_proposed", "action_evaluated"]
        assert own_files(tmp_path) == []
        await harness.channel.bring(press(pending, 0))
        await harness.channel.reply(said.message_id)
        events = [type(one) for one in harness.channel.events if isinstance(one, _OF_AN_ACTION)]
        recorded = await _recorded(harness)
    assert events == list(_OF_AN_ACTION)
    assert recorded == ["action_proposed", "action_evaluated", "action_answered", "action_executed"]
    assert own_files(tmp_path) == ["tea"]


@pytest.mark.parametrize(
    ("command", "unasked"),
    [
        ("ls -l", True),
        ("git push --force", False),
        ("git -c core.pager=sh log", False),
        ("python3 -c 1", False),
        ("env sh", False),
        ("find . -delete", False),
    ],
)
async def test_a_command_that_reads_runs_unasked_and_its_first_word_is_not_enough(
    tmp_path: Path, command: str, *, unasked: bool
) -> None:
    require_sandbox()
    groups = ('tools.groups=["shell"]', "tools.shell.memory_mb=128")
    llm = ScriptedLlm(turn("shell", "run_command", command=command.split()))
    async with open_gateway(tmp_path, *groups, llm=llm) as harness:
        said = await harness.channel.say("run")
        if not unasked:
            await harness.channel.bring(press(await question(harness), 1))
        await harness.channel.reply(said.message_id)
        assert bool(asked(harness)) is not unasked
        assert ("action_executed" in await _recorded(harness)) is unasked


async def test_two_files_of_one_name_are_kept_apart_and_taken_back_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(_NO_QUESTION + _OPEN)
    texts = [*writes("a1", "a/list.txt"), *writes("b1", "b/list.txt"), *writes("a2", "a/list.txt")]
    settings = f'shield.policy="{tmp_path / "policy.toml"}"'
    async with open_gateway(tmp_path, settings, llm=ScriptedLlm(texts)) as harness:
        for number in range(3):
            await _say(harness, "write", f"write-{number}")
        seen = [_texts(tmp_path)]
        for number in range(3):
            await _say(harness, "/undo files", f"undo-{number}")
            seen.append(_texts(tmp_path))
    assert seen == [
        {"a": "a2", "b": "b1"},
        {"a": "a1", "b": "b1"},
        {"a": "a1"},
        {},
    ]


async def _say(harness: GatewayHarness, text: str, native_id: str) -> None:
    said = await harness.channel.say(text, native_id=native_id)
    await harness.channel.reply(said.message_id)


def _texts(data: Path) -> dict[str, str]:
    """The text of each file of the name, by its folder."""
    return {path.parent.name: path.read_text() for path in data.glob("workspace/people/*/files/*/list.txt")}
