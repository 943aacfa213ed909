"""A node with declared outputs: an agent's whole loop inside one node, until the judge accepts.

Each answer of the model and each verdict is an effect of the step, and tools go through the gate, so a
resumed run repeats no answer and no call. The conversation's agent differs: its loop is part of the graph.
A graph of task nodes needs `TASK_CHANNELS`, and its executor `between_tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.agent.judge import Charge
from pipeline.agent.task_loop import Task, Work
from pipeline.agent.task_prompt import transition_marker
from pipeline.agent.task_texts import DIALOGUE, INTERNAL, TASKS
from pipeline.domain.chat import ChatMessage, message_to_plain
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.ports import PhaseTransition
from pipeline.graph.definition.reducers import Channel, append, merge
from pipeline.graph.definition.spec import NodeSpec
from pipeline.runtime.context import RunContext

TASK_CHANNELS: Final[Mapping[str, Channel]] = {DIALOGUE: append, TASKS: merge}
"""The channels that a graph of task nodes has to declare."""


def task_node(
    instructions: str,
    outputs: tuple[str, ...],
    *,
    nullable: tuple[str, ...] = (),
    criteria: str = "",
    groups: tuple[str, ...] = (),
    reads: tuple[str, ...] | None = None,
    identity: str = "",
    isolated: bool = False,
    answer: str = "",
    description: str = "",
) -> NodeSpec[RunContext]:
    """A node that works on `instructions` until it has set `outputs` and they meet `criteria`.

    `groups` are its initial tool groups. `reads` are the state keys in its prompt, by default all.
    `identity` replaces the bot's own system prompt. An `isolated` node neither sees nor adds to the
    conversation that the other nodes share. `answer` names an output that is shown to the user as the
    answer. The node fails, and an `OnFailure` edge applies, when the judge escalates, when the model repeats
    itself, and after 50 turns.
    """
    charge = Charge(instructions=instructions, outputs=outputs, nullable=nullable, criteria=criteria)
    if answer and answer not in set(outputs) - set(nullable):
        raise ValueError(f"task node: the answer {answer!r} is none of the outputs that are always set")
    task = Task(charge=charge, groups=groups, identity=identity, isolated=isolated, answer=answer)

    async def run(state: State, context: RunContext) -> NodeResult:
        return await Work(task, state, context).done()

    writes = (*outputs, DIALOGUE, TASKS, *(("agent",) if answer else ()))
    return NodeSpec(
        run=run,
        description=description or instructions,
        reads=None if reads is None else (*reads, DIALOGUE, TASKS),
        writes=writes,
        nullable=nullable,
        event_loop=True,
    )


def between_tasks(transition: PhaseTransition, state: State, _context: RunContext) -> Mapping[str, Any]:
    """The executor's phase hook: notes which nodes are done, and marks the transition in the conversation.

    It changes nothing where no task node has run.
    """
    if TASKS not in state:
        return {}
    notes = {"mode": transition.mode, "completed": list(transition.completed)}
    if transition.mode == "isolated":
        return {TASKS: notes}
    outputs = {key: value for key, value in transition.outputs.items() if key not in INTERNAL}
    marker = transition_marker(
        source=transition.source,
        targets=transition.targets,
        completed=transition.completed,
        outputs=outputs,
    )
    return {TASKS: notes, DIALOGUE: [message_to_plain(ChatMessage(role="user", content=marker))]}
