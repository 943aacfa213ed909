"""The backlog of signals: order, merging, and what is left out."""

from __future__ import annotations

import asyncio

from gateway.cluster.backlog import Backlog


async def test_items_leave_in_order_and_a_merged_one_takes_the_last_place() -> None:
    backlog = Backlog[str]()
    for item, key in (("a1", "a"), ("b", None), ("a2", "a"), ("c", None)):
        backlog.put(item, key=key)
    assert await backlog.take(2) == ["b", "a2"]
    assert await backlog.take(9) == ["c"]


async def test_of_too_many_tokens_the_oldest_are_left_out_and_nothing_else() -> None:
    backlog = Backlog[str](most_tokens=2)
    for number in range(5):
        backlog.put(f"event {number}")
        backlog.put(f"token {number}", token=True)
    items = await backlog.take(99)
    assert items == ["event 0", "event 1", "event 2", "event 3", "token 3", "event 4", "token 4"]
    for number in range(3):
        backlog.put(f"later {number}", token=True)
    assert await backlog.take(99) == ["later 1", "later 2"], "what was taken no longer counts"


async def test_it_is_bounded_while_nothing_is_taken() -> None:
    backlog = Backlog[int](most=3)
    for number in range(10):
        backlog.put(number)
    assert await backlog.take(99) == [7, 8, 9]


async def test_it_is_settled_when_what_was_taken_is_done() -> None:
    backlog = Backlog[str]()
    await backlog.settled()
    backlog.put("a")
    taking = await backlog.take(1)
    order: list[str] = []

    async def wait() -> None:
        await backlog.settled()
        order.append("settled")

    async with asyncio.TaskGroup() as group:
        group.create_task(wait())
        await asyncio.sleep(0)
        order.append("done")
        backlog.done()
    assert (taking, order) == (["a"], ["done", "settled"])


async def test_who_takes_waits_for_an_item() -> None:
    backlog = Backlog[str]()
    async with asyncio.TaskGroup() as group:
        taking = group.create_task(backlog.take(5))
        await asyncio.sleep(0)
        backlog.put("late")
    assert taking.result() == ["late"]
