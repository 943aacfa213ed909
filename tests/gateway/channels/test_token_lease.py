"""One gateway per bot token: through a shared store, and across data folders through a locked file."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from gateway.channels.token_lease import TokenInUse, TokenLease, lock_folder
from gateway.storage.leases import ProcessingCoordinator
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Store
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import ConfigurationError

_TOKEN = "1234567:a-token-that-no-one-may-see"
_FILE = f"telegram-{hashlib.sha256(_TOKEN.encode()).hexdigest()[:16]}.lock"

_HOLDER = """
import asyncio, sys
from pathlib import Path
from gateway.storage.leases import ProcessingCoordinator
from gateway.storage.memory import MemoryStore
from gateway.channels.token_lease import TokenLease
from pipeline.domain.clock import SystemClock

async def hold():
    store, clock = MemoryStore(), SystemClock()
    await store.open()
    coordinator = ProcessingCoordinator(store, clock, lease_s=30)
    lease = TokenLease(
        channel="telegram", token=lambda: sys.argv[2], coordinator=coordinator, folder=Path(sys.argv[1])
    )
    async with lease.held(lambda: None):
        print("held", flush=True)
        await asyncio.Event().wait()

asyncio.run(hold())
"""


@asynccontextmanager
async def _held(
    folder: Path,
    store: Store | None = None,
    *,
    token: str = _TOKEN,
    channel: str = "telegram",
    on_lost: Callable[[], None] = lambda: None,
) -> AsyncIterator[None]:
    """As one gateway would hold it; with a separate store if none is given."""
    if store is None:
        store = MemoryStore()
        await store.open()
    coordinator = ProcessingCoordinator(store, ManualClock(), lease_s=30)
    lease = TokenLease(channel=channel, token=lambda: token, coordinator=coordinator, folder=folder)
    async with lease.held(on_lost):
        yield


@contextmanager
def _another_process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _HOLDER, str(folder), _TOKEN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


async def test_two_leases_on_one_folder_are_one_too_many(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    async with _held(folder):
        with pytest.raises(TokenInUse, match="in use by another channel of this gateway; stop that one"):
            async with _held(folder):
                pytest.fail("a second owner")
    async with _held(folder):
        pass


async def test_other_tokens_and_other_channels_are_not_concerned(tmp_path: Path) -> None:
    async with (
        _held(tmp_path / "locks"),
        _held(tmp_path / "locks", token="another"),
        _held(tmp_path / "locks", channel="slack"),
    ):
        assert len(list((tmp_path / "locks").iterdir())) == 3


async def test_the_holder_is_named_and_killing_it_frees_the_token(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    with _another_process(folder) as holder:
        with pytest.raises(TokenInUse, match=f"in use by process {holder.pid};"):
            async with _held(folder):
                pytest.fail("a second owner")
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        async with _held(folder):
            assert (folder / _FILE).read_text() == str(os.getpid())


async def test_a_file_that_was_left_behind_hinders_no_one(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    folder.mkdir(mode=0o700)
    (folder / _FILE).write_text("4711 and more than a process id has")
    async with _held(folder):
        assert (folder / _FILE).read_text() == str(os.getpid())


async def test_a_store_that_is_shared_has_one_owner_too(tmp_path: Path) -> None:
    store = MemoryStore()
    await store.open()
    lost: list[str] = []
    async with _held(tmp_path / "one", store, on_lost=lambda: lost.append("one")):
        with pytest.raises(TokenInUse, match="another process that shares this store"):
            async with _held(tmp_path / "two", store):
                pytest.fail("a second owner")
        # Nothing is left locked by the one that was refused.
        async with _held(tmp_path / "two"):
            pass
    async with _held(tmp_path / "two", store):
        assert lost == []


async def test_a_lease_is_renewed_and_its_loss_is_reported(tmp_path: Path) -> None:
    store, clock = MemoryStore(), ManualClock()
    await store.open()
    coordinator = ProcessingCoordinator(store, clock, lease_s=30)
    lease = TokenLease(
        channel="telegram", token=lambda: _TOKEN, coordinator=coordinator, folder=tmp_path / "l"
    )
    lost = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        renewal = group.create_task(coordinator.keep_renewing())
        async with lease.held(lost.set):
            await clock.advance(300)
            assert not lost.is_set()
            await store.break_leases()
            key = f"bot:telegram:{hashlib.sha256(_TOKEN.encode()).hexdigest()[:16]}"
            assert await store.acquire_lease(key, "somebody", ttl_s=30, now=clock.now()) is not None
            await clock.advance(10)
            assert lost.is_set()
        renewal.cancel()


async def test_the_stores_lease_is_no_thread_and_its_key_no_token(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.sqlite3", synchronous="NORMAL")
    await store.open()
    before = await store.counts()
    async with _held(tmp_path / "locks", store):
        assert await store.open_threads() == ()
        assert await store.outbox_open() == ()
        assert await store.counts() == before
    await store.close()
    assert not _files_with(_TOKEN.encode(), tmp_path)


async def test_folder_and_file_are_for_their_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    async with _held(folder):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert (folder / _FILE).stat().st_mode & 0o777 == 0o600


async def test_a_folder_that_others_may_enter_or_that_is_a_link_is_refused(tmp_path: Path) -> None:
    open_to_all, real, link = tmp_path / "open", tmp_path / "real", tmp_path / "link"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    real.mkdir(mode=0o700)
    link.symlink_to(real)
    for folder in (open_to_all, link, tmp_path / "no" / "parent"):
        with pytest.raises(
            ConfigurationError, match=r"telegram: cannot lock the bot token in .*XDG_RUNTIME_DIR"
        ):
            async with _held(folder):
                pytest.fail("locked in a foreign folder")
    assert list(real.iterdir()) == []


async def test_a_link_in_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    folder, precious = tmp_path / "locks", tmp_path / "precious"
    folder.mkdir(mode=0o700)
    precious.write_text("keep me")
    (folder / _FILE).symlink_to(precious)
    with pytest.raises(ConfigurationError):
        async with _held(folder):
            pytest.fail("followed a link")
    assert precious.read_text() == "keep me"


def test_the_locks_lie_in_the_runtime_folder_if_there_is_one(tmp_path: Path) -> None:
    assert lock_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "parlour"
    for odd in ({}, {"XDG_RUNTIME_DIR": ""}, {"XDG_RUNTIME_DIR": "."}, {"XDG_RUNTIME_DIR": "/no/such"}):
        assert lock_folder(odd).name == f"parlour-{os.geteuid()}"


def _files_with(words: bytes, folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and words in path.read_bytes()]
