"""Protected paths among the arguments of tools of others, whatever the keys are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.tools.protection import Protection
from pipeline.tools.tool import Tool, ToolOutput
from tests.support.tool_gate import tool


async def _run(_arguments: Any, _scope: Any) -> ToolOutput:
    return ToolOutput(text="")


def _tool(*, reads_only: bool = False, built_in: bool = False) -> Tool:
    return tool("other", _run, reads_only=reads_only, built_in=built_in)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    workspace = tmp_path / "workspace"
    (workspace / "skills").mkdir(parents=True)
    (workspace / "SOUL.md").write_text("be kind")
    (tmp_path / "parlour.sqlite3").write_text("")
    (tmp_path / "web_token").write_text("")
    return tmp_path


@pytest.mark.parametrize("key", ["path", "uri", "whatever"])
@pytest.mark.parametrize(
    "where",
    [
        "SOUL.md",
        "{data}/workspace/SOUL.md",
        "file://{data}/workspace/SOUL.md",
        "a/../SOUL.md",
        "FILE:SOUL.md",
        "file:%53OUL.md",
    ],
)
def test_an_operators_text_is_not_written_under_any_key(data: Path, key: str, where: str) -> None:
    guard = Protection(data / "workspace", blocked=(data,))
    value = where.format(data=data)
    assert "operator" in guard.objection(_tool(), {key: value})
    assert "operator" in guard.objection(_tool(), {"deep": [{key: value}]})
    assert guard.objection(_tool(reads_only=True), {key: value}) == ""


def test_an_operators_text_is_not_written_by_a_key_that_names_it(data: Path) -> None:
    guard = Protection(data / "workspace", blocked=(data,))
    assert "operator" in guard.objection(_tool(), {"files": {"SOUL.md": "be cruel"}})


@pytest.mark.parametrize("where", ["parlour.sqlite3", "web_token", "workspace/../web_token"])
def test_the_data_folder_is_neither_read_nor_written(data: Path, where: str) -> None:
    guard = Protection(data / "workspace", blocked=(data,))
    for reads_only in (True, False):
        assert "cannot be read or written" in guard.objection(
            _tool(reads_only=reads_only), {"x": f"{data}/{where}"}
        )


def test_a_link_to_a_protected_file_is_that_file(data: Path) -> None:
    (data / "workspace" / "innocent.txt").symlink_to(data / "workspace" / "SOUL.md")
    assert "SOUL.md is protected" in Protection(data / "workspace").objection(_tool(), {"x": "innocent.txt"})


@pytest.mark.parametrize(
    "value", ["hello", "SOUL.md is nice", "", "a\nb", "x" * 300, "x" * 5_000, "https://example.org/SOUL.md"]
)
def test_ordinary_words_are_no_paths(data: Path, value: str) -> None:
    assert Protection(data / "workspace", blocked=(data,)).objection(_tool(), {"text": value}) == ""


def test_of_a_built_in_tool_only_paths_are_looked_at(data: Path) -> None:
    guard = Protection(data / "workspace")
    note = _tool(built_in=True)
    assert guard.objection(note, {"text": "SOUL.md"}) == ""
    assert guard.objection(note, {"path": "SOUL.md"}) != ""
    assert "NUL" in guard.objection(note, {"path": "a\0b"})


@pytest.mark.parametrize("where", ["~/.ssh/id_rsa", "/home/ada/.aws/credentials", ".env", "key.pem"])
def test_secrets_of_the_machine_are_blocked_under_a_paths_key(data: Path, where: str) -> None:
    assert "protected" in Protection(data / "workspace").objection(_tool(reads_only=True), {"path": where})
