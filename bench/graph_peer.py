"""LangGraph's side of the graph bench. `python -m bench.graph_peer FOLDER`, in the environment of peer.lock.

Its savers have their defaults; the graphs are in `bench.graph_peer_graphs`.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import sqlite3
import sys
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from bench.graph_peer_graphs import State, graph_for, has_messages
from bench.graph_work import Case, inputs, seed
from bench.graph_worker import Hold, Turn, serve

_LIMIT = 100  # steps of a run; LangGraph's default is below the loop's forty


class Peer:
    """LangGraph under measurement."""

    def __init__(self, folder: Path, hold: Hold) -> None:
        self._folder = folder
        self._hold = hold
        self._open = AsyncExitStack()
        self._path: Path | None = None
        self._saver: Any = None
        self._threads = 0

    def about(self) -> dict[str, Any]:
        """Versions, and what SQLite does at a commit."""
        names = ("langgraph", "langgraph-checkpoint-sqlite")
        connection = sqlite3.connect(":memory:")
        level = connection.execute("PRAGMA synchronous").fetchone()[0]
        connection.close()
        return {"versions": {name: importlib.metadata.version(name) for name in names}, "synchronous": level}

    async def prepare(self, case: Case, count: int) -> Sequence[Turn]:
        await self._use_saver(case)
        app = graph_for(case, self._hold).compile(checkpointer=self._saver)
        return [await self._thread(app, case, number) for number in range(count)]

    def database(self) -> Path | None:
        return self._path

    async def close(self) -> None:
        await self._open.aclose()
        self._path = self._saver = None

    async def _use_saver(self, case: Case) -> None:
        """A fresh one in memory; one file for all turns of a case, new when the case changes."""
        path = self._folder / f"{case.graph}-{case.store}-{case.history}.sqlite3"
        if case.store.startswith("sqlite") and self._path == path:
            return
        await self.close()
        match case.store:
            case "memory":
                self._saver = InMemorySaver()
            case "sqlite" | "sqlite-normal" | "sqlite-exit":
                saver = AsyncSqliteSaver.from_conn_string(str(path))
                self._saver, self._path = await self._open.enter_async_context(saver), path
                if case.store == "sqlite-normal":
                    await self._saver.conn.execute("PRAGMA synchronous = NORMAL")
            case "sqlite-blocking":
                self._saver = self._open.enter_context(SqliteSaver.from_conn_string(str(path)))
                self._path = path

    async def _thread(self, app: Any, case: Case, number: int) -> Turn:
        self._threads += 1
        thread = f"web:local:{self._threads}"
        config = {"configurable": {"thread_id": thread}, "recursion_limit": _LIMIT}
        begin = inputs(case, thread, number)
        history = _history(case, thread)
        last = "finalize_turn" if case.graph == "safety8" else "answer"
        options: dict[str, Any] = {}
        if case.store == "none":
            begin |= history
        elif case.store == "sqlite-blocking":
            app.update_state(config, history, as_node=last)
        elif history:
            await app.aupdate_state(config, history, as_node=last)
        if case.store == "sqlite-exit":
            options["durability"] = "exit"

        async def turn() -> State:
            state: State = await app.ainvoke(begin, config, **options)
            return state

        async def blocking_turn() -> State:
            state: State = app.invoke(begin, config)
            return state

        return blocking_turn if case.store == "sqlite-blocking" else turn


def _history(case: Case, thread: str) -> dict[str, Any]:
    """The part of the state that holds the thread's messages; empty for none."""
    history = seed(thread, case.history)
    if not history:
        return {}
    if not has_messages(case):
        return {"history": history}
    kinds = {"user": HumanMessage, "assistant": AIMessage}
    # With ids, as messages have that were in a state before.
    return {"messages": [kinds[one["role"]](one["content"], id=str(uuid.uuid4())) for one in history]}


async def _main(folder: Path) -> None:
    hold = Hold()
    await serve(Peer(folder, hold), hold)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
