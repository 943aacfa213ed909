"""A cluster under faults: kill -9, frozen processes, restarts of Postgres and of Valkey, and platforms that
misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.cluster_faults import ClusterFaultPlan, run_cluster_faults
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram
from tests.support.postgres_fixture import skips_without_postgres

pytestmark = [pytest.mark.crash, pytest.mark.soak, pytest.mark.timeout(3_000)]


async def test_a_cluster_outlives_kills_freezes_and_restarts_of_its_servers(
    tmp_path: Path, record_property: Callable[[str, object], None], *, soak: bool
) -> None:
    plan = ClusterFaultPlan(seed=3)
    if not soak:
        plan = ClusterFaultPlan(
            seed=3,
            kills=3,
            freezes=1,
            postgres_restarts=1,
            valkey_kills=1,
            partitions=1,
            messages=18,
            chats=3,
        )
    with skips_without_postgres():
        found = await run_cluster_faults(tmp_path, plan, [FakeTelegram(), FakeSlack(), FakeDiscord()])
    line = json.dumps(
        {**asdict(found.stored), "takeovers": len(found.takeovers_s), "seconds": round(found.seconds)}
    )
    record_property("cluster faults", line)
    assert found.broken == {}, line
    assert found.stored.messages >= 3 * plan.messages
