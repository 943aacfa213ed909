"""The graphs of the graph bench, built with LangGraph.

Written as in LangGraph's documentation: a chat in `MessagesState`, else a TypedDict with
reducers; edges, `Command`, a compiled subgraph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy

from bench import graph_work as work
from bench.graph_work import Case
from bench.graph_worker import Hold

State = Mapping[str, Any]
_RETRY = RetryPolicy(max_attempts=2)


class TurnState(MessagesState):  # type: ignore[misc] # LangGraph is not here when types are checked
    """Of the two-node turn."""

    text: str


class DictTurnState(TypedDict, total=False):
    """Of the same turn without LangChain's messages."""

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


def has_messages(case: Case) -> bool:
    """Whether the thread is LangChain's messages, and not plain dicts."""
    return case.graph in ("turn", "held")


def graph_for(case: Case, hold: Hold) -> Any:
    """The case's graph, not compiled; in those called `held` the second node waits at `hold`."""
    match case.graph:
        case "loop":
            return _loop_graph()
        case "fanout":
            return _fan_out_graph()
        case "safety8":
            return _safety_graph()
        case "held" | "held-dicts":
            return _turn_graph(case, hold)
        case "turn" | "turn-dicts":
            return _turn_graph(case, None)


def _node(run: Callable[[State], dict[str, Any]]) -> Callable[[State], Any]:
    async def node(state: State) -> dict[str, Any]:
        return run(state)

    return node


def _branch(number: int) -> Callable[[State], Any]:
    return _node(lambda _state: work.branch(number))


def _ask(state: State) -> dict[str, Any]:
    return {"messages": [HumanMessage(state["text"])]}


def _answer(state: State) -> dict[str, Any]:
    return {"messages": [AIMessage(work.answer_to(state["messages"][-1].content))]}


def _turn_graph(case: Case, hold: Hold | None) -> Any:
    with_messages = has_messages(case)
    ask, answer = (_ask, _answer) if with_messages else (work.ask, work.answer)

    async def held(state: State) -> dict[str, Any]:
        assert hold is not None
        await hold.wait()
        return answer(state)

    graph = StateGraph(TurnState if with_messages else DictTurnState)
    if case.store == "sqlite-blocking":
        graph.add_node("ask", ask)
        graph.add_node("answer", answer)
    else:
        graph.add_node("ask", _node(ask))
        graph.add_node("answer", held if hold else _node(answer))
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
    next_nodes = ("crisis_response", "load_memory")
    graph.add_node("crisis_gate", crisis_gate, retry_policy=_RETRY, destinations=next_nodes)
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
