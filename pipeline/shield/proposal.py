"""A proposal: an action with everything that its judgement depends on, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode
from pipeline.shield.action_types import SINK_OF, ActionType, Sink
from pipeline.shield.commands import command_class, command_words
from pipeline.shield.globs import normal_path
from pipeline.shield.targets import MOST_TARGETS, hosts_in, paths_in, strings

_FILES: Final[frozenset[ActionType]] = frozenset({"read_file", "send_file", "write_file", "delete_file"})
_READS: Final[frozenset[ActionType]] = frozenset({"read_file", "send_file"})
_NOTES: Final[frozenset[ActionType]] = frozenset({"read_note", "write_note", "delete_note"})
_FOLDERS = ("own/", "shared/", "/", "../", "~")


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """One proposed action of one turn."""

    action_id: str
    action_hash: str
    tool: str
    group: str
    type: ActionType
    built_in: bool
    reads_only: bool
    payload: Mapping[str, Any]
    session_id: str
    message_id: str
    thread: str
    """The chat, encoded."""
    person: str
    """The id of the author in that chat."""
    owner: str
    """The owner of the turn's notes and files; it limits how many actions are judged."""
    private: bool
    agent: str = ""
    """The agent that proposes it; empty for the default one."""
    mode: Mode = "normal"
    foreign: tuple[str, ...] = ()
    """The sources of foreign text in the conversation."""

    @cached_property
    def texts(self) -> tuple[tuple[str, str], ...]:
        """Every string of the payload with its key, as `strings`."""
        return tuple(strings(self.payload))

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The paths that the payload names, normalised."""
        is_command = self.type in ("command", "command_read")
        found = paths_in(self.texts, built_in=self.built_in, command=is_command)
        if self.type in _FILES:
            # A tool that reads looks for a path without a folder in both.
            reads = self.type in _READS
            found = tuple(dict.fromkeys(one for path in found for one in _placed(path, reads=reads)))
        name = self.payload.get("name")
        if self.built_in and self.type == "send_file" and isinstance(name, str) and name:
            found = (*found, *_placed(normal_path(name), reads=False))
        title = self.payload.get("title")
        if self.type in _NOTES and isinstance(title, str) and title:
            # As the notes tools read a title: in one line.
            found = (*found, normal_path(f"notes/{' '.join(title.split())}"))
        return found

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that the payload names."""
        return hosts_in(self.texts)

    @property
    def names_too_many(self) -> bool:
        """Whether the payload names more paths or hosts than rules can be applied to."""
        return max(len(self.paths), len(self.hosts)) > MOST_TARGETS

    @property
    def sink(self) -> Sink | None:
        """Where the action's data goes; None if it goes nowhere but to the conversation."""
        return SINK_OF.get(self.type)

    @property
    def target(self) -> str:
        """The one path or host that the action is about, a path in the case that was given; empty if it names
        none or several, or if the path is not written in the usual way."""
        if self.type == "unknown":
            return ""
        named = self.hosts if self.type in ("fetch_url", "message") else self.paths
        if len(named) != 1:
            return ""
        if self.type not in _FILES:
            return named[0]
        # Not the normalised path: own/LIST.txt and own/list.txt are two files.
        (path, *_) = _placed(str(self.payload.get("path", "")), reads=False)
        return path if path.casefold() == named[0] and "\\" not in path else ""


def refined(type_: ActionType, payload: Mapping[str, Any]) -> ActionType:
    """`command_read` for a command that is known to read only; otherwise `type_`.

    The argument list is the payload's `argv`, or its `command`, if that is a list or a line without anything
    that a shell would interpret.
    """
    if type_ != "command":
        return type_
    given = payload.get("argv", payload.get("command", ()))
    words = command_words(given) if isinstance(given, str) else given
    is_list = isinstance(words, list | tuple) and all(isinstance(word, str) for word in words)
    return "command_read" if is_list and command_class(words) == "reads" else "command"


def _placed(path: str, *, reads: bool) -> tuple[str, ...]:
    """The files that a path of the files tools may mean: without a folder, one below `own`, or else one below
    `shared` that is read."""
    if path.startswith(_FOLDERS) or path in ("own", "shared", ".."):
        return (path,)
    return (f"own/{path}", f"shared/{path}") if reads else (f"own/{path}",)
