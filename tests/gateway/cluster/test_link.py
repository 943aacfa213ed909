"""A link listens to every topic, also to one that is added while it connects.

Covers: gateway/cluster/link.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from gateway.cluster.link import BusLink
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import ManualClock


class _Server:
    """A transport and its one connection. A topic is added while the server confirms the first one."""

    name = "server"

    def __init__(self) -> None:
        self.link: BusLink | None = None
        self.heard: list[str] = []
        self.sent = asyncio.Event()

    async def connect(self) -> _Server:
        return self

    async def listen(self, topic: str) -> None:
        await asyncio.sleep(0)
        if not self.heard and self.link is not None:
            self.link.listen("late")
        self.heard.append(topic)

    async def send(self, messages: Sequence[tuple[str, str]]) -> None:
        self.sent.set()

    async def receive(self) -> str:
        nothing: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        return await nothing

    async def close(self) -> None:
        return None


async def test_a_topic_that_is_added_while_it_connects_is_listened_to() -> None:
    server, tasks = _Server(), Supervisor()
    link = server.link = BusLink(server, own_topic="own", probe="probe", clock=ManualClock())
    tasks.spawn(link.run(lambda _text: None), name="link")
    await server.sent.wait()
    assert (server.heard, link.up) == (["own", "late"], True)
    await tasks.close()
