"""The gate keeps the files that a call would change: own files, and those that a call of others names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pipeline.runtime.scope import TurnScope
from pipeline.tools.confine import person_folder
from pipeline.tools.files import files_group
from pipeline.tools.folders import Place
from pipeline.tools.notes import notes_group
from pipeline.tools.origins import Origins
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.tool import Refused, Tool, ToolGroup, ToolOutput
from tests.support.contexts import scope
from tests.support.tool_gate import call, gate, group, propose, tool


class Kept:
    """Records what was kept, and that the tool ran while it was."""

    def __init__(self, refusal: str = "") -> None:
        self.seen: list[tuple[list[str], str, bool]] = []
        self._refusal = refusal

    @asynccontextmanager
    async def keeping(
        self, places: Sequence[Place], *, action: str, tool: str, scope: TurnScope, foreign: bool
    ) -> AsyncIterator[None]:
        assert action.startswith("act_")
        del scope
        if self._refusal:
            raise Refused(self._refusal)
        self.seen.append(([str(place.path) for place in places], tool, foreign))
        yield


async def _propose(root: Path, kept: Kept, groups: ToolGroup, name: str, arguments: Mapping[str, Any]) -> str:
    snapshots = WorkspaceSnapshots(kept, root, Origins(root))
    one = gate(groups, snapshots=snapshots)
    (result,) = await propose(one, call(name, arguments), scope=scope(), groups=(groups.name,))
    return result.content


async def test_a_changed_or_deleted_file_is_kept_and_a_read_one_is_not(tmp_path: Path) -> None:
    kept, own = Kept(), person_folder(tmp_path, scope().owner)
    files, notes = files_group(tmp_path), notes_group(tmp_path)
    await _propose(tmp_path, kept, files, "write_file", {"path": "list.txt", "text": "x"})
    await _propose(tmp_path, kept, files, "append_file", {"path": "own/list.txt", "text": "y"})
    await _propose(tmp_path, kept, files, "read_file", {"path": "own/list.txt"})
    await _propose(tmp_path, kept, files, "delete_file", {"path": "own/list.txt"})
    Origins(tmp_path).note_restored(Place(tmp_path, ("people", own.name, "notes", "x.txt")), b"Tea\ngreen")
    await _propose(tmp_path, kept, notes, "write_note", {"title": "tea", "text": "x"})
    await _propose(tmp_path, kept, notes, "write_note", {"title": "milk", "text": "x"})
    assert [tool for _paths, tool, _foreign in kept.seen] == [
        *("write_file", "append_file", "delete_file", "write_note", "write_note")
    ]
    assert {paths[0] for paths, _tool, _foreign in kept.seen[:3]} == {str(own / "files" / "list.txt")}
    assert [foreign for _paths, _tool, foreign in kept.seen] == [False, False, False, True, False]


async def test_the_files_that_a_call_of_another_tool_names_are_kept(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    for name in ("a.txt", "b.txt"):
        (root / name).write_text(name)
    (tmp_path / "outside.txt").write_text("x")
    (root / "link.txt").symlink_to(tmp_path / "outside.txt")

    async def run(_arguments: Mapping[str, Any], _scope: TurnScope) -> ToolOutput:
        return ToolOutput(text="done")

    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    other: Tool = tool("edit", run, schema=schema, built_in=False)
    kept = Kept()
    named = {"anything": ["a.txt", {"deep": str(root / "b.txt")}], "x": "link.txt", "y": "new.txt", "z": "\0"}
    await _propose(root, kept, group(other), "edit", named)
    await _propose(root, kept, group(other), "edit", {"text": "no file"})
    assert kept.seen == [([str(root / "a.txt"), str(root / "b.txt")], "edit", True)]


async def test_what_cannot_be_kept_is_not_changed(tmp_path: Path) -> None:
    kept = Kept(refusal="list.txt: no copy of it can be kept")
    content = await _propose(
        tmp_path, kept, files_group(tmp_path), "write_file", {"path": "list.txt", "text": "x"}
    )
    assert content == "list.txt: no copy of it can be kept"
    assert not (person_folder(tmp_path, scope().owner) / "files").exists()


@pytest.mark.parametrize("path", ["files/a", "people/x/USER.md", "people/x/skills/a"])
def test_only_a_persons_files_and_notes_are_marked(tmp_path: Path, path: str) -> None:
    Origins(tmp_path).note_restored(Place(tmp_path, tuple(path.split("/"))), b"x")
    assert list(tmp_path.iterdir()) == []
