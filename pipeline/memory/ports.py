"""The port of the memory's store. Every method raises StorageError when the store fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.memory.candidates import Held
from pipeline.memory.values import Fact, Profile, SessionArc


class ProfileChanged(StorageError):
    """Another turn has written the profile since it was read: read it again and repeat the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCounts:
    """How much is kept of one owner."""

    facts: int
    """Live ones."""
    arcs: int
    rules: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWrites:
    """What one piece of work writes: in one transaction, and at most once."""

    key: str
    """Names the work, as a message's id and a node. Work whose key is recorded is not written again."""
    session_id: str
    at: float
    facts: tuple[Fact, ...] = ()
    """One that says the same as a live fact only renews `last_referenced_at` of that one."""
    supersedes: tuple[tuple[str, str], ...] = ()
    """Ids of replaced facts, each with the id of the new one."""
    dormant: tuple[str, ...] = ()
    """Ids of facts that are kept and no longer recalled."""
    held: tuple[Held, ...] = ()
    """Candidates to keep until the session ends."""
    profile: Profile | None = None
    """The profile to store; it carries the revision that it was made from."""
    arc: SessionArc | None = None
    ends_session: bool = False
    """Delete the session's held candidates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of `MemoryWrites`."""

    facts: int = 0
    renewed: int = 0
    repeated: bool = False
    """The key was recorded already, and nothing was written."""
    disabled: bool = False
    """The person lets nothing be remembered: at most the profile was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is looked for."""

    text: str
    vector: tuple[float, ...] = ()
    """Of the text, by the model `vector_model`; empty without one."""
    vector_model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """Everything that is kept of one owner, to export it."""

    facts: tuple[Fact, ...]
    """Dormant and superseded ones too; as the others oldest first."""
    arcs: tuple[SessionArc, ...]
    held: tuple[Held, ...]
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class FactVector:
    """The embedding of a fact."""

    owner: str
    fact_id: str
    vector: tuple[float, ...]


class MemoryBook(Protocol):
    """Everything that is remembered, each owner's apart. A part of `Store`.

    Text is stored with its limits (`values`): a longer one raises StorageError, which names the field.
    """

    async def counts(self, owner: str) -> MemoryCounts: ...

    async def facts(self, owner: str, *, limit: int | None = None) -> tuple[Fact, ...]:
        """The live facts, newest first."""
        ...

    async def find_facts(self, owner: str, question: Question, *, limit: int) -> tuple[Fact, ...]:
        """The live facts that fit the question, best first."""
        ...

    async def everything(self, owner: str) -> Remembered: ...

    async def arcs(
        self, owner: str, *, since: float = 0.0, limit: int | None = None
    ) -> tuple[SessionArc, ...]:
        """The arcs that ended since a Unix time, newest first."""
        ...

    async def find_arcs(
        self, owner: str, question: Question, *, since: float, limit: int
    ) -> tuple[SessionArc, ...]:
        """The arcs that fit the question, best first."""
        ...

    async def profile(self, owner: str) -> Profile:
        """The profile; an empty one with revision 0 if none is stored."""
        ...

    async def write_profile(self, owner: str, profile: Profile) -> Profile:
        """Store a profile made from the one with its revision; as stored. Raises ProfileChanged."""
        ...

    async def write(self, owner: str, writes: MemoryWrites) -> Written:
        """Do all of it or nothing. Raises ProfileChanged, with nothing written. While the profile is not
        `enabled`, no fact, candidate or arc is written."""
        ...

    async def held(self, owner: str, session_id: str) -> tuple[Held, ...]:
        """The candidates that wait for the end of the session, oldest first."""
        ...

    async def forget(self, owner: str, item_ids: Sequence[str]) -> int:
        """Delete facts, rules and held candidates by their ids and arcs by their sessions', with every copy
        in indexes and the facts that a deleted one has replaced; how many there were."""
        ...

    async def forget_session(self, owner: str, session_id: str) -> int:
        """Delete the facts, the candidates and the arc of a session; how many."""
        ...

    async def erase(self, owner: str) -> int:
        """Delete everything of an owner, the profile too; how many items."""
        ...

    async def prune(self, *, before: float) -> int:
        """Delete facts last referenced, arcs ended, and candidates held before a Unix time, of all owners;
        how many."""
        ...

    def watch(self, added: Callable[[], None]) -> None:
        """Call `added` after each write that added facts. It replaces an earlier one."""
        ...

    async def without_vector(self, model: str, *, limit: int) -> tuple[tuple[str, Fact], ...]:
        """Live facts of all owners without an embedding by `model`, each with its owner; any embedding by
        another model counts as none."""
        ...

    async def write_vectors(self, model: str, vectors: Sequence[FactVector]) -> None:
        """Store embeddings in place of earlier ones. One of a fact that is gone is left out."""
        ...
