"""The file of MCP servers: what is read, what is passed over, and what is refused in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.errors import ConfigurationError
from pipeline.tools.mcp_config import MAX_FILE_BYTES, McpServerConfig, read_mcp_file


def written(folder: Path, data: Any) -> Path:
    path = folder / "mcp.json"
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def servers(folder: Path, **entries: Any) -> tuple[McpServerConfig, ...]:
    return read_mcp_file(written(folder, {"mcpServers": entries}))


def resolve(reference: str) -> str:
    return f"<{reference}>"


def test_a_program_and_an_address_are_read(tmp_path: Path) -> None:
    program = {
        "command": "npx",
        "args": ["-y", "files"],
        "cwd": "/srv",
        "env": {"TOKEN": "env:FILES_TOKEN", "A": "b"},
    }
    address = {"type": "http", "url": "https://mcp.example/x", "headers": {"Authorization": "file:key"}}

    files, web = servers(tmp_path, files=program, web=address, off={"command": "x", "disabled": True})

    assert (files.name, files.command, files.args, files.cwd) == ("files", "npx", ("-y", "files"), "/srv")
    assert (web.url, web.sent_headers(resolve)) == ("https://mcp.example/x", {"Authorization": "<file:key>"})
    assert files.env == {"TOKEN": "env:FILES_TOKEN", "A": "b"}


def test_a_program_inherits_three_variables_and_no_secret() -> None:
    config = McpServerConfig(name="x", command="x", env={"TOKEN": "env:T", "PATH": "/only"})
    ours = {"PATH": "/bin", "HOME": "/root", "LANG": "C", "PARLOUR_TOKEN": "secret", "AWS_SECRET": "secret"}

    assert config.environment(ours, resolve) == {
        "PATH": "/only",
        "HOME": "/root",
        "LANG": "C",
        "TOKEN": "<env:T>",
    }


def test_what_a_server_is_given_is_not_shown_by_accident() -> None:
    config = McpServerConfig(name="x", url="http://x", env={"A": "hidden"}, headers={"B": "hidden"})

    assert "hidden" not in repr(config)


@pytest.mark.parametrize("name", ["a", "my_server", "GitHub-2", "x" * 32])
def test_a_plain_name_is_taken(tmp_path: Path, name: str) -> None:
    assert [one.name for one in servers(tmp_path, **{name: {"command": "x"}})] == [name]


@pytest.mark.parametrize("name", ["", "a__b", "a_", "_a", "a b", "a:b", "a/b", "é", "x" * 33, "a\n"])
def test_a_name_that_would_not_fit_a_tools_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="a name has letters"):
        servers(tmp_path, **{name: {"command": "x"}})


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ([], "mcpServers.one: write an object"),
        ({}, "mcpServers.one: write either command"),
        ({"command": "x", "url": "http://x"}, "mcpServers.one: write either command"),
        ({"command": 5}, "mcpServers.one.command: write a text"),
        ({"command": "x", "args": "y"}, "mcpServers.one.args: write a list"),
        ({"command": "x", "args": ["y", 5]}, r"mcpServers.one.args\[1\]: write a text"),
        ({"command": "x", "env": []}, "mcpServers.one.env: write an object"),
        ({"command": "x", "env": {"A": 1}}, "mcpServers.one.env.A: write a text"),
        ({"command": "x", "env": {"A": "${TOKEN}"}}, "mcpServers.one.env.A: .*write env:NAME"),
        ({"command": "x\x00"}, "mcpServers.one.command: .*zero byte"),
        ({"command": "x", "disabled": "yes"}, "mcpServers.one.disabled: write true or false"),
        ({"command": "x", "type": "http"}, "mcpServers.one.type: http needs url"),
        ({"url": "http://x", "type": "sse"}, "mcpServers.one.type: write stdio or http"),
        ({"url": "http://x", "type": ["http"]}, "mcpServers.one.type: write stdio or http"),
        ({"url": "ftp://x"}, "mcpServers.one.url: write an address"),
        ({"url": "http://"}, "mcpServers.one.url: write an address"),
        ({"url": "http://x:99999/"}, "mcpServers.one.url: write an address"),
        ({"url": "https://me:pw@x/"}, "mcpServers.one.url: keep user and password out"),
    ],
)
def test_a_wrong_entry_is_named_with_its_file_and_key(tmp_path: Path, entry: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"mcp.json: {words}") as failed:
        servers(tmp_path, one=entry)

    assert "pw" not in str(failed.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is no JSON"),
        ("{", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "mcpServers: write"),
        ('{"mcpServers": []}', "mcpServers: write"),
        ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "a occurs there twice"),
        (" " * (MAX_FILE_BYTES + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=f"mcp.json: .*{words}|mcp.json: {words}"):
        read_mcp_file(written(tmp_path, text))


def test_a_missing_file_and_too_many_servers_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_mcp_file(tmp_path / "none.json")
    with pytest.raises(ConfigurationError, match="at most 50"):
        servers(tmp_path, **{f"s{number}": {"command": "x"} for number in range(51)})
