"""The values that the gateway and a sandbox process exchange: a request, and a report, each one line of JSON.

The gateway writes the request to the process's standard input and keeps it open: its end ends the command.
The process writes the command's output to standard output and its report to standard error.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from pipeline.domain.frozen import dataclass
from pipeline.tools.command_end import CommandEnd

COMMAND_USER = 65_534
"""The user of commands where the gateway runs as root: root may exceed limits."""
HOME = "/home"
"""Where a command sees the files of its conversation."""
CURRENT, WRITTEN, REPLACED = "files", "files.new", "files.old"
"""In the folder of a conversation: its files, those that are being written, and those that they replace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """The most that one command may use."""

    seconds: float
    """On the clock."""
    processor_seconds: int
    """Of all its processes together; one process alone may not use more either."""
    memory_bytes: int
    """Of all its processes together; one process alone may not use more either."""
    processes: int
    """Processes and threads at the same time."""
    open_files: int
    """Of each process."""
    file_bytes: int
    """The largest file."""
    disk_bytes: int
    """All files of the conversation and temporary files together."""
    files: int
    """The number of files and folders."""
    output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxRequest:
    """One command."""

    argv: tuple[str, ...]
    folder: str
    """The folder of the conversation, which exists."""
    hidden: tuple[str, ...]
    """Folders and files that the command must not see, also where they are below a system folder."""
    limits: SandboxLimits

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"


def request_from(line: bytes) -> SandboxRequest:
    """The request that `encode` wrote. Raises ValueError, KeyError or TypeError for anything else."""
    plain = _object(line)
    return SandboxRequest(
        argv=tuple(plain["argv"]),
        folder=plain["folder"],
        hidden=tuple(plain["hidden"]),
        limits=SandboxLimits(**plain["limits"]),
    )


def report_line(end: CommandEnd) -> bytes:
    """A report."""
    return json.dumps(asdict(end)).encode() + b"\n"


def report_from(line: bytes) -> CommandEnd:
    """The report that `report_line` wrote. Raises ValueError or TypeError for anything else."""
    plain = _object(line)
    files = tuple((str(name), int(size)) for name, size in plain.pop("files", ()))
    return CommandEnd(**plain, files=files)


def _object(line: bytes) -> dict[str, Any]:
    plain = json.loads(line)
    if not isinstance(plain, dict):
        raise TypeError("not an object")
    return plain
