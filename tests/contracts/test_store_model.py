"""The durable stores against MemoryStore as their model: whatever is done to both, both answer the same."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import VISIBLE_KINDS, Lease, RecordKind, SentPart, Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import StorageError
from tests.contracts.store_values import NOW, entry, interaction, record, reply, turn
from tests.support.postgres_fixture import Emptier

THREADS = ("t:a:1", "t:a:2")
threads = st.sampled_from(THREADS)
owners = st.sampled_from(("me", "you"))
small = st.integers(min_value=1, max_value=6)
bodies = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
        max_leaves=4,
    ),
    max_size=2,
)
kinds = st.sampled_from((*VISIBLE_KINDS, "step"))

Operation = Callable[[Store], Awaitable[Any]]


class Stores(RuleBasedStateMachine):
    """Two stores, the leases handed out so far, and a clock that only the rules move."""

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "store.db"
        self._model = MemoryStore()
        self._durable = self._opened_again()
        self._leases: list[Lease] = [Lease(thread=THREADS[0], owner="me", fence=0, expires_at=0.0)]
        self._now = NOW

    @initialize()
    def open_both(self) -> None:
        self._runner.run(self._model.open())
        self._runner.run(self._durable.open())

    def teardown(self) -> None:
        self._runner.run(self._durable.close())
        self._runner.close()
        self._folder.cleanup()

    # -- what can happen ----------------------------------------------------------------------
    @rule(key=small, thread=threads, body=bodies, limit=st.none() | small, begin=st.booleans())
    def accept(self, key: int, thread: str, body: dict[str, Any], limit: int | None, begin: bool) -> None:
        new = entry(str(key), thread=thread, body=body)
        self._both(lambda store: store.accept(new, limit=limit, begin=begin))

    @rule(thread=threads, up_to=st.none() | small)
    def cancel(self, thread: str, up_to: int | None) -> None:
        self._both(lambda store: store.cancel_open(thread, up_to_seq=up_to))

    @rule(thread=threads, owner=owners, wait_s=st.sampled_from((0, 0, 29, 30)))
    def acquire(self, thread: str, owner: str, wait_s: int) -> None:
        self._now += wait_s
        now = self._now
        lease = self._both(lambda store: store.acquire_lease(thread, owner, ttl_s=30, now=now))
        if isinstance(lease, Lease):
            self._leases.append(lease)

    @rule(back=small)
    def renew(self, back: int) -> None:
        lease, now = self._lease(back), self._now
        self._both(lambda store: store.renew_lease(lease, ttl_s=30, now=now))

    @rule(back=small)
    def release(self, back: int) -> None:
        lease = self._lease(back)
        self._both(lambda store: store.release_lease(lease))

    @rule(back=small, seq=small)
    def start_attempt(self, back: int, seq: int) -> None:
        lease = self._lease(back)
        self._both(lambda store: store.start_attempt(lease, seq))

    @rule(back=small, seq=small)
    def discount_attempt(self, back: int, seq: int) -> None:
        lease = self._lease(back)
        self._both(lambda store: store.discount_attempt(lease, seq))

    @rule()
    def note_deaths(self) -> None:
        self._both(lambda store: store.deaths.note())

    @rule(back=small, kind=kinds, message=small, body=bodies, attempt=st.none() | small)
    def append(
        self, back: int, kind: RecordKind, message: int, body: dict[str, Any], attempt: int | None
    ) -> None:
        lease = self._lease(back)
        records = [record(kind, message=f"msg-{message}", n=body), record("step", message=f"msg-{message}")]
        self._both(lambda store: store.append(lease, records, attempt=attempt))

    @rule(back=small, seq=small, key=small)
    def commit(self, back: int, seq: int, key: int) -> None:
        self._both(self._commit(back, seq, key))

    @rule(tries=st.lists(st.tuples(small, small, small, st.booleans()), min_size=2, max_size=8))
    def many_at_once(self, tries: list[tuple[int, int, int, bool]]) -> None:
        """Calls that SQLite puts into one transaction, good and refused ones side by side."""
        operations = [
            self._commit(back, seq, key) if commits else self._append_one(back, key)
            for back, seq, key, commits in tries
        ]
        expected = [self._runner.run(outcome(operation, self._model)) for operation in operations]

        async def together() -> list[Any]:
            return await asyncio.gather(*(outcome(operation, self._durable) for operation in operations))

        assert self._runner.run(together()) == expected

    @rule(back=small, row=small, change=st.sampled_from(("sending", "sent", "retry", "failed", "shown")))
    def move_reply(self, back: int, row: int, change: str) -> None:
        lease, part = self._lease(back), SentPart(part=row, native_id=f"native-{row}", final=False)
        changes: dict[str, Operation] = {
            "sending": lambda store: store.mark_sending(lease, row),
            "sent": lambda store: store.mark_sent(lease, row, f"native-{row}", NOW),
            "retry": lambda store: store.mark_retry(lease, row, "slow down", NOW + 1),
            "failed": lambda store: store.mark_failed(lease, row, "gone"),
            "shown": lambda store: store.record_sent_part(lease, f"reply-{row}", part),
        }
        self._both(changes[change])

    @rule(number=small, thread=threads)
    def ask(self, number: int, thread: str) -> None:
        self._both(lambda store: store.open_interaction(interaction(f"act-{number}", thread=thread)))

    @rule(
        number=small,
        thread=threads,
        user=st.sampled_from(("ann", "eve")),
        choice=st.sampled_from(("allow", "maybe")),
    )
    def answer(self, number: int, thread: str, user: str, choice: str) -> None:
        now = self._now
        self._both(
            lambda store: store.answer_interaction(
                f"act-{number}", thread=thread, user=user, choice=choice, now=now
            )
        )

    @rule(breaking=st.booleans())
    def restart(self, breaking: bool) -> None:
        self._runner.run(self._durable.close())
        self._runner.run(self._model.close())
        self._durable = self._opened_again()
        self._runner.run(self._durable.open())
        self._runner.run(self._model.open())
        if breaking:
            self._both(lambda store: store.break_leases())

    # -- what must hold after each step -------------------------------------------------------
    @invariant()
    def both_hold_the_same(self) -> None:
        self._both(self._everything)

    async def _everything(self, store: Store) -> list[Any]:
        seen: list[Any] = [await store.counts(), await store.open_threads(), await store.outbox_open()]
        for thread in THREADS:
            seen += [
                await store.open_entries(thread),
                await store.next_entry(thread),
                await store.read_log(thread),
                await store.read_log(thread, kinds=VISIBLE_KINDS, session_id="ses-1", limit=3),
                await store.read_log(thread, message_id="msg-1", after=2),
                await store.current_session(thread),
                await store.pending_interactions(thread, now=self._now),
            ]
        return seen

    # -- inside -------------------------------------------------------------------------------
    def _opened_again(self) -> Store:
        """The durable store, as a new process would open it."""
        return SqliteStore(self._path, synchronous="NORMAL")

    def _both(self, operation: Operation) -> Any:
        expected = self._runner.run(outcome(operation, self._model))
        actual = self._runner.run(outcome(operation, self._durable))
        assert actual == expected
        return actual

    def _lease(self, back: int) -> Lease:
        return self._leases[-min(back, len(self._leases))]

    def _commit(self, back: int, seq: int, key: int) -> Operation:
        lease = self._lease(back)
        message = f"msg-{seq}"
        commit = turn(
            seq,
            record("user", message=message),
            record("assistant", message=message),
            outbox=(reply(f"key-{key}", message=message),),
        )
        return lambda store: store.commit_turn(lease, commit)

    def _append_one(self, back: int, message: int) -> Operation:
        lease = self._lease(back)
        return lambda store: store.append(lease, [record("user", message=f"msg-{message}")])


async def outcome(operation: Operation, store: Store) -> Any:
    """What came of it: the value, or the kind and words of the refusal."""
    try:
        return await operation(store)
    except StorageError as error:
        return type(error), str(error)


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


class PostgresStores(Stores):
    """The same with Postgres."""

    url: ClassVar[str]
    emptier: ClassVar[Emptier]
    begun: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.emptier.empty()
        PostgresStores.begun += 1

    def _opened_again(self) -> Store:
        return PostgresStore(self.url)


def test_postgres_behaves_as_the_model(
    postgres_database: str, postgres_emptier: Emptier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PostgresStores, "url", postgres_database, raising=False)
    monkeypatch.setattr(PostgresStores, "emptier", postgres_emptier, raising=False)
    monkeypatch.setattr(PostgresStores, "begun", 0)
    run_state_machine_as_test(PostgresStores, settings=settings(TestStores.settings, max_examples=6))
    assert PostgresStores.begun >= 6
