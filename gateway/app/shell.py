"""Build what runs commands in a sandbox, where a group may run them and the machine has a sandbox."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

from gateway.config import Settings
from gateway.runtime.data_dir import COMMANDS_DIR
from gateway.sandbox.commands import SandboxedCommands
from gateway.sandbox.folders import CommandFolders
from gateway.sandbox.process import sandbox_problem
from gateway.sandbox.protocol import SandboxLimits
from pipeline.domain.background import Spawn
from pipeline.domain.clock import Clock
from pipeline.tools.shell import SHELL

_log = logging.getLogger(__name__)
_KB, _MB, _MIB = 1_000, 1_000_000, 1024**2


def build_command_folders(settings: Settings, clock: Clock) -> CommandFolders:
    """The folders in which commands work."""
    return CommandFolders(settings.data.dir / COMMANDS_DIR, keep_days=settings.files.keep_days, clock=clock)


def build_sandbox(
    settings: Settings, folders: CommandFolders, clock: Clock, spawn: Spawn
) -> SandboxedCommands | None:
    """What runs commands; None if no group may, and with a line in the log if the machine cannot."""
    if not wants_commands(settings):
        return None
    problem = sandbox_problem()
    if problem:
        _log.error("the tool group shell is left out: no sandbox", extra={"reason": problem})
        return None
    return SandboxedCommands(
        folders,
        limits=_limits(settings),
        at_once=settings.tools.shell.at_once,
        hidden=_hidden(settings),
        clock=clock,
        spawn=partial(spawn, name="end of a conversation's commands"),
    )


def shell_state(settings: Settings) -> tuple[bool, str]:
    """Whether commands can be run as the settings wish, and a sentence about it."""
    if not wants_commands(settings):
        return True, 'not used ("shell" is not in tools.groups)'
    problem = sandbox_problem()
    return not problem, problem or "run in a sandbox of namespaces, without network"


def wants_commands(settings: Settings) -> bool:
    """Whether the settings name the group."""
    return settings.tools.enabled and SHELL in settings.tools.groups


def _limits(settings: Settings) -> SandboxLimits:
    wanted = settings.tools.shell
    return SandboxLimits(
        seconds=wanted.seconds,
        processor_seconds=wanted.processor_seconds,
        memory_bytes=wanted.memory_mb * _MIB,
        processes=wanted.processes,
        open_files=wanted.open_files,
        file_bytes=wanted.file_mb * _MB,
        disk_bytes=wanted.disk_mb * _MB,
        files=wanted.files,
        output_bytes=wanted.output_kb * _KB,
    )


def _hidden(settings: Settings) -> tuple[Path, ...]:
    """What no command may see, should it be below a system folder."""
    workspaces = [profile.workspace for profile in settings.agents.values() if profile.workspace]
    secrets = [one.path for one in settings.secret_refs().values() if one.scheme == "file"]
    servers = [settings.tools.mcp_file] if settings.tools.mcp_file else []
    return (
        *(settings.data.dir, settings.models_path, settings.voices_path, settings.voice_model_path),
        *(settings.workspace_path, *workspaces, *secrets, *servers),
    )
