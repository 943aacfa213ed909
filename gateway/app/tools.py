"""Build the bot's tools: tool groups, skills, the workspace, and the gate that checks every call."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path

from adapters.formatting.inert_links import inert
from gateway import __version__
from gateway.access.policy import AccessPolicy
from gateway.access.token_budgets import DailyBudgets
from gateway.agents.documents import AgentDocuments
from gateway.app.reminders import build_reminders
from gateway.app.search import build_search
from gateway.app.shell import build_command_folders, build_sandbox
from gateway.chronicle.chronicle import Chronicle
from gateway.chronicle.contents import Contents
from gateway.chronicle.forgetting import ChangeForgetting
from gateway.cluster.signals import Answered
from gateway.config import SecretRef, Secrets, Settings, environment
from gateway.config.secrets import SecretContext
from gateway.interactions.approvals import ApprovalService
from gateway.runtime.crash_labels import CrashLabels
from gateway.runtime.data_dir import CHRONICLE_DIR
from gateway.sandbox.commands import SandboxedCommands
from gateway.sandbox.folders import CommandFolders
from gateway.scheduling.jobs import JobRunner
from gateway.scheduling.reminders import ReminderScheduler
from gateway.storage.ports import Store
from pipeline.domain.background import Spawn
from pipeline.domain.chat import ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.files import FileStore
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author
from pipeline.domain.timeline import TimelineEntry
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.null_services import NullTools
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings
from pipeline.runtime.watching import Watches
from pipeline.shield.shield import Shield
from pipeline.subagents import SubAgents
from pipeline.tools.attachments import ConversationFiles, attachments_group
from pipeline.tools.files import files_group
from pipeline.tools.gate import RegistryGate
from pipeline.tools.judged_facts import JudgedFacts
from pipeline.tools.mcp_config import REFERENCES, read_mcp_file
from pipeline.tools.mcp_group import mcp_groups
from pipeline.tools.notes import notes_group
from pipeline.tools.origins import Origins
from pipeline.tools.plugins import PLUGINS, tool_plugins
from pipeline.tools.protection import Protection
from pipeline.tools.registry import ToolRegistry
from pipeline.tools.returned_files import MEGABYTE, ReturnedFiles
from pipeline.tools.schedule import ScheduleGroup
from pipeline.tools.shell import shell_group
from pipeline.tools.skills import SkillFolder
from pipeline.tools.snapshots import WorkspaceSnapshots
from pipeline.tools.system import system_group
from pipeline.tools.tool import Refused, ToolFailed, ToolGroup
from pipeline.tools.watching import WatchGroup
from pipeline.tools.web import WebGroup
from pipeline.tools.web_client import GuardedWeb
from pipeline.tools.web_search import WebSearch
from pipeline.tools.workspace import WorkspaceFolder
from pipeline.tools.zones import TimeZones

_log = logging.getLogger(__name__)
ShowLine = Callable[[ThreadKey, TimelineEntry], None]
"""Shows a recorded line of a thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceServices:
    """What reads and writes one workspace folder. Agents with the same folder share it, because it serialises
    the writing of a person's texts."""

    workspace: WorkspaceFolder
    skills: SkillFolder
    origins: Origins


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedTools:
    """The services and tool groups that all agents share."""

    approvals: ApprovalService
    reminders: ReminderScheduler
    budgets: DailyBudgets
    person_of: Callable[[ThreadKey, str], str]
    redactor: Redactor
    shield: Shield
    files: ReturnedFiles
    """Stores the files that tools return."""
    chronicle: Chronicle
    forgetting: ChangeForgetting
    """Keeps copies of files from before tools change them."""
    web: GuardedWeb
    search: WebSearch | None
    """None without a search engine."""
    groups: tuple[ToolGroup, ...]
    """The MCP servers, the groups of plug-ins, and the host's own."""
    command_folders: CommandFolders
    commands: SandboxedCommands | None
    """None where no group may run commands, or the machine has no sandbox."""
    watches: Watches | None = None
    """What is watched for people; None where heartbeats are off."""
    own: tuple[str, ...]
    """The names of the host's groups, which no setting turns off."""
    folders: dict[Path, WorkspaceServices] = field(default_factory=dict)
    """By workspace folder."""

    def ending(self, show: ShowLine) -> ShowLine:
        """`show`, and with the line that begins a conversation, the removal of the files that commands have
        left in the one before it."""
        commands = self.commands
        if commands is None:
            return show

        def noted(thread: ThreadKey, line: TimelineEntry) -> None:
            show(thread, line)
            if line.role == "session":
                commands.end_conversation(thread)

        return noted

    def folder(self, root: Path, clock: Clock) -> WorkspaceServices:
        """The services of the workspace folder `root`."""
        place = root.resolve()
        if place not in self.folders:
            self.folders[place] = WorkspaceServices(
                workspace=WorkspaceFolder(root, clock),
                skills=SkillFolder(root / "skills", clock),
                origins=Origins(root),
            )
        return self.folders[place]

    async def discard(self, owner: str) -> None:
        """Remove the notes, files and facts of `owner` in every workspace. Raises StorageError."""
        for folder in self.folders.values():
            await folder.workspace.discard(owner)

    async def discard_commands(self, thread: ThreadKey) -> None:
        """Remove what commands have left in the folder of a thread's conversation. Raises StorageError."""
        try:
            await asyncio.to_thread(self.command_folders.remove, thread)
        except OSError as error:
            why = error.strerror or "I/O error"
            raise StorageError(f"the folder of the commands cannot be removed: {why}") from error

    async def carry_over(self, source: str, target: str, settings_of: str) -> bool:
        """In every workspace, as `WorkspaceFolder.carry_over`, with the marks of foreign text."""
        copied = True
        for folder in self.folders.values():
            try:
                if source:
                    # First: what a web page said must not be there unmarked.
                    await asyncio.to_thread(folder.origins.carry_over, source, target)
                done = await folder.workspace.carry_over(source, target, settings_of)
            except (ToolFailed, Refused) as error:
                _log.warning("a person's files are not copied", extra={"reason": str(error)})
                done = False
            copied = copied and done
        return copied


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTools:
    """One agent's services, and the gate of its tools, which the gateway closes."""

    services: PipelineServices
    gate: RegistryGate | None
    """None if it has no tools."""

    def offered(self) -> tuple[ToolDefinition, ...]:
        """The tools that every message starts with."""
        no_author = TurnScope(
            session_id="",
            message_id="",
            thread=ThreadKey(channel="none", account="none", chat="none"),
            author=Author(id=""),
            send=ignore_event,
        )
        return self.services.tools.offered((), no_author)

    def reads_only(self, name: str) -> bool:
        """Whether the tool of that name is known to change nothing."""
        return self.gate is not None and self.gate.reads_only(name)

    async def close(self) -> None:
        """Stop the tool servers."""
        if self.gate is not None:
            await self.gate.close()


