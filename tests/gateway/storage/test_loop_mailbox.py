"""Results on their way from a thread to its loop, with and without event descriptors."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from gateway.storage.sqlite.loop_mailbox import LoopMailbox

_MANY = 500


@pytest.fixture(params=["event descriptor", "the loop's own"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "the loop's own":
        monkeypatch.delattr(os, "eventfd", raising=False)


@pytest.mark.usefixtures("kind")
async def test_all_items_arrive_on_the_loop_in_order() -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    got: list[int] = []
    threads: set[int] = set()

    def receive(item: int) -> None:
        threads.add(threading.get_ident())
        got.append(item)
        if item == _MANY - 1:
            done.set()

    mailbox = LoopMailbox(loop, receive)
    worker = threading.Thread(target=lambda: [mailbox.put(number) for number in range(_MANY)])
    worker.start()
    await done.wait()
    worker.join()
    mailbox.close()
    mailbox.close()
    assert got == list(range(_MANY))
    assert threads == {threading.get_ident()}


@pytest.mark.usefixtures("kind")
def test_a_closed_loop_receives_nothing() -> None:
    loop = asyncio.new_event_loop()
    got: list[int] = []
    mailbox = LoopMailbox(loop, got.append)
    loop.close()
    assert mailbox.put(1) is False
    assert mailbox.put(2) is False
    assert got == []


def _descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names are compared


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="event descriptors are of Linux")
async def test_the_descriptor_is_closed_with_the_mailbox() -> None:
    before = _descriptors()
    for _ in range(20):
        LoopMailbox(asyncio.get_running_loop(), print).close()
    assert _descriptors() - before == set()
