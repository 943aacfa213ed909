"""Wrong tokens of a network over all processes."""

from __future__ import annotations

from adapters.web.attempts import WrongTokens
from gateway.access.shared_attempts import SharedAttempts
from gateway.cluster.shared_counts import LocalCounts
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock


async def test_a_network_that_guessed_elsewhere_is_known_by_its_second_guess() -> None:
    clock, tasks = ManualClock(), Supervisor()
    counts = LocalCounts(clock)

    def entrance() -> WrongTokens:
        shared = SharedAttempts(counts.beside(), clock, lambda work: tasks.spawn(work, name="attempts"))
        return WrongTokens(clock, "page", elsewhere=shared.note)

    first, second = entrance(), entrance()
    for _ in range(5):
        assert not first.note("192.0.2.7")
    await tasks.wait_idle()
    assert not second.note("192.0.2.7")
    await tasks.wait_idle()
    assert second.note("192.0.2.7")
    assert not second.note("192.0.2.8")
    await tasks.wait_idle()
    await clock.advance(61.0)
    assert not second.note("192.0.2.7")
    await tasks.close()
