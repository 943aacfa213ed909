"""A draft that Telegram will not renew now is left alone for as long as it asks."""

from __future__ import annotations

import asyncio

from adapters.channel import Outgoing
from pipeline.domain.clock import ManualClock
from tests.adapters.telegram.harness import idle, turning
from tests.support.platforms.platform import Fault


async def test_a_draft_is_not_renewed_again_before_the_wait_is_over() -> None:
    clock = ManualClock()
    async with idle(clock=clock) as harness, asyncio.TaskGroup() as group:
        task = group.create_task(harness.adapter.run(harness.inbox))
        await harness.fake.until(lambda: harness.fake.state.updates.polling or task.done())
        view = harness.adapter.open_view(harness.thread(), key="m_1:0", reply_handle="", native_id="")
        assert view is not None
        await view.show(Outgoing(text="thinking", unfinished=True))

        def drafts() -> int:
            return sum(call.method == "sendMessageDraft" for call in harness.fake.calls)

        waits = Fault(method="sendMessageDraft", kind="rate_limit", retry_after_s=60)
        harness.fake.faults.script.append(waits)
        await turning(clock, harness.fake, lambda: drafts() == 2)
        refused_at = clock.monotonic()
        await turning(clock, harness.fake, lambda: drafts() == 3)
        assert clock.monotonic() - refused_at >= 60
        await view.close()
        task.cancel()