def build_shared_tools(
    settings: Settings,
    documents: AgentDocuments,
    *,
    store: Store,
    jobs: JobRunner,
    clock: Clock,
    budgets: DailyBudgets,
    person_of: Callable[[ThreadKey, str], str],
    redactor: Redactor,
    wake: Callable[[str], None],
    send: Callable[[Answered], None],
    access: AccessPolicy,
    spawn: Spawn,
    secrets: Secrets,
    attached: ConversationFiles | None,
    files: FileStore,
    crash_labels: CrashLabels,
    shield: Shield,
    groups: Sequence[ToolGroup] = (),
) -> SharedTools:
    """Build what all agents share. `groups` are added by the host, `wake` is called when a thread has
    work, `send` sends an answer to the turn that waits for it, `access` decides who may be reminded,
    `person_of` who is one person, `attached` reads the files of conversations, and `spawn` starts a task that
    ends with the gateway. Raises ConfigurationError for a bad file of MCP servers.
    """
    servers = _servers(settings, secrets, clock, spawn, redactor) if settings.tools.enabled else ()
    wanted = settings.tools.enabled and PLUGINS in settings.tools.groups
    plugins = [one.value for one in tool_plugins() if not one.problem] if wanted else []
    web = GuardedWeb(clock)

    def origins_of(root: Path) -> Origins:
        return shared.folder(root, clock).origins

    chronicle, forgetting = _chronicle(settings, store, clock, crash_labels, origins_of)
    command_folders = build_command_folders(settings, clock)
    shared = SharedTools(
        approvals=ApprovalService(
            store=store,
            clock=clock,
            approval_s=settings.tools.approval_s,
            send=send,
            per_hour=settings.shield.approvals_per_hour,
            shared=settings.cluster.shared,
        ),
        reminders=build_reminders(settings, documents, jobs, store, clock, wake, access),
        budgets=budgets,
        person_of=person_of,
        redactor=redactor,
        chronicle=chronicle,
        forgetting=forgetting,
        shield=shield,
        web=web,
        search=build_search(settings, web=web, clock=clock, redactor=redactor),
        files=ReturnedFiles(
            files,
            redactor,
            max_bytes=settings.files.out_max_mb * MEGABYTE,
            most=settings.files.out_per_turn,
        ),
        groups=(*((attachments_group(attached),) if attached else ()), *servers, *plugins, *groups),
        command_folders=command_folders,
        commands=build_sandbox(settings, command_folders, clock, spawn),
        own=tuple(group.name for group in groups),
    )
    return shared


