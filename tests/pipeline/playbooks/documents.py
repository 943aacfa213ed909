"""Playbook documents for tests, and runs of them without a gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import GraphError
from pipeline.graph.execution.executor import Executor
from pipeline.graph.run.outcome import Answer, RunOutcome
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.playbooks.compiling import compiled
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import PlaybookRun, playbook_record
from pipeline.runtime.context import RunContext
from tests.pipeline.workflows.documents import Echo
from tests.support.contexts import Watched, context, scope
from tests.support.graph_log import MemoryRunLog

Plain = dict[str, Any]


def node(subtype: str, name: str, /, label: str = "", **config: Any) -> Plain:
    """A node."""
    return {"id": name, "subtype": subtype, "config": config} | ({"label": label} if label else {})


def trigger(name: str = "start") -> Plain:
    """A trigger."""
    return node("chat-app", name)


def agent(name: str, prompt: str = "", **config: Any) -> Plain:
    """An agent whose prompt is its id, or `prompt`."""
    return node("agent", name, prompt=prompt or name, **config)


def way(path: str, handle: str = "", into: str = "") -> Plain:
    """An edge, from a path such as `a > b`."""
    source, target = (end.strip() for end in path.split(">"))
    found = {"source": source, "target": target}
    found |= {"sourceHandle": handle} if handle else {}
    return found | ({"targetHandle": into} if into else {})


def route(path: str) -> list[Plain]:
    """The edges of a path such as `a > b > c`."""
    names = [name.strip() for name in path.split(">")]
    return [way(f"{one} > {two}") for one, two in pairwise(names)]


def playbook(*nodes: Plain, edges: Sequence[Plain] = (), **given: Any) -> Plain:
    """A document."""
    return {"name": "book", "nodes": list(nodes), "edges": list(edges), **given}


class PlaybookTest:
    """One run of a document; a model answers with the text of its prompt, or as scripted by prompt."""

    def __init__(
        self,
        source: Mapping[str, Any],
        says: Mapping[str, str | Exception] | None = None,
        script: Sequence[ScriptedAnswer] | None = None,
        others: Mapping[str, str] | None = None,
        clock: ManualClock | None = None,
        **given: Any,
    ) -> None:
        def open_other(file: str) -> str:
            if file not in (others or {}):
                raise GraphError("there is no such file")
            return (others or {})[file]

        self.playbook = read_playbook(source, open_other=open_other)
        self.clock = clock or ManualClock()
        self.log = MemoryRunLog()
        self.watched = Watched()
        self.llm: ScriptedLlm | Echo = Echo(says or {}) if script is None else ScriptedLlm(list(script))
        self._executor = Executor(compiled(self.playbook), clock=self.clock)
        self._given = {"llm": self.llm, "clock": self.clock, "watched": self.watched, **given}
        self.turns = 1
        """The number of the turn: each answer and each time that has come has its own."""

    async def begin(self) -> PlaybookRun:
        """Run until it ends or waits."""
        self.outcome = await self._executor.run({}, self._context(), log=self.log)
        return self.record

    async def answer(self, choice: str) -> PlaybookRun:
        """Answer the open question."""
        (gate,) = self.outcome.gates
        self.turns += 1
        self.outcome = await self._resumed((Answer(gate=gate.id, choice=choice, by="ada"),))
        return self.record

    async def pass_time(self, seconds: float) -> PlaybookRun:
        """Let time pass, and continue as when the gate's time is over."""
        await self.clock.advance(seconds)
        self.turns += 1
        return await self.resume()

    async def resume(self) -> PlaybookRun:
        """Continue from the records alone, as after a crash."""
        self.outcome = await self._resumed(())
        return self.record

    async def _resumed(self, answers: Sequence[Answer]) -> RunOutcome:
        own = self._context()
        return await self._executor.resume(self.log.records, own, log=self.log, answers=answers)

    def _context(self) -> RunContext:
        own = scope(self.watched, message_id=f"msg-{self.turns}")
        return context("hello", **{"scope": own, **self._given})

    @property
    def record(self) -> PlaybookRun:
        """The public record so far."""
        return playbook_record(self.playbook, self.log.records)

    @property
    def asked(self) -> list[str]:
        """The tasks that the model got, in the order in which they came."""
        assert isinstance(self.llm, Echo)
        return self.llm.asked

    @property
    def said(self) -> str:
        """The answer for the person."""
        return str(self.outcome.state.get("agent", {}).get("answer", ""))

    @property
    def prompt(self) -> str:
        """The words of the open gate."""
        (gate,) = self.outcome.gates
        return gate.prompt
