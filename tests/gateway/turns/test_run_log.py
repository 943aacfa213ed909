"""A run's records on their way to the store: together, in order, and not lost where a run is cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease, NewRecord, Record, Store
from gateway.storage.sqlite import SqliteStore
from gateway.turns.run_codec import from_rows, newest_run
from gateway.turns.run_log import StoreRunLog
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.execution.executor import Executor

_THREAD = "web:local:1"
_HEAD = {"run": "run_1", "graph": "g", "signature": "s", "entry": "", "inputs": {}}
_END = {"do": "end", "status": "completed", "reason": "completed"}


class SlowStore(MemoryStore):
    """Acknowledges an append on request."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[asyncio.Future[tuple[int, ...]]] = []

    def append(
        self, lease: Lease, records: Sequence[NewRecord], *, attempt: int | None = None
    ) -> asyncio.Future[tuple[int, ...]]:
        super().append(lease, records, attempt=attempt)
        self.waiting.append(asyncio.get_running_loop().create_future())
        return self.waiting[-1]


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    store: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "db.sqlite3")
    await store.open()
    yield store
    await store.close()


async def _log(store: Store) -> tuple[StoreRunLog, Lease]:
    lease = await store.acquire_lease(_THREAD, "test", ttl_s=60.0, now=0.0)
    assert lease is not None
    return StoreRunLog(store, lease, _row), lease


def _row(body: Mapping[str, Any]) -> NewRecord:
    return NewRecord(kind="step", session_id="s", message_id="m", body=body, at=0.0)


def _words() -> NewRecord:
    return NewRecord(kind="user", session_id="s", message_id="m", body={"text": "hi"}, at=0.0)


def _never(record_id: int) -> None:
    raise AssertionError(f"no row of the run took the words along: {record_id}")


def _step(node: str) -> dict[str, Any]:
    return {"do": "step", "node": node}


async def _nodes(store: Store) -> list[str]:
    return [node for record in await store.read_log(_THREAD) for node in _nodes_of(record)]


def _nodes_of(row: Record) -> list[str]:
    return [row.kind if record is None else record.get("node", row.kind) for record in from_rows(row.body)]


async def test_records_of_one_turn_of_the_loop_are_one_write(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "db.sqlite3")
    await store.open()
    log, _ = await _log(store)
    before = store.calls
    for node in "abc":
        log.append(_step(node))
    await log.barrier()
    assert store.calls - before == 1
    assert await _nodes(store) == ["a", "b", "c"]
    await store.close()


async def test_records_are_on_their_way_before_anyone_waits_for_them() -> None:
    store = SlowStore()
    await store.open()
    log, _ = await _log(store)
    log.append(_step("a"))
    assert store.waiting == []
    await asyncio.sleep(0)
    log.append(_step("b"))
    assert len(store.waiting) == 1
    await asyncio.sleep(0)
    assert len(store.waiting) == 2
    assert await _nodes(store) == ["a", "b"]


async def test_a_run_cancelled_right_after_a_record_keeps_it(store: Store) -> None:
    log, _ = await _log(store)

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append(_step("a"))

    async with asyncio.TaskGroup() as group:
        task = group.create_task(run())
        await asyncio.sleep(0)
        task.cancel()
    await store.check_writable()
    assert await _nodes(store) == ["a"]


async def test_a_store_closed_right_after_a_record_has_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "db.sqlite3")
    await store.open()
    log, _ = await _log(store)
    log.append(_step("a"))
    await store.close()
    await store.open()
    assert await _nodes(store) == ["a"]
    await store.close()


@pytest.mark.parametrize("how", ["rows", "riding"])
async def test_what_is_committed_with_the_last_records_is_behind_the_others(store: Store, how: str) -> None:
    log, lease = await _log(store)
    log.append(_step("a"))
    log.append(_step("b"))
    await log.finish([_step("c"), _END])
    unwritten = await log.unwritten()
    last = log.last_rows() if how == "rows" else [_row(log.embedded_records())]
    await store.append(lease, [*unwritten, *last])
    assert (await _nodes(store))[:2] == ["a", "b"]
    assert len(await store.read_log(_THREAD)) == 1 + len(last)


async def test_a_cheap_first_step_and_the_words_before_it_are_left_to_the_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "db.sqlite3")
    await store.open()
    log, lease = await _log(store)
    before = store.calls
    log.hold([_words()], _never)
    log.append({**_step("a"), "head": _HEAD, "seconds": 0.01})
    await asyncio.sleep(0)
    await log.finish([_step("b"), _END])
    unwritten = await log.unwritten()
    assert store.calls == before
    assert await log.unwritten() == []
    await store.append(lease, [*unwritten, _row(log.embedded_records())])
    assert [row.kind for row in await store.read_log(_THREAD)] == ["user", "step", "step"]
    assert log.run_id == "run_1"
    await store.close()


