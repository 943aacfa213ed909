"""Changes of files by tools are kept and taken back: /undo files, its button, and the operator's commands.

Covers: pipeline/tools/snapshots.py, gateway/turns/file_undo.py, gateway/cli/file_history.py.
"""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from gateway.cli.main import main
from pipeline.domain.chat import ToolCall
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway

_NUMBERS = itertools.count()


def _note(text: str) -> tuple[ScriptedAnswer, ScriptedAnswer]:
    arguments = f'{{"title": "tea", "text": "{text}"}}'
    name = f"write-{next(_NUMBERS)}"
    call = ScriptedAnswer.calling(ToolCall(id=name, name="write_note", arguments=arguments))
    return call, ScriptedAnswer.of("Saved.")


_LOADS = ScriptedAnswer.calling(ToolCall(id="load", name="load_tools", arguments='{"groups": ["notes"]}'))


async def ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text, native_id=f"n{next(_NUMBERS)}")
    return (await harness.channel.reply(accepted.message_id)).text


def _paths(folder: Path) -> list[Path]:
    return list(folder.rglob("notes/*.txt"))


def _notes(folder: Path) -> list[str]:
    return [path.read_text() for path in _paths(folder)]


def parlour(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--set", f'data.dir="{folder}"'])


async def test_undo_names_the_changed_file_and_takes_it_back_when_asked(tmp_path: Path) -> None:
    llm = ScriptedLlm([_LOADS, *_note("green"), _LOADS, *_note("black")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await ask(harness, "keep green")
        await ask(harness, "keep black")
        assert _notes(tmp_path) == ["tea\nblack"]
        assert "The answer used `write_note` and changed a note. `/undo files` takes" in await ask(
            harness, "/undo"
        )
        assert _notes(tmp_path) == ["tea\nblack"]
        assert await ask(harness, "/undo files") == "I took back the last change of a note."
        assert _notes(tmp_path) == ["tea\ngreen"]
    async with open_gateway(tmp_path) as harness:
        assert await ask(harness, "/undo files") == "I took back the last change of a note."
        assert _notes(tmp_path) == []
        assert "no change of a file" in await ask(harness, "/undo files")
        assert await ask(harness, "/undo please") == "Only `files` may follow `/undo`."


async def test_a_change_by_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm([_LOADS, *_note("green")])) as harness:
        await ask(harness, "keep green")
        (path,) = _paths(tmp_path)
        path.write_text("the operator's")
        answer = await ask(harness, "/undo files")
        assert answer.startswith("I leave a note as it is: after that change, something other than my tools")
        assert path.read_text() == "the operator's"


async def test_the_operator_lists_checks_and_takes_back_changes_beside_the_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with open_gateway(tmp_path, llm=ScriptedLlm([_LOADS, *_note("green"), *_note("black")])) as harness:
        assert await asyncio.to_thread(parlour, tmp_path, "history") == 0
        assert capsys.readouterr().out == "no tool has changed a file in the last 30 days\n"
        await ask(harness, "keep green")
        (path,) = _paths(tmp_path)
        assert await asyncio.to_thread(parlour, tmp_path, "history", path.name) == 0
        (line, hint) = capsys.readouterr().out.splitlines()
        assert line.startswith("  1  ")
        assert f"/notes/{path.name}  created  by write_note in " in line
        assert hint == "`parlour undo ID` takes one back"
        assert await asyncio.to_thread(parlour, tmp_path, "history", "--verify") == 0
        assert capsys.readouterr().out == "copies of files: 1, damaged or missing: 0\n"
        assert await asyncio.to_thread(parlour, tmp_path, "undo", "1") == 0
        assert capsys.readouterr().out.endswith(f"notes/{path.name} is as it was before change 1\n")
        assert not path.exists()
        assert await asyncio.to_thread(parlour, tmp_path, "undo", "1") == 1
        assert "taken back before" in capsys.readouterr().err
        assert await asyncio.to_thread(parlour, tmp_path, "undo", "77") == 1
        assert "there is no change 77" in capsys.readouterr().err
        for kept in (tmp_path / "chronicle").glob("??/*"):
            kept.write_text("damaged")
        assert await asyncio.to_thread(parlour, tmp_path, "history", "--verify") == 1
        assert "was changed on the disk" in capsys.readouterr().out
