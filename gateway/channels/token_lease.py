"""Let one gateway at a time use a bot token: the platform would split its messages between two.

Held in two places: as a lease in the store, for all processes that share one, and as a locked file of
the user on this machine, for gateways with separate data folders. Not a secret store: only a hash of the
token is used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from gateway.storage.leases import ProcessingCoordinator
from pipeline.domain.errors import ConfigurationError, ParlourError

_HASH_CHARS = 16
_PID_CHARS = 20


class TokenInUse(ParlourError):
    """Another gateway uses the token; the text says which one and what to do."""

    code = "token_in_use"
    permanent = False


class HeldElsewhere(TokenInUse):
    """Another process of this gateway has what `name` names; this one takes over when that ends."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} is run by another process, and by this one when that ends")


class TokenLease:
    """The right to receive with one bot token; can be acquired repeatedly.

    `token` is called each time, so that a rotated token gets a new lease.
    """

    def __init__(
        self,
        *,
        channel: str,
        token: Callable[[], str],
        coordinator: ProcessingCoordinator,
        folder: Path,
        shared: bool = False,
    ) -> None:
        """`shared`: other processes of this gateway may lock the file too; the store says which of them
        receives."""
        self._shared = shared
        self._channel = channel
        self._token = token
        self._coordinator = coordinator
        self._folder = folder

    @asynccontextmanager
    async def held(self, on_lost: Callable[[], None]) -> AsyncIterator[None]:
        """Hold the lease within the block. `on_lost` is called when another process has taken it over.

        Raises TokenInUse, ConfigurationError when the lock folder or the token is unusable, StorageError.
        """
        digest = hashlib.sha256(self._token().encode()).hexdigest()[:_HASH_CHARS]
        # The file first: it also separates two channels of this process, which the store would give the same
        # lease twice.
        name = f"{self._channel}-{digest}.lock"
        with _locked(self._folder, name, self._channel, shared=self._shared):
            # Not a thread's key: `bot` is no channel, and threads are listed by messages, not by leases.
            lease = await self._coordinator.acquire(f"bot:{self._channel}:{digest}", on_lost)
            if lease is None:
                raise (
                    HeldElsewhere(self._channel)
                    if self._shared
                    else TokenInUse(_words(self._channel, "another process that shares this store"))
                )
            try:
                yield
            finally:
                await self._coordinator.release(lease)


def lock_folder(environ: Mapping[str, str]) -> Path:
    """The folder of this user's locks: in the session's runtime folder, else in the temporary folder.

    Nothing is created or checked before a lease is acquired.
    """
    runtime = Path(environ.get("XDG_RUNTIME_DIR") or ".")
    if runtime.is_absolute() and runtime.is_dir():
        return runtime / "parlour"
    return Path(tempfile.gettempdir()) / f"parlour-{os.geteuid()}"


@contextmanager
def _locked(folder: Path, name: str, channel: str, *, shared: bool) -> Iterator[None]:
    """Lock the file `name`. The kernel releases the lock when the process ends in any way. The file stays,
    because another process may just have opened it."""
    try:
        directory = _open_folder(folder)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            lock = os.open(name, flags, 0o600, dir_fd=directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise ConfigurationError(
            f"{channel}: cannot lock the bot token in {folder} ({error.strerror}); "
            "make it a folder that is yours alone, or set XDG_RUNTIME_DIR to one"
        ) from error
    try:
        _take(lock, channel, shared=shared)
        yield
    finally:
        os.close(lock)


def _open_folder(folder: Path) -> int:
    """A descriptor of the folder, created if missing. Raises OSError if another user owns it."""
    folder.mkdir(mode=0o700, exist_ok=True)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(directory)
    if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077:
        return directory
    os.close(directory)
    raise PermissionError(0, "it belongs to, or is open to, other users")


def _take(lock: int, channel: str, *, shared: bool) -> None:
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError as error:
        pid = os.pread(lock, _PID_CHARS, 0).decode("ascii", "replace").strip()
        who = f"process {pid}" if pid.isdigit() else "another process"
        if pid == str(os.getpid()):
            who = "another channel of this gateway"
        raise TokenInUse(_words(channel, who)) from error
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(os.getpid()).encode(), 0)


def _words(channel: str, who: str) -> str:
    return f"the {channel} bot token is in use by {who}; stop that one, or give this gateway a separate token"