@pytest.mark.parametrize(
    "records",
    [
        [{**_step("a"), "head": _HEAD, "seconds": 1.0}],
        [{**_step("a"), "head": _HEAD}, _step("b")],
        [{"do": "effect", "node": "a", "key": "k", "state": "began", "head": _HEAD}],
    ],
    ids=["slow", "second", "effect"],
)
async def test_a_record_that_is_not_a_cheap_first_step_takes_the_words_along(
    store: Store, records: list[dict[str, Any]]
) -> None:
    log, _ = await _log(store)
    recorded: list[int] = []
    log.hold([_words()], recorded.append)
    for record in records:
        log.append(record)
        await asyncio.sleep(0)
    await store.check_writable()
    await asyncio.sleep(0)
    rows = await store.read_log(_THREAD)
    assert [row.kind for row in rows] == ["user", "step"]
    assert recorded == [rows[0].id]
    assert await log.unwritten() == []


async def test_a_barrier_makes_a_cheap_first_step_durable(store: Store) -> None:
    log, _ = await _log(store)
    log.append({**_step("a"), "head": _HEAD})
    await log.barrier()
    assert await _nodes(store) == ["a"]


@pytest.mark.parametrize("seconds", [0.01, 1.0], ids=["held", "written"])
async def test_a_run_that_begins_again_leaves_no_run_to_resume(store: Store, seconds: float) -> None:
    log, _ = await _log(store)
    log.hold([_words()], _never if seconds < 0.05 else _any)
    log.append({**_step("a"), "head": _HEAD, "seconds": seconds})
    await asyncio.sleep(0)
    assert not log.left_trace
    await log.begin_again()
    assert newest_run(await store.read_log(_THREAD, kinds=("step",))) == ()
    log.append({**_step("b"), "head": {**_HEAD, "run": "run_2"}, "seconds": 1.0})
    await log.barrier()
    (record,) = newest_run(await store.read_log(_THREAD, kinds=("step",)))
    assert record is not None
    assert record["head"]["run"] == "run_2"
    log.append(_step("c"))
    assert log.left_trace


async def test_every_barrier_after_a_lost_lease_fails(store: Store) -> None:
    log, _ = await _log(store)
    log.append(_step("a"))
    await log.barrier()
    await store.break_leases()
    log.append(_step("b"))
    for _ in range(2):
        with pytest.raises(FenceLost):
            await log.barrier()
    await log.finish([_step("c")])
    with pytest.raises(FenceLost):
        await log.unwritten()
    assert await _nodes(store) == ["a"]


async def test_a_record_that_is_not_plain_data_fails_the_barrier(store: Store) -> None:
    log, _ = await _log(store)
    log.append({**_step("a"), "result": object()})
    with pytest.raises(StorageError, match="plain JSON data"):
        await log.barrier()


async def test_branches_may_append_while_another_waits() -> None:
    store = SlowStore()
    await store.open()
    log, _ = await _log(store)
    log.append(_step("a"))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(log.barrier())
        await asyncio.sleep(0)
        log.append(_step("b"))
        second = group.create_task(log.barrier())
        await asyncio.sleep(0)
        store.waiting[0].set_result((1,))
        await first
        assert not second.done()
        store.waiting[1].set_result((2,))


async def test_a_cancelled_barrier_cancels_no_write() -> None:
    store = SlowStore()
    await store.open()
    log, _ = await _log(store)
    log.append(_step("a"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await log.barrier()
    assert not store.waiting[0].done()
    store.waiting[0].set_result((1,))
    await log.barrier()


def _any(_record_id: int) -> None:
    """Accept every id."""


async def test_a_question_has_the_records_before_it_in_its_commit() -> None:
    store = SlowStore()
    await store.open()
    log, lease = await _log(store)
    # As for a workflow, so that the turns of the loop hand nothing over.
    log.together_s = 3600.0

    async def asks(_state: State, _context: None) -> NodeResult:
        return NodeResult(update={"x": 1}, decision=Pause(prompt="Sure?"))

    graph = GraphSpec[None, State](name="g", entry="ask", nodes={"ask": asks}, edges=())
    outcome = await Executor(graph).run({}, None, log=log)
    assert outcome.gates
    assert store.waiting == []
    rows = await log.unwritten()
    await MemoryStore.append(store, lease, rows)
    (row,) = await store.read_log(_THREAD)
    assert [record and record["do"] for record in from_rows(row.body)] == ["step", "pause"]
    assert Executor(graph).interrupted(from_rows(row.body)).gates == outcome.gates
