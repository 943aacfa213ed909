"""A channel's health tells its state, the reason, and when the platform last sent something."""

from __future__ import annotations

from adapters.channel import ChannelHealth
from adapters.health import HealthTracker
from pipeline.domain.clock import ManualClock


async def test_a_change_of_state_keeps_the_last_sign_of_life() -> None:
    clock = ManualClock()
    health = HealthTracker(clock)
    assert health.read() == ChannelHealth(state="starting")
    await clock.advance(5.0)
    health.received()
    health.up("long poll")
    assert health.read() == ChannelHealth(state="up", detail="long poll", received_at=5.0)
    await clock.advance(5.0)
    health.down("refused")
    assert health.read() == ChannelHealth(state="down", detail="refused", received_at=5.0)
    health.starting()
    assert health.read() == ChannelHealth(state="starting", received_at=5.0)


def test_a_channel_that_receives_nothing_has_no_sign_of_life() -> None:
    health = HealthTracker(ManualClock())
    health.up()
    assert health.read() == ChannelHealth(state="up")
