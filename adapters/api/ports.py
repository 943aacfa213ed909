"""What the API asks of the gateway: the public records of runs, and what of them it may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

RunStatus = Literal["pending", "running", "paused", "completed", "failed"]
OVER: frozenset[RunStatus] = frozenset({"completed", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowInfo:
    """A workflow that can be run."""

    name: str
    """The name of its agent."""
    description: str
    nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenQuestion:
    """A question that waits for a person."""

    id: str
    node: str
    text: str
    options: tuple[str, ...]
    """Empty where any words answer."""
    expires_at: float | None
    """Unix seconds; None for never."""
    takes_note: bool
    allowed: tuple[str, ...]
    """The names of the tokens that may answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """A run as its owner sees it."""

    id: str
    workflow: str
    status: RunStatus
    started_at: float | None
    """When its turn came, in Unix seconds; None while it waits for it."""
    logs: Sequence[Mapping[str, Any]]
    """As in `pipeline.workflows.run_record`: they only grow."""
    state: Mapping[str, Any]
    current_node: str | None
    answer: str | None
    """The final answer of a completed run."""
    error: Mapping[str, str] | None
    """`code` and `message` of a failed run."""
    questions: tuple[OpenQuestion, ...]

    @property
    def over(self) -> bool:
        """Whether the run has ended."""
        return self.status in OVER

    @property
    def waits(self) -> bool:
        """Whether a person has to answer; not where the run waits for a time alone."""
        return bool(self.questions) and not self.over


class Runs(Protocol):
    """The runs of the API's threads. Each method raises StorageError."""

    @property
    def workflows(self) -> Mapping[str, WorkflowInfo]:
        """The workflows of this gateway by the names of their agents."""
        ...

    async def read(self, thread: ThreadKey) -> RunView | None:
        """The run of the thread, as far as it is durable; None if there is none."""
        ...

    async def questions(self, thread: ThreadKey) -> tuple[OpenQuestion, ...]:
        """The questions of the thread's run that are open, oldest first."""
        ...

    async def answered(self, thread: ThreadKey, question: str) -> str | None:
        """The choice with which a question of the thread is closed; None where it is open or unknown."""
        ...

    async def close_questions(self, thread: ThreadKey) -> None:
        """Close the questions of a paused run, so that it never continues."""
        ...

    async def unfinished(self, person: str) -> int:
        """How many runs of the person wait for their turn, or work."""
        ...