def _chronicle(
    settings: Settings,
    store: Store,
    clock: Clock,
    crash_labels: CrashLabels,
    origins_of: Callable[[Path], Origins],
) -> tuple[Chronicle, ChangeForgetting]:
    contents = Contents(settings.data.dir / CHRONICLE_DIR)
    chronicle = Chronicle(
        store.file_changes,
        contents,
        clock,
        on_foreign=lambda place, content: origins_of(place.anchor).note_restored(place, content),
        on_gone=lambda place, content: origins_of(place.anchor).note_gone(place, content),
        crash_labels=crash_labels,
    )
    return chronicle, ChangeForgetting(store.file_changes, contents, chronicle)


def build_agent_tools(
    settings: Settings,
    shared: SharedTools,
    *,
    clock: Clock,
    llm: LlmClient,
    cheaper: LlmClient | None,
    limits: PipelineSettings,
) -> AgentTools:
    """Build the tools of the agent with these settings."""
    root, redactor = settings.workspace_path, shared.redactor
    folder = shared.folder(root, clock)
    zones = TimeZones(folder.workspace, clock, limits.time_zone)
    around: PipelineServices
    registry: ToolRegistry
    gate: RegistryGate | None = None
    if settings.tools.enabled:
        agents = SubAgents(
            llm=llm, services=lambda: around, registry=lambda: registry, clock=clock, settings=limits
        )
        registry = ToolRegistry(
            [
                files_group(root, redactor, most_sent=settings.files.out_max_mb * MEGABYTE),
                WebGroup(shared.web, clock, redactor, search=shared.search),
                notes_group(root, redactor),
                ScheduleGroup(shared.reminders, clock, zones),
                system_group(clock, zones, version=__version__),
                agents,
                *_shell(settings, shared, clock),
                *(() if shared.watches is None else (WatchGroup(shared.watches, zones),)),
                *shared.groups,
            ],
            enabled=(*settings.tools.groups, WatchGroup.name, *shared.own),
        )
        gate = RegistryGate(
            registry=registry,
            shield=shared.shield,
            approvals=shared.approvals,
            skills=folder.skills,
            clock=clock,
            protection=Protection(root, blocked=(settings.data.dir,)),
            timeout_s=settings.tools.timeout_s,
            redactor=redactor,
            origins=folder.origins,
            files=shared.files,
            snapshots=WorkspaceSnapshots(shared.chronicle, root, folder.origins),
        )
    around = PipelineServices(
        tools=gate or NullTools(),
        skills=folder.skills,
        workspace=folder.workspace,
        facts=JudgedFacts(folder.workspace, shared.shield),
        budgets=shared.budgets,
        person_of=shared.person_of,
        redactor=redactor,
        cheaper=cheaper,
        inert_links=inert,
    )
    return AgentTools(services=around, gate=gate)


def _shell(settings: Settings, shared: SharedTools, clock: Clock) -> Sequence[ToolGroup]:
    """The group that runs commands, where the machine has a sandbox."""
    if shared.commands is None:
        return ()
    most_sent = settings.files.out_max_mb * MEGABYTE
    return (shell_group(shared.commands, clock, shared.redactor, most_sent=most_sent),)


def reference_reader(path: Path) -> Callable[[str], str]:
    """A function that resolves the references, `env:NAME` or `file:PATH`, in the file of MCP servers at
    `path`. It raises SecretUnavailable."""
    context = SecretContext(folder=path.parent, environ=environment())
    return lambda reference: SecretRef.parse(reference, context).resolve()


def _servers(
    settings: Settings, secrets: Secrets, clock: Clock, spawn: Spawn, redactor: Redactor
) -> Sequence[ToolGroup]:
    """The configured MCP servers, none of them started."""
    path = settings.tools.mcp_file
    if path is None:
        return ()
    read = reference_reader(path)

    def resolve(reference: str) -> str:
        value = read(reference)
        secrets.add(value)
        return value

    servers = read_mcp_file(path)
    context = SecretContext(folder=path.parent, environ=environment())
    for value in (value for server in servers for value in server.secret_values()):
        # Before any server starts: a value may appear in a message, or in the result of another tool.
        if value.startswith(REFERENCES):
            secrets.refer(SecretRef.parse(value, context))
        else:
            secrets.add(value)
    return mcp_groups(
        servers,
        environ=environment(),
        resolve=resolve,
        clock=clock,
        spawn=spawn,
        idle_s=settings.tools.mcp_idle_s,
        timeout_s=settings.tools.timeout_s,
        redactor=redactor,
    )
