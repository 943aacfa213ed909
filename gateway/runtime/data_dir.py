"""Open the data folder: private to the user, locked by one process at a time; it holds the web token."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import IO

from pipeline.domain.errors import ConfigurationError

_LOCK_FILE = "gateway.lock"
_LOCK_CHARS = 400
_KEY_BYTES = 32
STORE_FILE = "parlour.sqlite3"
MEDIA_DIR = "media"
FILES_DIR = "files"
CHRONICLE_DIR = "chronicle"
COMMANDS_DIR = "commands"
LINKS_KEY_FILE = "links.key"
CRISES_KEY_FILE = "crises.key"


class DataDirBusy(ConfigurationError):
    """Another process uses the folder. `pid` is the one it wrote, or empty. `page` is the address of its web
    page: empty if that is switched off, None while the process starts."""

    def __init__(self, path: Path, pid: str, page: str | None = None) -> None:
        who = f"process {pid}" if pid else "another process"
        super().__init__(
            f"data.dir: {path} is in use by {who}; stop that gateway, or choose another folder with data.dir"
        )
        self.pid = pid
        self.page = page


class DataDir:
    """An opened data folder. The kernel releases its lock when the process ends in any way."""

    def __init__(self, path: Path, lock: IO[str]) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def claim(cls, path: Path, *, shared: bool = False) -> DataDir:
        """Create and lock the folder; `shared`, other processes that claim it so may have it too. Raises
        DataDirBusy, or ConfigurationError with a readable message."""
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock_path = path / _LOCK_FILE
            lock = os.fdopen(os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii")
        except OSError as error:
            raise ConfigurationError(
                f"data.dir: cannot use {path} ({error.strerror}); make it writable or choose another folder"
            ) from error
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            pid, ended, page = lock.read(_LOCK_CHARS).partition("\n")
            lock.close()
            raise DataDirBusy(path, pid.strip(), page.strip() if ended else None) from error
        if not shared:  # another process may have noted its page
            lock.seek(0)
            lock.truncate()
            lock.write(str(os.getpid()))
            lock.flush()
        return cls(path, lock)

    def note_page(self, url: str) -> None:
        """Write the address of this process's web page for processes that find the folder in use; `url` is
        empty without a page. Raises OSError."""
        self._lock.seek(0)
        self._lock.truncate()
        self._lock.write(f"{os.getpid()}\n{url}\n")
        self._lock.flush()

    @property
    def store_path(self) -> Path:
        """The path of the SQLite file."""
        return self.path / STORE_FILE

    @property
    def media_path(self) -> Path:
        """The folder of voice notes that wait for their turn."""
        return self.path / MEDIA_DIR

    @property
    def files_path(self) -> Path:
        """The folder of the files of conversations."""
        return self.path / FILES_DIR

    @property
    def links_key_path(self) -> Path:
        """The file of the key that signs links to files."""
        return self.path / LINKS_KEY_FILE

    @property
    def crises_key_path(self) -> Path:
        """The file of the key that hashes ids in the records of crisis responses."""
        return self.path / CRISES_KEY_FILE

    def release(self) -> None:
        """Unlock the folder. Safe to call twice."""
        self._lock.close()


def own_web_token(path: Path) -> str:
    """The access token in the file `path`, created at the first call (mode 600)."""
    try:
        token = path.read_text(encoding="ascii").strip()
        if token:
            return token
    except FileNotFoundError:
        pass  # the first start: the token is created below
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"channels.web.token: cannot read {path}; delete the file to get a new token"
        ) from error
    token = secrets.token_urlsafe(18)
    _write_private(path, f"{token}\n".encode("ascii"), "channels.web.token")
    return token


def own_key(path: Path) -> bytes:
    """The key in the file `path`, created at the first call (mode 600)."""
    try:
        key = path.read_bytes()
        # A file that was cut by a crash is replaced: links that were given out stop working, and hashes of
        # earlier crisis records are comparable with no later one; no more.
        if len(key) == _KEY_BYTES:
            return key
    except FileNotFoundError:
        pass  # the first start: the key is created below
    except OSError as error:
        raise ConfigurationError(f"data.dir: cannot read {path} ({error.strerror})") from error
    key = secrets.token_bytes(_KEY_BYTES)
    _write_private(path, key, "data.dir")
    return key


def _write_private(path: Path, content: bytes, setting: str) -> None:
    """Write a file that only this account may read. Raises ConfigurationError that names `setting`."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
    except OSError as error:
        raise ConfigurationError(f"{setting}: cannot write {path} ({error.strerror})") from error
