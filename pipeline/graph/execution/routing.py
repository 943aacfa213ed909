"""Turn a node's decision into routes, a gate, and the record of the step."""

from __future__ import annotations

from types import MappingProxyType

from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import (
    Continue,
    End,
    Goto,
    Next,
    NodeDecision,
    Pause,
    Revise,
    State,
    decision_name,
)
from pipeline.graph.definition.elements import END
from pipeline.graph.definition.frozen_json import freeze_update
from pipeline.graph.definition.merging import RESERVED, folded
from pipeline.graph.definition.ports import PhaseTransition
from pipeline.graph.definition.validation import fan_out_problem
from pipeline.graph.execution.edge_selection import DeciderCall, Routes, decided_routes, routes_after_success
from pipeline.graph.execution.environment import RunEnvironment
from pipeline.graph.execution.node_visit import NodeExecution
from pipeline.graph.run.frames import NO_INPUTS, Frame
from pipeline.graph.run.outcome import Gate
from pipeline.graph.run.records import SHOWN_SECONDS, RunRecord


def routes_for(
    frame: Frame, decision: NodeDecision, output: State, values: State, *, skipped: bool = False
) -> Routes:
    """The routes that the node's decision asks for. Raises GraphError for one that cannot be followed."""
    if frame.plan.ends:
        return Routes()
    match decision:
        case Next():
            pauses = frame.plan.pauses and not skipped
            return Routes() if pauses else routes_along_edges(frame, output, values)
        case Continue():
            return Routes(targets=(frame.node,))
        case Goto(node=target):
            _check_jump(frame, target)
            return Routes(targets=(target,))
        case Revise():
            reviser = frame.plan.spec.reviser
            if reviser is None:
                raise GraphError(f"node {frame.label} asks for a revision and declares no reviser")
            return Routes(targets=(reviser,))
        case End() | Pause():
            return Routes()


def routes_along_edges(frame: Frame, output: State, values: State) -> Routes:
    """The routes along the edges, or `undecided`. Raises GraphError for a route that cannot be followed."""
    exits = frame.plan.exits
    scope = _scope(frame, output, values) if frame.inputs else values
    routes = routes_after_success(exits, frame.label, output, scope)
    if len(routes.targets) > 1 and exits.route is not None:
        problem = fan_out_problem(frame.graph, frame.node, routes.targets)
        if problem:
            raise GraphError(problem)
    return routes


async def routes_by_question(
    env: RunEnvironment, frame: Frame, routes: Routes, output: State, values: State
) -> Routes:
    """Ask the decider, and return the routes it chose."""
    graph, scope = frame.graph, _scope(frame, output, values)
    call = DeciderCall(
        decider=env.decider, context=env.context, clock=env.clock, seconds=env.limits.decide_seconds
    )
    return await decided_routes(routes, frame.plan.exits, frame.label, output, scope, graph.goal, call)


def _scope(frame: Frame, output: State, values: State) -> State:
    """The state as the node saw it, with its update."""
    return {**values, **{key: value for key, value in frame.inputs.items() if key not in output}}


def _check_jump(frame: Frame, target: str) -> None:
    graph, declared = frame.graph, frame.plan.spec.goes_to
    if target != END and target not in graph.nodes:
        raise GraphError(f"graph {graph.name}: node {frame.label} jumps to {target}, which does not exist")
    if declared is not None and target not in declared:
        raise GraphError(f"node {frame.label} jumps to {target}, not declared in goes_to")
    leaves = frame.kind == "branch" and target not in (END, frame.join)
    if leaves and target not in graph.joins.branch(frame.name, frame.join):
        raise GraphError(f"node {frame.label} jumps to {target}, out of its branch {frame.name}")


def phase_update(env: RunEnvironment, frame: Frame, routes: Routes, output: State, values: State) -> State:
    """What the phase hook adds to the state when the run moves to another node.

    Raises GraphError for a key or value that cannot enter the state.
    """
    if env.phase is None or (env.phase_key and env.phase_key not in values):
        return NO_INPUTS
    targets = tuple(target for target in routes.targets if target not in (END, frame.node))
    if not targets:
        return NO_INPUTS
    transition = PhaseTransition(
        mode=frame.graph.conversation,
        source=frame.label,
        targets=targets,
        # A node that opened a gate is in the path already.
        completed=tuple(env.run.path) if frame.status == "answered" else (*env.run.path, frame.label),
        outputs=MappingProxyType(output),
    )
    where = "what the phase hook writes"
    given = env.phase(transition, MappingProxyType(values), env.context)
    update = freeze_update(given, where)
    if not update.keys().isdisjoint(RESERVED):
        raise GraphError(f"{where}: {min(update.keys() & RESERVED)} is written by the engine only")
    folded(values, frame.channels, update)  # An update that a channel refuses fails the node before.
    return update


def gate_of(env: RunEnvironment, frame: Frame, decision: NodeDecision, execution: int) -> Gate | None:
    """The gate that a decision, or the graph's declaration, opens; None without one."""
    if frame.plan.pauses and isinstance(decision, Next):
        decision = Pause()
    if not isinstance(decision, Pause):
        return None
    return Gate(
        id=f"{env.run.id}:{frame.id}/{frame.label}:{execution}",
        node=frame.label,
        prompt=decision.prompt,
        options=decision.options,
        expires_at=None if decision.expires_s is None else env.clock.now() + decision.expires_s,
        allowed=decision.allowed,
        notes=decision.notes,
        asks=decision.asks,
        resumes=decision.resumes,
        worded=decision.worded,
    )


def step_record(frame: Frame, executed: NodeExecution, routes: Routes) -> RunRecord:
    """The record that the frame's node has ended."""
    record: RunRecord = {"do": "step", "node": frame.node}
    if frame.id:
        record["frame"] = frame.id
    if executed.update and frame.status != "inside":
        record["update"] = executed.update
    if type(executed.decision) is not Next:
        record["decision"] = decision_name(executed.decision)
    if routes.targets:
        record["to"] = routes.targets
    if routes.inputs or routes.problems:
        write_routes(record, routes)
    if executed.seconds >= SHOWN_SECONDS:
        record["seconds"] = round(executed.seconds, 4)
    if executed.attempts > 1:
        record["attempts"] = executed.attempts
    if executed.missing:
        record["missing"] = executed.missing
    if executed.failure is not None:
        record["error"] = executed.failure.plain()
    return record


def write_routes(record: RunRecord, routes: Routes) -> None:
    """Add the routes to a record."""
    if routes.targets:
        record["to"] = routes.targets
    if routes.inputs:
        record["inputs"] = routes.inputs
    if routes.problems:
        record["edge_errors"] = tuple(f"{target}: {problem}" for target, problem in routes.problems)
