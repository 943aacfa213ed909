"""LangGraph's side of the workflow bench: `python -m bench.workflow_peer FOLDER`, in the peer's environment.

Built as in its documentation: an agent of the document is its prebuilt agent, a graph of the model and its
tools, called in a node; conditional edges; `interrupt` for the approval, `Command(resume=…)` for its answer;
its savers with their defaults. As on our side, a listener hears when each node begins and ends, also
inside an agent (`stream_mode="tasks"`), and each node adds to the log that people read of a run; in the graph
ending in `-quiet` neither. In the graphs ending in `-model` the nodes call the chat model themselves, in
those ending in `-plain` a function.
"""

from __future__ import annotations

import asyncio
import operator
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.prebuilt import create_react_agent
from langgraph.types import Command, interrupt

from bench import workflow_work as work
from bench.graph_work import Case
from bench.graph_worker import Hold, Turn, serve

Ask = Callable[[str, str], Any]


class FlowState(TypedDict, total=False):
    """Of both graphs."""

    message: str
    previous: str
    decision: str
    note: str
    log: Annotated[list[dict[str, Any]], operator.add]
    """What people read of the run: `at`, `type`, and `content` or `output`."""


class Model(BaseChatModel):  # type: ignore[misc] # LangGraph is not here when types are checked
    """A chat model that answers at once."""

    @property
    def _llm_type(self) -> str:
        return "bench"

    def _generate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        text = work.reply(messages[0].content, messages[1].content)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])

    async def _agenerate(self, messages: Any, *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


def agent_asker() -> Ask:
    """Asks prebuilt agents, one for each system prompt."""
    agents: dict[str, Any] = {}

    async def ask(system: str, user: str) -> str:
        if system not in agents:
            agents[system] = create_react_agent(_MODEL, tools=[], prompt=system)
        found = await agents[system].ainvoke({"messages": [HumanMessage(user)]})
        return str(found["messages"][-1].content)

    return ask


async def ask_model(system: str, user: str) -> str:
    """The answer of the chat model."""
    answer = await _MODEL.ainvoke([SystemMessage(system), HumanMessage(user)])
    return str(answer.content)


async def ask_plainly(system: str, user: str) -> str:
    """The same answer, from a function."""
    return work.reply(system, user)


_MODEL = Model()


class Peer:
    """LangGraph under measurement."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = AsyncExitStack()
        self._saver: Any = None
        self._case: Case | None = None
        self._threads = 0
        self._heard = 0
        self._agents = agent_asker()

    def about(self) -> dict[str, Any]:
        return {}

    async def prepare(self, case: Case, count: int) -> Sequence[Turn]:
        if case != self._case or case.store == "memory":
            await self.close()
            self._case = case
            if case.store == "memory":
                self._saver = InMemorySaver()
            elif case.store == "sqlite":
                path = str(self._folder / f"{case.graph}.sqlite3")
                saver = AsyncSqliteSaver.from_conn_string(path)
                self._saver = await self._open.enter_async_context(saver)
        ask = self._asker(case)
        logs = not case.graph.endswith("-quiet")
        built = _line(ask) if case.graph.startswith("line") else _triage(ask, logs=logs)
        app = built.compile(checkpointer=self._saver)
        return [self._turn(app, case) for _ in range(count)]

    def _asker(self, case: Case) -> Ask:
        if case.graph.endswith("-plain"):
            return ask_plainly
        return ask_model if case.graph.endswith("-model") else self._agents

    def database(self) -> Path | None:
        return None

    async def close(self) -> None:
        await self._open.aclose()
        self._saver = self._case = None

    def _turn(self, app: Any, case: Case) -> Turn:
        self._threads += 1
        config = {"configurable": {"thread_id": f"web:local:{self._threads}"}, "recursion_limit": 100}

        async def run(given: Any) -> Mapping[str, Any]:
            if case.graph.endswith("-quiet"):
                return cast("Mapping[str, Any]", await app.ainvoke(given, config))
            state: Mapping[str, Any] = {}
            modes = ["tasks", "values"]
            async for path, mode, event in app.astream(given, config, stream_mode=modes, subgraphs=True):
                self._heard += 1
                if mode == "values" and not path:
                    state = event
            return state

        async def turn() -> Mapping[str, Any]:
            state = await run({"message": work.MESSAGE, "previous": work.MESSAGE})
            if case.graph.startswith("triage"):
                for decision, note in work.DECISIONS:
                    state = await run(Command(resume={"decision": decision, "note": note}))
            return {"answer": state["previous"].strip()}

        return turn


def _entry(kind: str, **details: str) -> dict[str, Any]:
    return {"at": time.time(), "type": kind, **details}  # noqa: TID251 - no package of ours is here


def _agent(node: str, ask: Ask) -> Callable[[FlowState], Any]:
    prompts = work.data_of(node)
    system, task = prompts["systemPrompt"], prompts["userPrompt"]

    async def run(state: FlowState) -> dict[str, Any]:
        began = _entry("step_start", node=node)
        user = (
            task.replace("{{MESSAGE}}", state["message"])
            .replace("{{PREVIOUS_OUTPUT}}", state["previous"])
            .replace("{{NOTE:review}}", state.get("note", ""))
        )
        output = await ask(system, user)
        return {"previous": output, "log": [began, _entry("llm_response", node=node, output=output)]}

    return run


def _review(state: FlowState) -> dict[str, Any]:
    answer = interrupt({"prompt": "Shall this go to the customer?", "text": state["previous"]})
    log = [_entry("wait_input", node="review", content=state["previous"])]
    return {"decision": answer["decision"], "note": answer["note"], "log": log}


def _quiet(node: Callable[[FlowState], Any]) -> Callable[[FlowState], Any]:
    """The same node without its log."""
    if not asyncio.iscoroutinefunction(node):
        return lambda state: {key: value for key, value in node(state).items() if key != "log"}

    async def run(state: FlowState) -> dict[str, Any]:
        return {key: value for key, value in (await node(state)).items() if key != "log"}

    return run


def _kind(state: FlowState) -> str:
    text = state["previous"].strip().lower()
    return "draft" if "refund" in text else "answer" if "question" in text else "hand_over"


def _triage(ask: Ask, *, logs: bool) -> Any:
    graph = StateGraph(FlowState)
    nodes = {name: _agent(name, ask) for name in ("sort", "draft", "rewrite", "answer", "hand_over")}
    for name, node in {**nodes, "review": _review}.items():
        graph.add_node(name, node if logs else _quiet(node))
    graph.add_edge(START, "sort")
    graph.add_conditional_edges("sort", _kind, ["draft", "answer", "hand_over"])
    graph.add_edge("draft", "review")
    graph.add_conditional_edges(
        "review", lambda state: "rewrite" if state["decision"] == "reject" else END, ["rewrite", END]
    )
    graph.add_edge("rewrite", "review")
    graph.add_edge("answer", END)
    graph.add_edge("hand_over", END)
    return graph


def _line(ask: Ask) -> Any:
    graph = StateGraph(FlowState)
    before = START
    for number in range(work.AGENTS):
        graph.add_node(f"step{number}", _step(number, ask))
        graph.add_edge(before, f"step{number}")
        before = f"step{number}"
    graph.add_edge(before, END)
    return graph


def _step(number: int, ask: Ask) -> Callable[[FlowState], Any]:
    node, system = f"step{number}", f"You are step{number}."

    async def run(state: FlowState) -> dict[str, Any]:
        began = _entry("step_start", node=node)
        user = work.step_prompt().replace("{{PREVIOUS_OUTPUT}}", state["previous"])
        output = await ask(system, user)
        return {"previous": output, "log": [began, _entry("llm_response", node=node, output=output)]}

    return run


async def _main(folder: Path) -> None:
    await serve(Peer(folder), Hold())


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1])))
