"""Build the reminders and schedules."""

from __future__ import annotations

from collections.abc import Callable

from gateway.access.policy import AccessPolicy
from gateway.agents.documents import AgentDocuments
from gateway.agents.routes import AgentRoutes
from gateway.config.settings import Settings
from gateway.scheduling.jobs import JobRunner
from gateway.scheduling.reminders import ReminderScheduler, Workflows
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.schedules.quiet_hours import QuietHours


def build_reminders(
    settings: Settings,
    documents: AgentDocuments,
    jobs: JobRunner,
    store: Store,
    clock: Clock,
    wake: Callable[[str], None],
    access: AccessPolicy,
) -> ReminderScheduler:
    """Build them, and register their kind of jobs."""
    return ReminderScheduler(
        jobs=jobs,
        store=store,
        clock=clock,
        wake=wake,
        still_allowed=access.still_allows,
        quiet=QuietHours.optional(settings.bot.quiet_hours),
        workflows=_workflows(settings, documents),
    )


def _workflows(settings: Settings, documents: AgentDocuments) -> Workflows:
    """Finds the workflows that a user may run in a chat: those of the agents of its route."""
    found, routes = documents.runs, AgentRoutes(settings.every_route)

    def find(thread: ThreadKey, user: str, private: bool) -> tuple[str, ...]:  # noqa: FBT001 - one caller
        if not found:
            return ()
        return tuple(name for name in routes.names(thread, user, private=private) if name in found)

    return find
