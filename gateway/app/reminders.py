"""Build the reminders and schedules."""

from __future__ import annotations

from collections.abc import Callable

from gateway.access.policy import AccessPolicy
from gateway.config.settings import Settings
from gateway.scheduling.jobs import JobRunner
from gateway.scheduling.reminders import ReminderScheduler
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.schedules.quiet_hours import QuietHours


def build_reminders(
    settings: Settings,
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
    )
