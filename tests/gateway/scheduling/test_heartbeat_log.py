"""The newest events of the heartbeat."""

from __future__ import annotations

from gateway.scheduling.heartbeat_log import EVENTS, KEPT, HeartbeatLog
from pipeline.domain.clock import ManualClock


def test_the_newest_two_hundred_events_are_kept_and_all_are_counted() -> None:
    counted: list[str] = []
    log = HeartbeatLog(ManualClock(7.0), counted.append)
    for number in range(KEPT + 30):
        log.note("scheduler_check", reason=str(number))
    kept = log.newest()
    assert (len(kept), kept[0].reason, kept[-1].reason, kept[0].at) == (200, "30", "229", 7.0)
    assert len(counted) == 230


def test_a_person_sees_their_events_and_those_of_the_scheduler() -> None:
    log = HeartbeatLog(ManualClock(), lambda _name: None)
    log.note("scheduler_started")
    log.note("heartbeat_triggered", owner="ann")
    log.note("heartbeat_error", owner="ben")
    assert [one.name for one in log.newest("ann")] == ["scheduler_started", "heartbeat_triggered"]


def test_the_events_are_those_of_the_seed() -> None:
    assert set(EVENTS) == {
        "scheduler_started",
        "scheduler_check",
        "heartbeat_skipped",
        "heartbeat_triggered",
        "heartbeat_completed",
        "heartbeat_error",
        "heartbeat_already_running",
    }
