"""The graphs, workflows and playbooks of the configured agents, each document read once when the gateway is
built: agents, reminders and the HTTP API use the same ones, also where a file changes meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from gateway.config import DEFAULT_AGENT, Settings, agent_settings
from pipeline.graph.definition.spec import GraphSpec
from pipeline.graph_book import GraphBook, graph_of
from pipeline.runtime.context import RunContext

if TYPE_CHECKING:
    from pipeline.playbooks.public_run import RunDocument


class AgentDocuments:
    """What the agents of `settings` run, found in `graphs`."""

    def __init__(self, settings: Settings, graphs: GraphBook) -> None:
        self._graphs = graphs
        names = (DEFAULT_AGENT, *settings.agents)
        self._of = {name: agent_settings(settings, name).agent.graph for name in names}

    @cached_property
    def runs(self) -> Mapping[str, RunDocument]:
        """The workflows and playbooks that people and programs start, by the names of the agents that run
        them. Raises ConfigurationError with all mistakes of a document."""
        found = {graph: self._graphs.workflow(graph) for graph in dict.fromkeys(self._of.values())}
        return {name: run for name, graph in self._of.items() if (run := found[graph]) is not None}

    def graph(self, agent: str) -> GraphSpec[RunContext]:
        """The graph of an agent. Raises ConfigurationError as `runs`."""
        run = self.runs.get(agent)
        return self._graphs.open(self._of[agent]) if run is None else graph_of(run)
