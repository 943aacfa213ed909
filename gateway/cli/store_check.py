"""`parlour doctor` on the data folder and the store in it, or in Postgres."""

from __future__ import annotations

from gateway.cli.database_check import database_findings
from gateway.cli.findings import Finding
from gateway.cli.jobs import jobs_finding
from gateway.config import Settings
from gateway.runtime.data_dir import STORE_FILE, DataDir, DataDirBusy
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ParlourError


async def store_findings(settings: Settings, clock: Clock) -> tuple[bool, list[Finding]]:
    """Whether a gateway uses the data folder now, and the findings about it, the store and its jobs."""
    on_postgres = settings.storage.kind == "postgres"
    try:
        data = DataDir.claim(settings.data.dir)
    except DataDirBusy as error:
        words = f"in use by the gateway with process id {error.pid}"
        found, busy = [Finding(name="data folder", good=True, words=words)], True
        if not on_postgres:
            store = SqliteStore(settings.data.dir / STORE_FILE)
            found += [await _store_in_use(store), await jobs_finding(settings.data.dir / STORE_FILE)]
    except ParlourError as error:
        return False, [Finding(name="data folder", good=False, words=str(error))]
    else:
        try:
            busy = False
            found = [] if on_postgres else [await _store(data), await jobs_finding(data.store_path)]
        finally:
            data.release()
    if on_postgres:
        found += await database_findings(settings, clock)
    return busy, found


async def _store(data: DataDir) -> Finding:
    store = SqliteStore(data.store_path)
    try:
        await store.open()
        await store.check_writable()
        damage = await store.find_damage()
        counts = await store.counts()
    except ParlourError as error:
        return Finding(name="store", good=False, words=str(error))
    finally:
        await store.close()
    if damage:
        return _damaged(damage)
    words = f"writable and whole; {counts.inbox_done} messages done, {counts.inbox_open} waiting, "
    return Finding(name="store", good=True, words=words + f"{counts.outbox_open} replies unsent")


async def _store_in_use(store: SqliteStore) -> Finding:
    """Whether the store file of a running gateway is undamaged. Writes nothing."""
    try:
        damage = await store.find_damage()
    except ParlourError as error:
        return Finding(name="store", good=False, words=str(error))
    return _damaged(damage) if damage else Finding(name="store", good=True, words="whole")


def _damaged(damage: tuple[str, ...]) -> Finding:
    words = f"the file is damaged; stop the gateway and restore a backup (docs/guides/deploy.md): {damage[0]}"
    more = f"; and {len(damage) - 1} more" if damage[1:] else ""
    return Finding(name="store", good=False, words=words + more)
