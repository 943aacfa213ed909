"""Read values from the TOML file, the environment overlay and the command line, in that order.

Each layer overwrites the one before, setting by setting. Not here: validating a value (`load`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from gateway.config.catalog import (
    SettingInfo,
    dotted,
    find_setting,
    is_account,
    is_repeated_table,
    is_section,
    remedy_for_unknown,
    repeated_at,
)
from gateway.config.channel_plugins import (
    added_channel,
    find_added_setting,
    is_added_table,
    remedy_for_channel,
)
from gateway.config.channels import MORE, POSTING
from gateway.config.problems import Problem, SettingSource
from gateway.config.toml_lines import key_lines
from pipeline.domain.frozen import dataclass

PREFIX = "PARLOUR__"
OPTION = "--set"

_POSITION = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_NAME = re.compile(r"[A-Za-z_]+")
_REPEATED_NAME = re.compile(r"[A-Za-z0-9_-]+")
_ARRAYS = (("routes",),)
"""The arrays of tables."""
_CHANNELS = tuple(("channels", channel) for channel in POSTING)
"""The tables that may be arrays instead, of one table for each account."""
_TEXT_KINDS = frozenset({"text", "choice", "path", "secret"})


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenValue:
    """An unchecked value for one setting, and its source."""

    value: Any
    source: SettingSource


@dataclass(slots=True, kw_only=True)
class Layers:
    """The values given so far: the effective value of each setting, and problems such as unknown keys."""

    values: dict[str, GivenValue] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """The lines of the file's tables and keys."""
    added: dict[str, SettingSource] = field(default_factory=dict)
    """The channels of plug-ins that a layer has a table or a setting of, with the first one."""

    def add_file(self, path: Path) -> None:
        """Read the TOML file at `path`; its errors become problems."""
        text = ""
        try:
            text = path.read_bytes().decode("utf-8")
            table = tomllib.loads(text)
        except OSError as error:
            reason = error.strerror or "input/output error"
            self._file_problem(path, f"cannot be read ({reason})", "name a file that this user can read")
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            self._file_problem(path, f"is not UTF-8 text at line {line}", "save the file as UTF-8")
        except RecursionError:
            self._file_problem(path, "is nested too deeply", "remove the nested brackets")
        except tomllib.TOMLDecodeError as error:
            self._file_problem(path, _syntax_words(str(error), text), "correct the line there")
        except ValueError:
            # The parser passes on Python's refusal to convert thousands of digits.
            self._file_problem(path, "holds a number with too many digits", "shorten the number")
        else:
            self.lines = {_of_account(path): line for path, line in key_lines(text).items()}
            self.place((), table, SettingSource(kind="file", name=str(path)))

    def add_environment(self, environ: Mapping[str, str]) -> None:
        """Overlay every variable PARLOUR__SECTION__KEY of `environ`."""
        for name in sorted(environ):
            if name.startswith(PREFIX):
                path = tuple(name.removeprefix(PREFIX).lower().split("__"))
                source = SettingSource(kind="environment", name=name)
                self.place(path, _parse_value(path, environ[name]), source)

    def add_overrides(self, overrides: Sequence[str]) -> None:
        """Overlay `section.key=value` texts; the last one for a setting wins."""
        for number, override in enumerate(overrides, start=1):
            name, equals, text = override.partition("=")
            path = tuple(name.strip().split("."))
            if equals and _may_be_shown(path):
                self.place(path, _parse_value(path, text), SettingSource(kind="command line", name=OPTION))
            else:
                # The text is not repeated: it may be a secret without its setting's name.
                self.problems.append(
                    Problem(
                        path=OPTION,
                        what=f"override number {number} does not have the form section.key=value",
                        fix=f"write for example {OPTION} server.port=8765",
                    )
                )

    def place(self, path: tuple[str, ...], value: Any, source: SettingSource) -> None:
        """Store `value` at `path`; a table of a known section is split into its settings."""
        path = _of_account(path)
        name = dotted(path)
        if source.kind == "file":
            source = replace(source, line=self.lines.get(path, source.line))
        if self._is_left_out(path, source):
            return
        if find_any_setting(path) is not None:
            self.values[name] = GivenValue(value=value, source=source)
        elif not is_section(path) and not is_added_table(path):
            self._unknown(path, source)
        elif (path in _ARRAYS or _is_channel(path)) and isinstance(value, list):
            for number, item in enumerate(value, start=1):
                self.place((*path, str(number)), item, source)
        elif isinstance(value, dict) and (value or not _is_repeated_table(path)):
            for key, item in value.items():
                self.place((*path, key), item, source)
        elif isinstance(value, dict):
            what = f"is an empty table ({source.phrase()})"
            self.problems.append(Problem(path=name, what=what, fix="give it a setting, or remove it"))
        else:
            what = f"is a section, but a single value was given ({source.phrase()})"
            table = f"[[{name}]]" if path in _ARRAYS else f"[{name}]"
            self.problems.append(Problem(path=name, what=what, fix=f"write the table {table}"))

    def nested(self, without: frozenset[str] = frozenset()) -> dict[str, Any]:
        """The values as nested tables, without the settings in `without` and the channels of plug-ins."""
        root: dict[str, Any] = {}
        for name, given in self.values.items():
            *sections, key = name.split(".")
            if name in without or (sections[:1] == ["channels"] and sections[1] in self.added):
                continue
            table = root
            for section in sections:
                table = table.setdefault(section, {})
            table[key] = given.value
        for _, channel in _CHANNELS:
            tables = root.get("channels", {}).get(channel, {})
            numbers = sorted(filter(str.isdigit, tables), key=int)
            if numbers:
                root["channels"][f"{channel}{MORE}"] = [tables.pop(number) for number in numbers]
        for (name,) in _ARRAYS:
            if name in root:
                root[name] = [table for _, table in sorted(root[name].items(), key=lambda one: int(one[0]))]
        return root

    def added_tables(self, channel: str) -> dict[str, dict[str, Any]]:
        """The tables of a plug-in's channel by path, the first one also if it is absent or empty."""
        first = f"channels.{channel}"
        found: dict[str, dict[str, Any]] = {first: {}}
        for name, given in self.values.items():
            path, _, key = name.rpartition(".")
            if path == first or path.rpartition(".")[0] == first:
                found.setdefault(path, {})[key] = given.value
        return dict(sorted(found.items(), key=lambda table: int(table[0].removeprefix(first)[1:] or 1)))

    def array_numbers(self, name: str) -> list[str]:
        """The numbers of the tables of the array `name` that have a value, in order."""
        return sorted({path.split(".")[1] for path in self.values if path.startswith(f"{name}.")}, key=int)

    def account_numbers(self, channel: str) -> list[str]:
        """As `array_numbers`, of the second and further tables of a posting channel."""
        paths = [tuple(path.split(".")) for path in self.values]
        return sorted(
            {path[2] for path in paths if path[1:2] == (channel,) and is_account(path[:3])}, key=int
        )

    def source_of(self, name: str) -> SettingSource:
        """The source of the effective value of the setting `name`."""
        return self.values[name].source if name in self.values else SettingSource(kind="default")

    def _is_left_out(self, path: tuple[str, ...], source: SettingSource) -> bool:
        """Whether `path` is in the table of a plug-in's channel whose settings are unknown, as the plug-in
        cannot be used: `load` reports that the channel is left out. Notes every channel of a plug-in."""
        plugin = added_channel(path)
        if plugin is None:
            return False
        self.added.setdefault(path[1], source)
        return bool(plugin.problem)

    def _unknown(self, path: tuple[str, ...], source: SettingSource) -> None:
        known = added_channel(path) is not None or is_section(path[:2])
        in_channels = path[0] == "channels" and len(path) > 1
        what = f"names no {'channel' if in_channels and not known else 'setting'} ({source.phrase()})"
        is_shipped = not in_channels or is_section(path[:2])
        fix = remedy_for_unknown(path) if is_shipped else remedy_for_channel(path)
        self.problems.append(Problem(path=dotted(path), what=what, fix=fix))

    def _file_problem(self, path: Path, what: str, fix: str) -> None:
        self.problems.append(Problem(path=str(path), what=what, fix=fix))


