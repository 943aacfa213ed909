"""In a running gateway, a rule for a file holds for every spelling of its path.

Covers: pipeline/shield/file_places.py, pipeline/shield/proposal.py, pipeline/tools/files.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import open_gateway
from tests.support.shield_talk import asked, calls, own_files, press, question, say, turn, writes

_POLICY = """
[[deny]]
name = "closed"
action_types = ["*"]
paths = ["own/drafts/**", "shared/board/**"]
[[source]]
name = "plans"
level = "critical"
paths = ["shared/plan.txt"]
"""
_CLOSED = (
    "own/drafts/a.txt",
    "OWN/drafts/a.txt",
    "Own/Drafts/A.TXT",
    "./own/drafts/a.txt",
    "././own/drafts/a.txt",
    ".\\.\\Own\\drafts\\a.txt",
    "own\\drafts\\a.txt",
    "own/./drafts/./a.txt",
    "own/drafts//a.txt",
    "own/x/../drafts/a.txt",
    "drafts/a.txt",
    "./drafts/a.txt",
    "file:own/drafts/a.txt",
    "SHARED/board/b.txt",
    "././Shared/board/b.txt",
    "shared\\board\\b.txt",
    "board/b.txt",
    "BOARD/b.txt",
)
"""Two files that the policy closes, in other spellings."""


async def test_a_rule_for_a_file_holds_for_every_spelling_of_its_path(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(_POLICY)
    board = tmp_path / "workspace" / "files" / "board"
    board.mkdir(parents=True)
    (board / "b.txt").write_text("the board's words")
    reads = [
        ToolCall(id=f"r{number}", name="read_file", arguments=json.dumps({"path": path}))
        for number, path in enumerate((*_CLOSED, "own/open.txt"))
    ]
    llm = ScriptedLlm([*writes("the draft's words", "drafts/a.txt"), *writes("open words", "OWN/open.txt")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        for number, name in enumerate(("write", "write more"), 1):
            said = await harness.channel.say(name)
            await harness.channel.bring(press(await question(harness, number), 0, name))
            await harness.channel.reply(said.message_id)
    assert own_files(tmp_path) == ["open words"], "drafts/a.txt is a level deeper"
    load = calls("load_tools", groups=["files"])
    llm = ScriptedLlm([load, ScriptedAnswer.calling(*reads), ScriptedAnswer.of("Done.")])
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm) as harness:
        await say(harness, "read")
        assert asked(harness) == []
    results = [message.content for message in llm.requests[-1].messages if message.role == "tool"]
    *closed, opened = results[-len(reads) :]
    assert "open words" in opened
    for path, result in zip(_CLOSED, closed, strict=True):
        assert "words" not in result, path
        assert "the rule “closed” of the security policy forbids it" in result, path


async def test_a_path_without_a_folder_is_labelled_as_the_shared_file_that_it_may_be(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(_POLICY)
    (tmp_path / "workspace" / "files").mkdir(parents=True)
    (tmp_path / "workspace" / "files" / "plan.txt").write_text("We buy the bakery.")
    reads = turn("files", "read_file", path="./plan.txt")
    fetches = turn("web", "fetch_page", url="https://example.org/")
    llm = ScriptedLlm([*reads, *fetches])
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm) as harness:
        await say(harness, "read")
        assert "We buy the bakery." in llm.requests[2].messages[-1].content
        await say(harness, "fetch")
        assert asked(harness) == []
    assert "may not be sent to the web" in llm.requests[5].messages[-1].content
