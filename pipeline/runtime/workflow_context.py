"""What the companion's nodes get in addition to a run's context: memory and the crisis gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, Protocol

from pipeline.domain.frozen import dataclass
from pipeline.domain.messages import Mode
from pipeline.llm.client import LlmClient
from pipeline.memory.embedding import Embedder
from pipeline.memory.modes import book_for, lowered
from pipeline.memory.ports import MemoryBook
from pipeline.memory.values import MemoryMode
from pipeline.safety.assessment import CrisisAssessment, plain_assessment

CRISIS_LOG: Final = "crisis_log"
"""The state's key for the entry of the log of crises; the turn's commit stores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrisisHelp:
    """The crisis response."""

    text: str
    location: str = ""
    """The code of the country where the person is; empty if that is unknown."""
    resources: tuple[str, ...] = ()
    """The lines of help that the text names."""


class TurnCrisis(Protocol):
    """The crisis gate for the words of one turn. Neither method raises anything but CancelledError."""

    @property
    def words(self) -> str:
        """The person's own words: none that they quote or forward."""
        ...

    async def assess(self) -> CrisisAssessment:
        """The assessment of what the person says, after what they said before."""
        ...

    async def help(self, assessment: CrisisAssessment) -> CrisisHelp:
        """The response that takes the agent's place."""
        ...


CrisisLog = Callable[[CrisisAssessment], Mapping[str, Any]]
"""The entry of the log for an assessment, as plain data without words: the turn's commit stores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowContext:
    """The dependencies of one turn."""

    llm_client: LlmClient
    memory_store: MemoryBook
    crisis_log_backend: CrisisLog = plain_assessment
    memory_mode: MemoryMode = "local"
    """`incognito`: nothing is read and nothing written."""
    embedding_provider: Embedder | None = None
    crisis_gate: TurnCrisis | None = field(default=None, repr=False)
    """None for what runs after the answer."""
    recalled: dict[str, str] = field(default_factory=dict, compare=False, repr=False)
    """What the turn has recalled for a prompt already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemory:
    """What makes an agent one with memory: shared by all its turns."""

    store: MemoryBook
    mode: MemoryMode = "local"
    embedder: Embedder | None = None
    later: frozenset[str] = frozenset()
    """The nodes of its graph that run after the answer. Such a graph has the crisis gate as a node."""
    unrecorded: frozenset[str] = frozenset()
    """The keys of the graph's state that no record has."""

    def context(self, llm: LlmClient, mode: Mode, crisis: TurnCrisis | None = None) -> WorkflowContext:
        """The dependencies of a turn in a session of that `mode`: a turn may lower the mode of the memory,
        and never raises it."""
        lowest = lowered(self.mode, "incognito" if mode == "otr" else None)
        return WorkflowContext(
            llm_client=llm,
            memory_store=book_for(lowest, self.store),
            memory_mode=lowest,
            embedding_provider=self.embedder,
            crisis_gate=crisis,
        )
