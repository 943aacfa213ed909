"""Jobs that several processes claim, on each store that several can share."""

from __future__ import annotations

import pytest

from gateway.storage.jobs import NewJob
from gateway.storage.owners import Owner, SharedStore
from gateway.storage.ports import Store
from tests.contracts.store_values import NOW

pytestmark = pytest.mark.parametrize("store_kind", ["memory", "postgres"], indirect=True)

ALIVE_S = 600.0
GONE_S = -1.0
"""A report with this time to live has expired already, also on a store with a clock."""


@pytest.fixture
def shared(store: Store) -> SharedStore:
    assert isinstance(store, SharedStore)
    return store


async def beat(shared: SharedStore, name: str, ttl_s: float) -> None:
    await shared.owners.beat(Owner(id=name, name=name, role="work", version="1"), ttl_s=ttl_s, now=NOW)


async def add(shared: SharedStore, key: str, *, kind: str = "title", in_s: float = 0.0) -> None:
    await shared.jobs.add(NewJob(kind=kind, key=key, due=NOW + in_s))


async def test_the_jobs_of_a_process_that_is_gone_are_taken_back_and_no_others(shared: SharedStore) -> None:
    await beat(shared, "gone", GONE_S)
    await beat(shared, "alive", ALIVE_S)
    for key in ("gone", "alive", "unknown", "alone"):
        await add(shared, key)
    claims = [await shared.jobs.claim("title", now=NOW, until=NOW + 60, by=by) for by in ("gone", "alive")]
    claims.append(await shared.jobs.claim("title", now=NOW, until=NOW + 60, by="never reported"))
    claims.append(await shared.jobs.claim("title", now=NOW, until=NOW + 60))
    gone, alive, _unknown, alone = claims
    assert await shared.jobs.take_back(now=NOW) == 2
    assert await shared.jobs.take_back(now=NOW) == 0
    again = await shared.jobs.claim("title", now=NOW, until=NOW + 60, by="alive")
    assert again is not None
    assert (again.key, again.attempts) == ("gone", 2)
    assert gone is not None
    assert not await shared.jobs.done(gone)
    for one in (alive, alone, again):
        assert one is not None
        assert await shared.jobs.done(one)


async def test_a_process_that_retires_leaves_its_jobs_at_once(shared: SharedStore) -> None:
    await beat(shared, "own_a", ALIVE_S)
    await add(shared, "1")
    assert await shared.jobs.claim("title", now=NOW, until=NOW + 60, by="own_a")
    assert await shared.jobs.take_back(now=NOW) == 0
    await shared.owners.retire("own_a")
    assert await shared.jobs.take_back(now=NOW) == 1


async def test_the_soonest_times_of_several_kinds_are_those_of_each(shared: SharedStore) -> None:
    await add(shared, "1", in_s=5)
    await add(shared, "2", in_s=3)
    await add(shared, "3", kind="summary")
    await add(shared, "4", kind="other")
    found = await shared.jobs.soonest(("title", "summary", "none"))
    assert found == {"title": NOW + 3, "summary": NOW}
