"""The kinds `agent`, the conversation's loop of a model and its tools, and `task`, a step with outputs."""

from __future__ import annotations

from dataclasses import replace

from pipeline.agent.loop_graph import LOOP_CHANNELS, loop_edges, loop_nodes
from pipeline.agent.model_messages import EXCHANGE, fixed_tokens
from pipeline.agent.node import LOOP, THOUGHTS, agent
from pipeline.agent.task import task_node
from pipeline.agent.task_loop import sees_nothing_else
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, NodeSpec
from pipeline.graph.definition.structure import GraphStructure
from pipeline.graph.documents.fields import Fields
from pipeline.history.compaction import Compaction
from pipeline.nodes.templates import Template, marked, template_field
from pipeline.nodes.tools import loading
from pipeline.runtime.context import RunContext

_LOOP = "agent_loop"
_LOAD = "load"


def agent_kind(given: Fields) -> NodeSpec[RunContext]:
    """Answers the person with the model and its tools, as the conversation graph does; it sees the
    conversation. `prompt` is a template that is added to the agent's system prompt, `message` one that
    replaces the person's message, and `groups` are tool groups that are loaded from the beginning."""
    groups = given.texts("groups")
    asked = _Asked(
        prompt=template_field(given, "prompt", default=""),
        message=template_field(given, "message", default=""),
        compaction=Compaction(fixed_tokens),
    )
    nodes = loop_nodes()
    nodes["agent"] = replace(nodes["agent"], run=asked)
    edges = loop_edges()
    if groups:
        nodes[_LOAD] = loading(groups)
        edges = (EdgeSpec(source=_LOAD, target="agent"), *edges)
    loop = GraphStructure(
        name=_LOOP, entry=_LOAD if groups else "agent", channels=LOOP_CHANNELS, nodes=nodes, edges=edges
    )
    writes = ("agent", EXCHANGE, THOUGHTS)
    return NodeSpec(subgraph=loop, writes=writes, nullable=(EXCHANGE, THOUGHTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """The loop's node `agent`, with the texts of the document."""

    prompt: Template
    message: Template
    compaction: Compaction

    async def __call__(self, state: State, context: RunContext) -> NodeResult:
        if LOOP not in state:
            await self.compaction.before_reading(state, context)
        prompt, message = self.prompt.render(state, marked), self.message.render(state)
        if prompt:
            settings = context.settings
            system = f"{settings.system_prompt}\n\n{prompt}"
            context = replace(context, settings=replace(settings, system_prompt=system))
        if message:
            context = replace(context, text=message)
        return await agent(state, context)


def task_kind(given: Fields) -> NodeSpec[RunContext]:
    """A step that the model works on with tools until it has set `outputs` and a judge finds `criteria` met.
    The parameters are those of `task_node`."""
    outputs, nullable = given.texts("outputs"), given.texts("nullable")
    answer = given.text("answer", default="")
    if not outputs:
        given.note("outputs", "names no output")
    if answer and answer not in set(outputs) - set(nullable):
        given.note("answer", f"{answer!r} is none of the outputs that are always set")
        answer = ""
    isolated, compaction = given.flag("isolated"), Compaction(fixed_tokens)
    node = task_node(
        given.text("instructions"),
        outputs,
        nullable=nullable,
        criteria=given.text("criteria", default=""),
        groups=given.texts("groups"),
        reads=given.optional_texts("sees"),
        identity=given.text("identity", default=""),
        isolated=isolated,
        answer=answer,
    )
    work = node.run
    if isolated or work is None:
        return node

    async def run(state: State, context: RunContext) -> NodeResult:
        if not sees_nothing_else(state):
            await compaction.before_reading(state, context)
        return await work(state, context)

    return replace(node, run=run)
