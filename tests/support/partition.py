"""A proxy in front of a server, which can be cut off: a partition between one process and the server."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

_CHUNK = 65_536


class Partition:
    """Passes bytes between clients and a server. While it is cut, nothing passes and nothing is refused: the
    bytes wait, as those of a network that loses everything do until it is whole again."""

    def __init__(self, connect: Callable[[], Awaitable[tuple[StreamReader, StreamWriter]]]) -> None:
        """`connect` opens a connection to the server."""
        self._connect = connect
        self._whole = asyncio.Event()
        self._whole.set()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Let nothing pass."""
        self._whole.clear()

    def mend(self) -> None:
        """Let everything pass again, first what waits."""
        self._whole.set()

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._whole.wait()
            with suppress(OSError):
                theirs, ours = await self._connect()
                await self._both(reader, ours, theirs, writer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _both(
        self, client: StreamReader, to_server: StreamWriter, server: StreamReader, to_client: StreamWriter
    ) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                directions = [
                    group.create_task(self._pass(client, to_server)),
                    group.create_task(self._pass(server, to_client)),
                ]
                await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
                for direction in directions:
                    direction.cancel()
        finally:
            to_server.close()

    async def _pass(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(_CHUNK):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
