"""Build the heartbeat: what is watched, with whose rights, and the runs of each agent."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from gateway.access.policy import AccessPolicy
from gateway.app.components import Foundation
from gateway.app.llm import pipeline_settings
from gateway.app.tools import AgentTools, SharedTools
from gateway.config import DEFAULT_AGENT, Settings, agent_settings
from gateway.config.chat_place_rules import place_thread
from gateway.config.heartbeat_rules import OWNERS
from gateway.scheduling.elected_work import Once
from gateway.scheduling.heartbeat_document import DocumentFile, OwnHeartbeat
from gateway.scheduling.heartbeat_log import HeartbeatLog
from gateway.scheduling.heartbeat_news import NewsJobs
from gateway.scheduling.heartbeat_port import HeartbeatPort
from gateway.scheduling.jobs import JobRunner
from gateway.scheduling.watch_checks import WatchChecks, WatchFailed
from gateway.scheduling.watch_records import Watch
from gateway.scheduling.watches import WatchScheduler
from gateway.storage.jobs import NewJob
from gateway.turns.heartbeat_turns import HeartbeatTurns
from pipeline.domain.errors import ParlourError, StorageError
from pipeline.domain.ids import heartbeat_thread
from pipeline.domain.marking import unmarked
from pipeline.domain.messages import Author, HeartbeatDue
from pipeline.heartbeat.tool_read import read_by_tool
from pipeline.heartbeat_runs import HeartbeatResult, HeartbeatRuns
from pipeline.runtime.scope import TurnScope, ignore_event
from pipeline.schedules.quiet_hours import QuietHours
from pipeline.shield.proposal import Proposal
from pipeline.tools.action import action_for, proposal_of
from pipeline.tools.tool import ToolFailed
from pipeline.tools.web import WebGroup

_MINUTE_S: Final = 60.0
_WEB_OFF: Final = "the tool group web is off"
_TOOLS_OFF: Final = "the agent has no tools"
_CHANGES: Final = "only a tool that reads can be watched, and {name} is not known to"


class Heartbeat:
    """The parts of the heartbeat. Without `heartbeat.enabled` only those that end what a process left."""

    def __init__(
        self,
        base: Foundation,
        shared: SharedTools,
        access: AccessPolicy,
        jobs: JobRunner,
        still_leads: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`still_leads` asks the store whether this process checks for all that share it; None for one that
        is alone."""
        settings = base.settings
        self._base = base
        self._jobs = jobs
        self._agents: dict[str, AgentTools] = {}
        self._runs: dict[str, HeartbeatRuns] = {}
        self.is_on = settings.heartbeat.enabled
        every_s = settings.heartbeat.every_minutes * _MINUTE_S
        own = own_heartbeat(settings) if self.is_on else None
        rights = _Rights(base, shared, self._agents)
        self.scheduler = WatchScheduler(
            store=base.store,
            clock=base.clock,
            checks=WatchChecks(clock=base.clock, web=shared.web, memories=base.store.memories, rights=rights),
            wake=base.bus.wake,
            still_allowed=access.still_allows,
            crash_labels=base.crash_labels,
            log=HeartbeatLog(base.clock, base.telemetry.heartbeat_event),
            spawn=base.tasks.background.spawn,
            document=None if own is None else DocumentFile(own, base.clock),
            quiet=QuietHours.optional(settings.bot.quiet_hours),
            still_leads=still_leads,
        )
        self.port = HeartbeatPort(self.scheduler, base.store, every_s=every_s) if self.is_on else None
        NewsJobs(
            jobs=jobs,
            store=base.store,
            clock=base.clock,
            wake=base.bus.wake,
            still_allowed=access.still_allows,
            crash_labels=base.crash_labels,
        )

    def with_watches(self, shared: SharedTools) -> SharedTools:
        """The tools of all agents, with that by which people have something watched."""
        return replace(shared, watches=self.port)

    def attach(self, agents: Mapping[str, AgentTools], lines: Callable[[], tuple[str, ...]]) -> None:
        """Give it the tools of the agents, by their recorded names. `lines` returns a line for each agent."""
        self._agents.update(agents)
        for name, tools in agents.items():
            settings = agent_settings(self._base.settings, name or DEFAULT_AGENT)
            llm = self._base.models.main(settings)
            self._runs[name] = HeartbeatRuns(
                services=tools.services,
                settings=pipeline_settings(settings, llm),
                llm=llm,
                agent=name,
                clock=self._base.clock,
                agents=lines,
            )

    def turns(self) -> HeartbeatTurns:
        """What runs the heartbeats of the inbox."""
        base = self._base
        return HeartbeatTurns(
            store=base.store,
            runs=self._runs,
            clock=base.clock,
            crash_labels=base.crash_labels,
            on_ended=self._ended,
            redact=base.redactor.text,
            max_attempts=base.settings.turn.max_attempts,
        )

    def start(self, once: Once) -> None:
        """Begin to check what is watched, `once` for all processes that share the store."""
        if self.is_on:
            once(self.scheduler.run, name="heartbeats")

    def _ended(self, due: HeartbeatDue, result: HeartbeatResult, jobs: tuple[NewJob, ...]) -> None:
        self._jobs.note_added(jobs)
        self.scheduler.ended(due, result)


