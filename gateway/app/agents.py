"""Build the agents: the default one, and one for each table [agents.NAME]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from gateway.agents.agent_book import Agent, AgentBook, AgentModels, WorkflowFacts
from gateway.agents.documents import AgentDocuments
from gateway.agents.routes import AgentRoutes
from gateway.app.attachments import build_attachments
from gateway.app.companion import build_agent_memory, session_idle_s
from gateway.app.components import Foundation
from gateway.app.llm import pipeline_settings, warm_up
from gateway.app.safety import agents_crisis_gate
from gateway.app.tools import AgentTools, SharedTools, build_agent_tools
from gateway.config import DEFAULT_AGENT, DEFAULT_GRAPH, Settings, agent_settings, model_settings
from gateway.editor.saved_agents import SavedAgents
from gateway.ingress.room_history import ChannelRooms
from gateway.speech.voice_notes import VoiceNoteTranscriber
from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph_book import installed_graphs
from pipeline.llm.client import LlmClient
from pipeline.llm.local_process import SLOTS
from pipeline.message_gate import MessageGate
from pipeline.runtime.attachments import Attachments
from pipeline.runtime.context import RunContext
from pipeline.runtime.ports import SpeechToText
from pipeline.service import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltAgents:
    """The agents, and what of them the gateway warms up and closes."""

    book: AgentBook
    tools: Sequence[tuple[LlmClient, AgentTools]]
    """Of each agent, in the order of the book."""

    @property
    def by_name(self) -> Mapping[str, AgentTools]:
        """The tools of each agent by its recorded name, which is empty for the default one."""
        names = [self.book.recorded_name(agent) for agent in self.book.all]
        return dict(zip(names, (tools for _, tools in self.tools), strict=True))

    def lines(self) -> tuple[str, ...]:
        """A line for each agent: its name, and what it is for."""
        return tuple(
            f"{agent.name}: {agent.description}" if agent.description else agent.name
            for agent in self.book.all
        )

    async def warm_up(self) -> None:
        """Load the models, one after another, the default agent's first. Raises nothing except on
        cancellation."""
        for llm, tools in self.tools:
            await warm_up(llm, tools.offered())

    async def close(self) -> None:
        """Stop the tool servers."""
        for _, tools in self.tools:
            await tools.close()


def build_agents(
    base: Foundation, shared: SharedTools, speech_to_text: VoiceNoteTranscriber, rooms: ChannelRooms
) -> BuiltAgents:
    """Build all agents."""
    attachments = build_attachments(base, speech_to_text)
    built = [
        _agent(
            name,
            agent_settings(base.settings, name),
            base,
            shared,
            speech_to_text,
            rooms,
            attachments,
        )
        for name in (DEFAULT_AGENT, *base.settings.agents)
    ]
    saved = SavedAgents(base.store.page.workflows, partial(_saved_agent, base, built[0][1], speech_to_text))
    return BuiltAgents(
        book=AgentBook([agent for agent, _ in built], AgentRoutes(base.settings.every_route), saved.find),
        tools=[(agent.models.llm, tools) for agent, tools in built],
    )


def _agent(
    name: str,
    settings: Settings,
    base: Foundation,
    shared: SharedTools,
    speech_to_text: SpeechToText,
    rooms: ChannelRooms,
    attachments: Attachments | None,
) -> tuple[Agent, AgentTools]:
    llm, cheaper = base.models.main(settings), base.models.cheaper()
    limits = pipeline_settings(settings, llm)
    tools = build_agent_tools(settings, shared, clock=base.clock, llm=llm, cheaper=cheaper, limits=limits)
    tools = replace(tools, services=replace(tools.services, rooms=rooms, attachments=attachments))
    extra = base.extras.graph if settings.agent.graph == DEFAULT_GRAPH else None
    graph = extra or base.documents.graph(name)
    build = partial(
        _with_model,
        name,
        base=base,
        graph=graph,
        tools=tools,
        speech_to_text=speech_to_text,
        workflow=_workflow(base.documents, name),
    )
    agent = build(settings)
    others = {
        model: build(model_settings(settings, model))
        for model in settings.llm.choices
        if model != settings.llm.model
    }
    return replace(agent, choices=others), tools


def _with_model(
    name: str,
    settings: Settings,
    base: Foundation,
    graph: GraphSpec[RunContext],
    tools: AgentTools,
    speech_to_text: SpeechToText,
    workflow: WorkflowFacts | None = None,
) -> Agent:
    """The agent with the model of `settings`. Its sub-agents keep the model of the agent."""
    llm = base.models.main(settings)
    limits = pipeline_settings(settings, llm)
    is_default = name == DEFAULT_AGENT
    pipeline = Pipeline(
        graph=graph,
        llm=llm,
        speech_to_text=speech_to_text,
        settings=limits,
        clock=base.clock,
        services=tools.services,
        agent="" if is_default else name,
        gate=_gate(settings, base),
        crisis=agents_crisis_gate(settings, base, tools.services.budgets),
        memory=build_agent_memory(settings, base),
    )
    models = AgentModels(
        name=settings.llm.model,
        context_tokens=limits.context_tokens,
        llm=llm,
        cheaper=base.models.cheaper(),
        summarise_above=limits.summarise_above,
        llm_timeout_s=limits.llm_timeout_s,
        session_idle_s=session_idle_s(settings),
    )
    profile = settings.agents.get(name)
    description = "" if profile is None else profile.description
    return Agent(
        name=name,
        description=description,
        pipeline=pipeline,
        models=models,
        reads_only=tools.reads_only,
        workflow=workflow,
    )


def _workflow(documents: AgentDocuments, name: str) -> WorkflowFacts | None:
    """What commands know about the agent's workflow; None for an agent without one."""
    found = documents.runs.get(name)
    if found is None:
        return None
    from gateway.agents.workflow_facts import workflow_facts  # noqa: PLC0415 - most have none

    return workflow_facts(found)


def _saved_agent(
    base: Foundation,
    tools: AgentTools,
    speech_to_text: SpeechToText,
    name: str,
    graph: GraphSpec[RunContext],
) -> Agent:
    """The agent of a saved workflow: the default one with that graph."""
    own = base.settings.agent.model_copy(update={"graph": name})
    settings = base.settings.model_copy(update={"agent": own})
    return _with_model(name, settings, base, graph, tools, speech_to_text)


def _gate(settings: Settings, base: Foundation) -> MessageGate | None:
    name = settings.agent.gate
    return None if not name else MessageGate(installed_graphs().open(name), clock=base.clock)


def model_slots(settings: Settings) -> int:
    """The number of concurrent turns: the embedded model's parallel slots, or 64 with a hosted model."""
    models = {agent_settings(settings, name).llm.model for name in (DEFAULT_AGENT, *settings.agents)}
    return SLOTS if models == {"local"} else 64
