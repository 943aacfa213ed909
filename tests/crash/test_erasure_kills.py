"""kill -9 while a person is erased: the next start completes it, and others keep what is theirs.

Covers: gateway/ingress/full_erasure.py, gateway/storage/sqlite/erasure.py.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from gateway.storage.sqlite.jobs import SqliteJobs
from gateway.storage.sqlite.offline import beside
from tests.end_to_end.test_people_erase import Phrases, begin_erasure, found, leave_everything
from tests.support.gateway_process import GatewayProcess
from tests.support.looks import look_again

pytestmark = pytest.mark.crash


async def test_an_erasure_is_completed_after_a_kill_at_each_of_its_steps(tmp_path: Path) -> None:
    phrase = Phrases("ann")
    await leave_everything(tmp_path / "left", phrase, waits=False)
    await asyncio.to_thread(begin_erasure, tmp_path / "left", "console:local:owner")
    for label in ("person-chats-erased", "person-room-redacted", "person-forgotten", "person-compacted"):
        folder = tmp_path / label
        shutil.copytree(tmp_path / "left", folder / "data")
        async with GatewayProcess(folder) as gateway:
            # `start` would also wait for /readyz, and the process may reach the label before it is asked.
            await gateway.spawn(crash_at=f"{label}:1")
            assert await gateway.wait_exit() == 137
            await gateway.start()
            async with beside(gateway.store_path, SqliteJobs) as book:
                while any(job.kind == "full_erasure" for job in await book.listed(limit=9)):
                    await look_again()
            await gateway.stop()
        assert found(gateway.data_dir, phrase.all) == {}, label
        assert found(gateway.data_dir, ["staysforben"])
