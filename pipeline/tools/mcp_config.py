"""Read and check the usual JSON file of MCP servers. No server is started here."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

Resolve = Callable[[str], str]
"""Returns the value of a reference, `env:NAME` or `file:PATH`. Raises ConfigurationError."""
MAX_FILE_BYTES = 1_000_000
_MAX_SERVERS = 50
_INHERITED = ("PATH", "HOME", "LANG")
_NAME = re.compile(r"(?!.*__)[A-Za-z0-9][A-Za-z0-9_-]{0,31}(?<!_)")
REFERENCES = ("env:", "file:")
"""The prefixes of values that refer to a secret."""
_SECRET_NAMES = ("key", "token", "secret", "passw", "auth", "cookie", "credential")
_LEAST_CHARS = 8
_KINDS = {"stdio": "command", "http": "url", "streamable-http": "url", "streamableHttp": "url"}


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerConfig:
    """One server: a program (`command`), or an address (`url`)."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    cwd: str = ""
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the program in addition to the few that it inherits; values may be references."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Headers of every request to `url`; values may be references."""

    def environment(self, ours: Mapping[str, str], resolve: Resolve) -> dict[str, str]:
        """The program's environment: from `ours` only variables that cannot be secrets."""
        inherited = {name: ours[name] for name in _INHERITED if name in ours}
        return inherited | _resolved(self.env, resolve)

    def sent_headers(self, resolve: Resolve) -> dict[str, str]:
        """The headers, with references resolved."""
        return _resolved(self.headers, resolve)

    def secret_values(self) -> tuple[str, ...]:
        """The references, unresolved, and the values in the file itself under a secret's name; of a header
        such as `Bearer …` only the last word."""
        named = [*self.env.items(), *self.headers.items()]
        return tuple(
            value if value.startswith(REFERENCES) else value.split()[-1]
            for name, value in named
            if value.startswith(REFERENCES)
            or (any(stem in name.lower() for stem in _SECRET_NAMES) and len(value.strip()) >= _LEAST_CHARS)
        )


def read_mcp_file(path: Path) -> tuple[McpServerConfig, ...]:
    """The servers in the file, in its order, without those that are turned off. Reads a small file.

    Raises ConfigurationError, which names the file and the key.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise ConfigurationError(f"{path}: it is larger than {MAX_FILE_BYTES} bytes")
        data = json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_unique_keys)
    except OSError as error:
        raise ConfigurationError(f"{path}: it cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: it is no JSON ({error})") from error
    servers = data.get("mcpServers") if isinstance(data, dict) else None
    if not isinstance(servers, dict):
        raise ConfigurationError(f'{path}: mcpServers: write {{"mcpServers": {{"name": {{"command": …}}}}}}')
    if len(servers) > _MAX_SERVERS:
        raise ConfigurationError(f"{path}: mcpServers: at most {_MAX_SERVERS} servers")
    read = [_Reader(path, name, entry) for name, entry in servers.items()]
    return tuple(reader.config() for reader in read if not reader.turned_off())


class _Reader:
    """One entry of the file."""

    def __init__(self, path: Path, name: str, entry: Any) -> None:
        self._where = f"{path}: mcpServers.{name}"
        self._name = name
        if not _NAME.fullmatch(name):
            self._wrong(
                "", "a name has letters, digits, - and single _ in it, at most 32, and does not end in _"
            )
        if not isinstance(entry, dict):
            self._wrong("", "write an object with command or url")
        self._entry: dict[str, Any] = entry

    def turned_off(self) -> bool:
        disabled = self._entry.get("disabled", False)
        if not isinstance(disabled, bool):
            self._wrong("disabled", "write true or false")
        return disabled

    def config(self) -> McpServerConfig:
        kind = self._entry.get("type")
        if kind is not None and (not isinstance(kind, str) or kind not in _KINDS):
            self._wrong("type", "write stdio or http; others are not supported")
        command, url = self._text("command"), self._text("url")
        if bool(command) == bool(url):
            self._wrong("", "write either command, to start a program, or url")
        if kind is not None and not self._entry.get(_KINDS[kind]):
            self._wrong("type", f"{kind} needs {_KINDS[kind]}")
        if url:
            self._check_url(url)
        return McpServerConfig(
            name=self._name,
            command=command,
            args=self._args(),
            cwd=self._text("cwd"),
            url=url,
            env=self._texts("env"),
            headers=self._texts("headers"),
        )

    def _check_url(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            usable = False
        if not usable:
            self._wrong("url", "write an address that begins with http:// or https://")
        if "@" in urlsplit(url).netloc:
            self._wrong("url", "keep user and password out of it; write them into headers, as env:NAME")

    def _text(self, key: str) -> str:
        value = self._entry.get(key, "")
        return self._checked(key, value)

    def _args(self) -> tuple[str, ...]:
        args = self._entry.get("args", [])
        if not isinstance(args, list):
            self._wrong("args", "write a list of texts")
        return tuple(self._checked(f"args[{place}]", value) for place, value in enumerate(args))

    def _texts(self, key: str) -> dict[str, str]:
        values = self._entry.get(key, {})
        if not isinstance(values, dict):
            self._wrong(key, "write an object of names and texts")
        return {self._checked(key, name): self._checked(f"{key}.{name}", values[name]) for name in values}

    def _checked(self, key: str, value: Any) -> str:
        if not isinstance(value, str):
            self._wrong(key, "write a text in quotes")
        if "\x00" in value or len(value) > 32_000:
            self._wrong(key, "it is too long, or has a zero byte in it")
        if "${" in value:
            self._wrong(
                key, "${…} is not replaced here; write env:NAME as the whole value, in env or headers"
            )
        return value

    def _wrong(self, key: str, words: str) -> NoReturn:
        where = f"{self._where}.{key}" if key else self._where
        raise ConfigurationError(f"{where}: {words}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)} occurs there twice")
    return found


def _resolved(values: Mapping[str, str], resolve: Resolve) -> dict[str, str]:
    return {name: resolve(value) if value.startswith(REFERENCES) else value for name, value in values.items()}
