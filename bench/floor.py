"""The floor: the minimal cost of a durable web chat. A WebSocket echo with one SQLite commit.

`python -m bench.floor FILE PORT` serves until it is ended. No queue, no log, no page.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

from aiohttp import WSMsgType, web


class Floor:
    """Commits each text it gets, as durably as the gateway does, and sends it back."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA page_size = 1024")
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT")

    def application(self) -> web.Application:
        """The server's one route, `/ws`."""
        app = web.Application()
        app.router.add_get("/ws", self._serve)
        app.on_startup.append(self._announce)
        return app

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(compress=False)
        await socket.prepare(request)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._db.execute("INSERT INTO said (text) VALUES (?)", (message.data,))
                await socket.send_str(message.data)
        return socket

    async def _announce(self, _app: web.Application) -> None:
        print("ready", flush=True)


if __name__ == "__main__":
    web.run_app(
        Floor(Path(sys.argv[1])).application(), host="127.0.0.1", port=int(sys.argv[2]), print=lambda _: None
    )