def find_any_setting(path: tuple[str, ...]) -> SettingInfo | None:
    """The setting at `path`, also one of a plug-in's channel."""
    return find_setting(path) or find_added_setting(path)


def _may_be_shown(path: tuple[str, ...]) -> bool:
    """Whether `path` has the form of a setting's path, and not that of a secret without its setting."""
    form = _REPEATED_NAME if repeated_at(path) or _is_channel(path[:2]) else _NAME
    return all(form.fullmatch(part) for part in path)


def _is_repeated_table(path: tuple[str, ...]) -> bool:
    is_further = is_account(path) or (is_added_table(path) and not _is_channel(path))
    return is_further or is_repeated_table(path)


def _is_channel(path: tuple[str, ...]) -> bool:
    """Whether `path` is that of a channel whose tables may repeat."""
    return path in _CHANNELS or (is_added_table(path) and is_added_table((*path, "1")))


def _of_account(path: tuple[str, ...]) -> tuple[str, ...]:
    """`path` without the number of a channel's first table, whose settings are those of a single one."""
    return path[:2] + path[3:] if path[2:3] == ("1",) and _is_channel(path[:2]) else path


def _parse_value(path: tuple[str, ...], text: str) -> Any:
    """`text` as a TOML value, else unchanged.

    A text setting takes `text` unchanged unless it is a quoted TOML string, so that a name like 1984 needs
    no quotes inside quotes.
    """
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return text
    if document.keys() != {"value"}:
        return text
    value = document["value"]
    setting = find_any_setting(path)
    holds_text = setting is not None and setting.kind in _TEXT_KINDS
    return text if holds_text and not isinstance(value, str) else value


def _syntax_words(message: str, text: str) -> str:
    position = _POSITION.search(message)
    if position is None:
        return f"is not valid TOML: {message}"
    reason = message[: position.start()]
    line, column = position.groups()
    if line is None:
        lines = text.split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return f"is not valid TOML at line {line}, column {column}: {reason}"
