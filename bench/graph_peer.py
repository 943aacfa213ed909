"""LangGraph's side of the graph bench. `python -m bench.graph_peer FOLDER`, in the environment of peer.lock.

Written as LangGraph's own documents write such graphs: a TypedDict with reducers, edges, `Command`, a
compiled subgraph, its savers with their defaults.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import operator
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy

from bench import graph_work as work
from bench.graph_work import Case, inputs, seed
from bench.graph_worker import Hold, Turn, serve

State = Mapping[str, Any]
_LIMIT = 100  # steps of a run; LangGraph's default is below the loop's forty
_RETRY = RetryPolicy(max_attempts=2)


class TurnState(TypedDict, total=False):
    """Of the two-node turn."""

    text: str
    history: Annotated[list[dict[str, str]], operator.add]


class LoopState(TypedDict, total=False):
    """Of the loop."""

    n: int


class FanOutState(TypedDict, total=False):
    """Of the fan-out."""

    text: str
    out: Annotated[list[int], operator.add]
    total: int


def merge_dicts(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """The reducer of the diagnostics."""
    return {**left, **right}


class SafetyState(TypedDict, total=False):
    """Of the safety-first graph."""

    text: str
    crisis: bool
    mode: str
    response: str
    memory: list[dict[str, str]]
    history: Annotated[list[dict[str, str]], operator.add]
    transcript: Annotated[list[dict[str, str]], operator.add]
    diagnostics: Annotated[dict[str, Any], merge_dicts]


class TherapeuticState(TypedDict, total=False):
    """Of its subgraph."""

    text: str
    memory: list[dict[str, str]]
    mode: str
    response: str


class TherapeuticOutput(TypedDict, total=False):
    """What the subgraph gives back."""

    mode: str
    response: str


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
        app = self._graph(case).compile(checkpointer=self._saver)
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
        history = seed(thread, case.history)
        last = "finalize_turn" if case.graph == "safety8" else "answer"
        options: dict[str, Any] = {}
        if case.store == "none":
            begin |= {"history": history} if history else {}
        elif case.store == "sqlite-blocking":
            app.update_state(config, {"history": history}, as_node=last)
        elif history:
            await app.aupdate_state(config, {"history": history}, as_node=last)
        if case.store == "sqlite-exit":
            options["durability"] = "exit"

        async def turn() -> State:
            state: State = await app.ainvoke(begin, config, **options)
            return state

        async def blocking_turn() -> State:
            state: State = app.invoke(begin, config)
            return state

        return blocking_turn if case.store == "sqlite-blocking" else turn

    def _graph(self, case: Case) -> Any:
        match case.graph:
            case "loop":
                return _loop_graph()
            case "fanout":
                return _fan_out_graph()
            case "safety8":
                return _safety_graph()
            case "held":
                return _turn_graph(self._hold, blocking=False)
            case "turn":
                return _turn_graph(None, blocking=case.store == "sqlite-blocking")


def _node(run: Callable[[State], dict[str, Any]]) -> Callable[[State], Any]:
    async def node(state: State) -> dict[str, Any]:
        return run(state)

    return node


def _branch(number: int) -> Callable[[State], Any]:
    return _node(lambda _state: work.branch(number))


def _turn_graph(hold: Hold | None, *, blocking: bool) -> Any:
    async def held(state: State) -> dict[str, Any]:
        assert hold is not None
        await hold.wait()
        return work.answer(state)

    graph = StateGraph(TurnState)
    graph.add_node("ask", work.ask if blocking else _node(work.ask))
    if blocking:
        graph.add_node("answer", work.answer)
    else:
        graph.add_node("answer", held if hold else _node(work.answer))
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "answer")
    graph.add_edge("answer", END)
    return graph


def _loop_graph() -> Any:
    graph = StateGraph(LoopState)
    graph.add_node("count", _node(work.count))
    graph.add_edge(START, "count")
    graph.add_conditional_edges("count", lambda state: END if work.enough(state) else "count", ["count", END])
    return graph


def _fan_out_graph() -> Any:
    graph = StateGraph(FanOutState)
    graph.add_node("spread", _node(work.spread))
    graph.add_node("join", _node(work.join))
    graph.add_edge(START, "spread")
    for number in range(work.BRANCHES):
        graph.add_node(f"branch{number}", _branch(number))
        graph.add_edge("spread", f"branch{number}")
        graph.add_edge(f"branch{number}", "join")
    graph.add_edge("join", END)
    return graph


def _safety_graph() -> Any:
    async def crisis_gate(state: State) -> Any:
        update, target = work.crisis_gate(state)
        return Command(update=update, goto=target)

    graph = StateGraph(SafetyState)
    ways_on = ("crisis_response", "load_memory")
    graph.add_node("crisis_gate", crisis_gate, retry_policy=_RETRY, destinations=ways_on)
    graph.add_node("crisis_response", _node(work.crisis_response), retry_policy=_RETRY)
    graph.add_node("crisis_log", _node(work.crisis_log), retry_policy=_RETRY)
    graph.add_node("load_memory", _node(work.load_memory), retry_policy=_RETRY)
    graph.add_node("therapeutic", _therapeutic_graph().compile())
    graph.add_node("finalize_turn", _node(work.finalize_turn))
    graph.add_edge(START, "crisis_gate")
    graph.add_edge("crisis_response", "crisis_log")
    graph.add_edge("crisis_log", "finalize_turn")
    graph.add_edge("load_memory", "therapeutic")
    graph.add_edge("therapeutic", "finalize_turn")
    for kind in ("facts", "procedural_rules"):
        name = f"extract_{kind}"
        graph.add_node(name, _node(partial(work.extract, kind)), retry_policy=_RETRY)
        graph.add_edge("finalize_turn", name)
        graph.add_edge(name, END)
    return graph


def _therapeutic_graph() -> Any:
    graph = StateGraph(TherapeuticState, output_schema=TherapeuticOutput)
    graph.add_node("dispatcher", _node(work.dispatcher))
    graph.add_edge(START, "dispatcher")
    graph.add_conditional_edges("dispatcher", work.chosen_mode, list(work.MODES))
    for mode in work.MODES:
        graph.add_node(mode, _node(partial(work.respond, mode)))
        graph.add_edge(mode, END)
    return graph


async def _main(folder: Path) -> None:
    hold = Hold()
    await serve(Peer(folder, hold), hold)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