def heartbeat_zone(settings: Settings) -> str:
    """The time zone of HEARTBEAT.md, and in which `/heartbeat` shows times."""
    return settings.heartbeat.time_zone or settings.bot.time_zone or "UTC"


def own_heartbeat(settings: Settings) -> OwnHeartbeat | None:
    """The heartbeat of HEARTBEAT.md; None if the configuration names no person."""
    wanted = settings.heartbeat
    accounts = {channel: account for channel, (account, _) in OWNERS.items()}
    thread = place_thread(settings, wanted, accounts)
    if thread is None:
        return None
    _, user = OWNERS.get(thread.channel, ("", thread.chat))
    agent = wanted.agent or DEFAULT_AGENT
    return OwnHeartbeat(
        thread=thread,
        author=Author(id=wanted.user or user),
        agent="" if agent == DEFAULT_AGENT else agent,
        folder=agent_settings(settings, agent).workspace_path,
        zone=heartbeat_zone(settings),
        every_s=wanted.every_minutes * _MINUTE_S,
        outside=_outside(wanted.active_hours),
    )


def _outside(active: str) -> QuietHours | None:
    """The hours outside the active ones."""
    hours = QuietHours.optional(active)
    return None if hours is None else QuietHours(hours.end, hours.begin)


class _Rights:
    """Implements `WatchRights`: what a watch's person may do, through the same gate and policy."""

    def __init__(self, base: Foundation, shared: SharedTools, agents: Mapping[str, AgentTools]) -> None:
        self._base = base
        self._shared = shared
        self._agents = agents
        self._web = WebGroup(shared.web, base.clock, shared.redactor)

    def folder(self, watch: Watch) -> Path:
        return agent_settings(self._base.settings, watch.agent or DEFAULT_AGENT).workspace_path

    def owner(self, watch: Watch) -> str:
        return self._scope(watch, "").owner

    async def read_by_tool(
        self, watch: Watch, session: str, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[str, str]:
        agent = self._agents.get(watch.agent)
        if agent is None or agent.gate is None:
            raise WatchFailed(_TOOLS_OFF)
        scope, gate = self._scope(watch, session), agent.gate
        enabled = self._settings(watch).tools.groups
        try:
            groups = (await gate.group_of(tool, enabled, scope),)
            if not gate.reads_only(tool):
                raise WatchFailed(_CHANGES.format(name=tool))
            text = json.dumps(dict(arguments), ensure_ascii=False)
            result = await read_by_tool(gate, tool, text, groups, scope, self._base.clock)
        except StorageError:
            raise
        except (ToolFailed, ParlourError) as error:
            raise WatchFailed(str(error)) from error
        if not result.success:
            raise WatchFailed(result.summary or "the tool was not used")
        return unmarked(result.content), result.foreign

    async def may_fetch(self, watch: Watch, session: str) -> Callable[[str], bool]:
        if "web" not in self._settings(watch).tools.groups:
            raise WatchFailed(_WEB_OFF)
        found = await self._shared.shield.reader(await self._fetching(watch, session))
        return found or _nowhere

    async def note_fetched(self, watch: Watch, session: str, text: str, source: str) -> None:
        await self._shared.shield.note_result(await self._fetching(watch, session), text, source)

    async def _fetching(self, watch: Watch, session: str) -> Proposal:
        """The action of fetching the watched address."""
        scope = self._scope(watch, session)
        (tool, *_) = await self._web.tools(scope)
        action = action_for(watch.id, session, tool, {"url": watch.condition.target})
        return proposal_of(action, scope)

    def _settings(self, watch: Watch) -> Settings:
        return agent_settings(self._base.settings, watch.agent or DEFAULT_AGENT)

    def _scope(self, watch: Watch, session: str) -> TurnScope:
        return TurnScope(
            session_id=session,
            message_id=f"check_{watch.id}",
            thread=heartbeat_thread(watch.thread),
            author=watch.author,
            person=self._base.people.person_of(watch.thread, watch.author.id),
            private=watch.private,
            agent=watch.agent,
            unattended=True,
            send=ignore_event,
        )


def _nowhere(_host: str) -> bool:
    return False
