"""The memory's modes: what a request may change, and what replaces the store in incognito."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pipeline.domain.errors import ConfigurationError
from pipeline.memory.candidates import Held
from pipeline.memory.ports import (
    FactVector,
    MemoryBook,
    MemoryCounts,
    MemoryWrites,
    Question,
    Remembered,
    Written,
)
from pipeline.memory.values import Fact, MemoryMode, Profile, SessionArc


def lowered(configured: MemoryMode, requested: MemoryMode | None) -> MemoryMode:
    """The mode of a request: as configured, or incognito if either says so. A request raises nothing."""
    return "incognito" if "incognito" in (configured, requested) else configured


def require_incognito_support(used: object) -> None:
    """Raise ConfigurationError unless the class of `used` declares `supports_incognito = True` itself. A
    subclass does not inherit the declaration, because its methods may store something."""
    if type(used).__dict__.get("supports_incognito") is not True:
        raise ConfigurationError(
            f"{type(used).__name__} may not be used in incognito: its own class must declare "
            "supports_incognito = True, which says that it stores nothing"
        )


def book_for(mode: MemoryMode, book: MemoryBook) -> MemoryBook:
    """What a turn in this mode may use as its memory."""
    if mode != "incognito":
        return book
    empty = NoMemory()
    require_incognito_support(empty)
    return empty


class NoMemory:
    """A `MemoryBook` that is empty and keeps nothing."""

    supports_incognito: ClassVar[bool] = True

    async def counts(self, owner: str) -> MemoryCounts:
        return MemoryCounts(facts=0, arcs=0, rules=0)

    async def facts(self, owner: str, *, limit: int | None = None) -> tuple[Fact, ...]:
        return ()

    async def find_facts(self, owner: str, question: Question, *, limit: int) -> tuple[Fact, ...]:
        return ()

    async def everything(self, owner: str) -> Remembered:
        return Remembered(facts=(), arcs=(), held=(), profile=Profile())

    async def arcs(
        self,
        owner: str,
        *,
        since: float = 0.0,
        limit: int | None = None,
    ) -> tuple[SessionArc, ...]:
        return ()

    async def find_arcs(
        self,
        owner: str,
        question: Question,
        *,
        since: float,
        limit: int,
    ) -> tuple[SessionArc, ...]:
        return ()

    async def profile(self, owner: str) -> Profile:
        return Profile()

    async def write_profile(self, owner: str, profile: Profile) -> Profile:
        return profile

    async def write(self, owner: str, writes: MemoryWrites) -> Written:
        return Written(disabled=True)

    async def held(self, owner: str, session_id: str) -> tuple[Held, ...]:
        return ()

    async def forget(self, owner: str, item_ids: Sequence[str]) -> int:
        return 0

    async def forget_session(self, owner: str, session_id: str) -> int:
        return 0

    async def erase(self, owner: str) -> int:
        return 0

    async def prune(self, *, before: float) -> int:
        return 0

    def watch(self, added: Callable[[], None]) -> None:
        pass

    async def without_vector(self, model: str, *, limit: int) -> tuple[tuple[str, Fact], ...]:
        return ()

    async def write_vectors(self, model: str, vectors: Sequence[FactVector]) -> None:
        pass
