"""In a running gateway, rules for files and notes hold for lists and searches too, which name none.

Covers: pipeline/runtime/reading.py, pipeline/shield/rules.py, pipeline/tools/files.py,
pipeline/tools/notes.py, pipeline/tools/execution_events.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.shield_talk import asked, calls, say, turn

_POLICY = """
[[deny]]
name = "closed"
action_types = ["*"]
paths = ["shared/board/**", "notes/diary"]
[[verify]]
name = "asked"
action_types = ["read_file"]
paths = ["shared/asked.txt"]
tier = 3
"""


def _note(title: str, text: str) -> list[ScriptedAnswer]:
    return turn("notes", "write_note", title=title, text=text)


def _call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(id=name, name=name, arguments=json.dumps(arguments))


async def test_what_may_not_be_read_by_name_is_neither_listed_nor_found(tmp_path: Path) -> None:
    policy, shared = tmp_path / "policy.toml", tmp_path / "workspace" / "files"
    policy.write_text(_POLICY)
    (shared / "board").mkdir(parents=True)
    for name in ("board/b.txt", "asked.txt", "open.txt"):
        (shared / name).write_text(f"apples of {name}")
    reads = [
        _call("list_files"),
        _call("search_files", text="apples"),
        _call("read_notes"),
        _call("search_notes", text="apples"),
        _call("read_notes", title="coffee"),
    ]
    load = calls("load_tools", groups=["files", "notes"])
    llm = ScriptedLlm([*_note("diary", "apples and secrets"), *_note("tea", "apples and mint")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, "note")
        await say(harness, "note")
    llm = ScriptedLlm([load, ScriptedAnswer.calling(*reads), ScriptedAnswer.of("Done.")])
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm) as harness:
        await say(harness, "look")
        assert asked(harness) == []
    results = [message.content for message in llm.requests[-1].messages if message.role == "tool"][-5:]
    for result in results[4:]:
        assert "there is no note “coffee”; there are: tea" in result
        assert "diary" not in result
    for result, shown, left_out in zip(
        results[:4],
        ("shared/open.txt", "shared/open.txt:1: apples of open.txt", "tea: apples", "tea: apples and mint"),
        (2, 2, 1, 1),
        strict=True,
    ):
        assert shown in result
        assert f"[Left out: {left_out} that the security policy" in result
        assert not any(word in result for word in ("board", "asked.txt", "diary", "secrets"))


@pytest.mark.parametrize("arguments", [("read_notes", {}), ("search_notes", {"text": "hunter"})])
async def test_a_confidential_note_that_a_search_returns_is_confidential(
    tmp_path: Path, arguments: tuple[str, dict[str, Any]]
) -> None:
    name, given = arguments
    fetches = turn("web", "fetch_page", url="https://example.org/")
    llm = ScriptedLlm([*_note("my passwords", "hunter2"), *turn("notes", name, **given), *fetches])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await say(harness, "note")
        await say(harness, "read")
        assert "hunter2" in llm.requests[5].messages[-1].content
        await say(harness, "fetch")
        assert asked(harness) == []
    assert "has read something critical" in llm.requests[-1].messages[-1].content
