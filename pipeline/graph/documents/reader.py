"""Read graphs from JSON with `read_graph`; `graph_document` writes them.

A document names functions, which a `NodeLibrary` resolves. Other spellings of some fields are also read
(`entry_node`, `input_keys`, `condition_expr` …); only this project's names are written.
docs/guides/graphs.md explains the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, Final, TypeVar, get_args

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import ContextT, StateT
from pipeline.graph.definition.elements import (
    AfterGates,
    Always,
    Condition,
    ConflictPolicy,
    ConversationMode,
    EdgeSpec,
    FailurePolicy,
    FanOut,
    Goal,
    JoinPolicy,
    Kept,
    Lifetime,
    Limits,
    LlmDecide,
    OnFailure,
    OnSuccess,
    Route,
    When,
)
from pipeline.graph.definition.frozen_json import freeze
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph.definition.structure import GraphStructure, NodeSpec
from pipeline.graph.definition.validation import graph_problems
from pipeline.graph.documents.fields import Fields, closest
from pipeline.graph.documents.json_text import MAX_BYTES, parsed_json
from pipeline.graph.documents.library import BUILT_IN_CHANNELS, BUILT_IN_ERRORS, NodeLibrary
from pipeline.graph.documents.writer import graph_document

__all__ = ["MAX_BYTES", "graph_document", "read_graph"]

_PLAIN_CONDITIONS: Final[Mapping[str, type[Always | OnSuccess | OnFailure]]] = {
    "always": Always,
    "on_success": OnSuccess,
    "on_failure": OnFailure,
}
_SEED_CONDITIONS: Final = (*_PLAIN_CONDITIONS, "conditional", "llm_decide")

T = TypeVar("T")


def read_graph(
    source: str | Mapping[str, Any], library: NodeLibrary[ContextT, StateT]
) -> GraphSpec[ContextT, StateT]:
    """The graph that a JSON text, or a mapping parsed from one, describes.

    Raises GraphError with all mistakes, one per line and each with its place in the document: those of form
    (unknown fields, wrong types, unknown names), or, if there is none, those of the graph.
    """
    document = _document(source)
    problems: list[str] = []
    graph = _graph(Fields(document, "", problems), library)
    problems = problems or graph_problems(graph)
    if problems:
        name = f"graph {graph.name}" if graph.name else "the graph document"
        raise GraphError("\n".join(f"{name}: {problem}" for problem in problems))
    return GraphSpec(**{part.name: getattr(graph, part.name) for part in fields(GraphStructure)})


def _document(source: str | Mapping[str, Any]) -> Mapping[str, Any]:
    parsed = parsed_json(source, "the graph document") if isinstance(source, str) else source
    if not isinstance(parsed, Mapping):
        raise GraphError("the graph document must be a JSON object: { … }")
    frozen: Mapping[str, Any] = freeze(parsed, "the graph document")
    return frozen


def _graph(given: Fields, library: NodeLibrary[ContextT, StateT]) -> GraphStructure[ContextT, StateT]:
    channels = {
        key: _named(given, f"channels.{key}", "channel", name, BUILT_IN_CHANNELS, library.channels)
        for key, name in given.text_map("channels").items()
    }
    graph = GraphStructure(
        name=given.text("name"),
        version=given.text("version", default="1"),
        goal=_goal(given),
        entry=given.text("entry", "entry_node"),
        entry_points=given.text_map("entry_points"),
        terminals=given.texts("terminals", "terminal_nodes"),
        pause_nodes=given.texts("pause_nodes"),
        conversation=given.choice(
            "conversation",
            "conversation_mode",
            options=get_args(ConversationMode),
            default="continuous",
        ),
        limits=_limits(given),
        fan_out=_fan_out(given) or FanOut(),
        channels={key: channel for key, channel in channels.items() if channel is not None},
        keep=_keep(given),
        nodes=_nodes(given, library),
        edges=tuple(_edge(edge, library) for edge in given.inner_list("edges")),
    )
    given.close()
    return graph


def _keep(graph: Fields) -> Mapping[str, Kept]:
    given = graph.inner("keep")
    if given is None:
        return {}
    kept = {}
    for key in given.names():
        table = given.inner(key) if given.is_object(key) else None
        if table is None:
            kept[key] = Kept(lives=given.choice(key, options=get_args(Lifetime), default="session"))
        else:
            lives = table.choice("lives", options=get_args(Lifetime), default="session")
            kept[key] = Kept(lives=lives, was=table.texts("was"))
            table.close()
    given.close()
    return kept


def _goal(graph: Fields) -> Goal | None:
    given = graph.inner("goal")
    if given is None:
        return None
    goal = Goal(
        description=given.text("description"),
        success_criteria=given.texts("success_criteria"),
        constraints=given.texts("constraints"),
    )
    given.close()
    return goal


def _limits(graph: Fields) -> Limits:
    usual = Limits()
    max_steps = graph.whole("max_steps", default=usual.max_steps)
    given = graph.inner("limits")
    if given is None:
        return Limits(max_steps=max_steps)
    if graph.has("max_steps") and given.has("max_steps"):
        graph.note("max_steps", "says the same as limits.max_steps; give one of them")
    limits = Limits(
        max_steps=given.whole("max_steps", default=max_steps),
        max_consecutive=given.whole("max_consecutive", default=usual.max_consecutive),
        max_seconds=given.optional_number("max_seconds", default=usual.max_seconds),
        decide_seconds=given.number("decide_seconds", default=usual.decide_seconds),
        outer_only=given.flag("outer_only"),
    )
    given.close()
    return limits


def _fan_out(parent: Fields) -> FanOut | None:
    given = parent.inner("fan_out")
    if given is None:
        return None
    usual = FanOut()
    policy = FanOut(
        on_failure=given.choice("on_failure", options=get_args(FailurePolicy), default=usual.on_failure),
        on_conflict=given.choice("on_conflict", options=get_args(ConflictPolicy), default=usual.on_conflict),
        branch_timeout_s=given.optional_number("branch_timeout_s", default=usual.branch_timeout_s),
        join=given.choice("join", options=get_args(JoinPolicy), default=usual.join),
        after_gates=given.choice("after_gates", options=get_args(AfterGates), default=usual.after_gates),
    )
    given.close()
    return policy


def _nodes(graph: Fields, library: NodeLibrary[ContextT, StateT]) -> Mapping[str, NodeSpec[ContextT, StateT]]:
    nodes: dict[str, NodeSpec[ContextT, StateT]] = {}
    for given in graph.inner_list("nodes"):
        name = given.text("id")
        if name in nodes and name:
            given.note("id", f"another node is called {name} already; rename one of them")
        nodes[name] = _node(name, given, library)
    return nodes


def _node(name: str, given: Fields, library: NodeLibrary[ContextT, StateT]) -> NodeSpec[ContextT, StateT]:
    usual = _work(name, given, library)
    node = NodeSpec(
        run=usual.run,
        subgraph=usual.subgraph,
        kind=usual.kind,
        parameters=usual.parameters,
        description=given.text("description", default=usual.description),
        shown=given.text("shown", default=usual.shown),
        reads=_given_or(given.optional_texts, usual.reads, given, "reads", "input_keys"),
        writes=_given_or(given.optional_texts, usual.writes, given, "writes", "output_keys"),
        nullable=_given_or(given.texts, usual.nullable, given, "nullable", "nullable_output_keys"),
        retry=_retry(given, library, usual.retry),
        event_loop=given.flag("event_loop") or usual.event_loop,
        max_visits=given.whole("max_visits", "max_node_visits", default=0),
        timeout_s=given.optional_number("timeout_s", default=None),
        reviser=given.optional_text("reviser"),
        goes_to=_given_or(given.optional_texts, usual.goes_to, given, "goes_to"),
        fan_out=_fan_out(given),
    )
    given.close()
    return node


def _given_or(read: Callable[..., T], usual: T, given: Fields, *names: str) -> T:
    return read(*names) if given.has(*names) else usual


def _work(name: str, given: Fields, library: NodeLibrary[ContextT, StateT]) -> NodeSpec[ContextT, StateT]:
    """What the node does: a function, a kind of node with its parameters, or a subgraph."""
    if not given.has("run") and given.has("subgraph"):
        given.has("with")
        return NodeSpec(subgraph=_subgraph(given, library))
    function = given.text("run", default=name)
    # A kind that needs no parameters may be named without them, unless a function has its name.
    if given.has("with") or (function in library.kinds and not library.has_node(function)):
        make = _named(given, "run", "kind of node", function, library.kinds)
        parameters = given.parameters("with")
        if make is None:
            return NodeSpec()
        made = make(parameters)
        parameters.close()
        written = given.raw("with")
        kept = written if isinstance(written, Mapping) else {}
        return replace(made, kind=function, parameters=kept)
    run = _named(given, "run", "node function", function, library.nodes)
    return NodeSpec(run=run, subgraph=_subgraph(given, library))


def _subgraph(
    node: Fields, library: NodeLibrary[ContextT, StateT]
) -> GraphStructure[ContextT, StateT] | None:
    if isinstance(node.raw("subgraph"), str):
        return _named(node, "subgraph", "subgraph", node.text("subgraph"), library.subgraphs)
    inner = node.inner("subgraph")
    return None if inner is None else _graph(inner, library)


def _retry(node: Fields, library: NodeLibrary[ContextT, StateT], without: RetryPolicy) -> RetryPolicy:
    given = node.inner("retry")
    if given is None:
        return without
    usual = RetryPolicy()
    names = given.optional_texts("retry_on")
    errors = [
        _named(given, f"retry_on[{at}]", "kind of error", name, BUILT_IN_ERRORS, library.errors)
        for at, name in enumerate(names or ())
    ]
    policy = RetryPolicy(
        max_attempts=given.whole("max_attempts", default=usual.max_attempts),
        delay_s=given.number("delay_s", default=usual.delay_s),
        factor=given.number("factor", default=usual.factor),
        max_delay_s=given.number("max_delay_s", default=usual.max_delay_s),
        jitter=given.number("jitter", default=usual.jitter),
        retry_on=usual.retry_on if names is None else tuple(error for error in errors if error is not None),
    )
    given.close()
    return policy


def _edge(given: Fields, library: NodeLibrary[ContextT, StateT]) -> EdgeSpec:
    if given.has("when") and given.has("condition"):
        given.note("condition", "says the same as when; give one of them")
    when = _seed_condition(given) if given.has("condition") else _condition(given, library)
    edge = EdgeSpec(
        source=given.text("source"),
        target=given.text("target", default="" if isinstance(when, Route) else None),
        when=when,
        mapping=given.text_map("mapping", "input_mapping"),
        fallback=given.flag("fallback"),
    )
    given.close()
    return edge


def _condition(edge: Fields, library: NodeLibrary[ContextT, StateT]) -> Condition:
    """`when`: a word, or an object with one of `if`, `call`, `llm_decide` and `route`."""
    if not isinstance(edge.raw("when"), Mapping):
        return _PLAIN_CONDITIONS[edge.choice("when", options=tuple(_PLAIN_CONDITIONS), default="always")]()
    given = edge.inner("when")
    assert given is not None  # noqa: S101 - it is a mapping; for the type checker
    kinds = [kind for kind in ("if", "call", "llm_decide", "route") if given.has(kind)]
    if len(kinds) != 1:
        given.note("", "give exactly one of if, call, llm_decide and route")
        return Always()
    condition: Condition = Always()
    match kinds[0]:
        case "if":
            condition = When(given.text("if"))
        case "llm_decide":
            condition = LlmDecide(given.text("llm_decide"))
        case "call":
            holds = _named(given, "call", "condition function", given.text("call"), library.conditions)
            condition = Always() if holds is None else When(holds)
        case "route":
            choose = _named(given, "route", "route function", given.text("route"), library.routes)
            targets = given.texts("targets")
            condition = Always() if choose is None else Route(choose, targets)
    given.close()
    return condition


def _seed_condition(edge: Fields) -> Condition:
    """`condition`, with its `condition_expr` or `description`."""
    match edge.choice("condition", options=_SEED_CONDITIONS, default="always"):
        case "conditional":
            return When(edge.text("condition_expr"))
        case "llm_decide":
            return LlmDecide(edge.text("description"))
        case word:
            return _PLAIN_CONDITIONS[word]()


def _named(given: Fields, field: str, what: str, name: str, *tables: Mapping[str, T]) -> T | None:
    """The library's entry for `name`; None, and a note, without one. An empty name is already noted."""
    for table in tables:
        try:
            return table[name]
        except KeyError:
            continue
    if name:
        known = [known for table in tables for known in table]
        given.note(field, f"there is no {what} called {name!r} here{closest(name, known)}")
    return None
