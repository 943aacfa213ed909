"""Port for jobs: work that is due at a time and outlives the process. A part of `Store`.

A job is *open* until it is done, and then deleted. A worker claims a due job for a limited time, the lease;
when the lease ends without a result, the job can be claimed again. A job that failed too often is *dead*: it
stays for an operator, who retries or drops it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Any, Literal, Protocol

from pipeline.domain.frozen import dataclass

JobState = Literal["open", "dead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """Work to do. At most one job of a kind has a given key."""

    kind: str
    """Names the handler."""
    key: str
    due: float
    """Unix time before which it is not started."""
    thread: str = ""
    """The thread that it is about; empty for none."""
    owner: str = ""
    """Who may list and remove it, see `TurnScope.chat_owner`; empty for no person."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """What the handler needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as stored."""

    id: int
    kind: str
    key: str
    due: float
    thread: str
    owner: str
    body: Mapping[str, Any]
    state: JobState
    ready: float
    """Unix time from which it can be claimed: when it is due, the next try, or the end of the lease."""
    attempts: int
    """How often it was claimed; a claim that `retry` does not count is taken back."""
    fence: int
    """Grows with every claim: only the last claim may report a result."""
    claimed: bool
    """A worker has it, or had it and died."""
    error: str
    """Why the last attempt failed."""


class JobBook(Protocol):
    """Every job that is not done. `done`, `retry` and `give_up` return False, and change nothing, where a
    later claim, an operator or the owner has taken the job since."""

    async def add(self, job: NewJob, *, limit: int | None = None) -> bool:
        """Store it durably. An open job with its kind and key is left as it is, a dead one is replaced.
        False, with no change, if `limit` open jobs of the kind have the owner already."""
        ...

    async def claim(self, kind: str, *, now: float, until: float, by: str = "") -> Job | None:
        """The open job of `kind` that has been ready longest, leased until the Unix time `until`, with one
        attempt counted; None if none is ready. `by` is the id of the process that claims it where several
        share the store, see `OwnerBook`."""
        ...

    async def next_ready(self, kind: str) -> float | None:
        """The Unix time at which the next open job of `kind` can be claimed; None without any."""
        ...

    async def done(self, job: Job) -> bool:
        """Delete a claimed job that is done."""
        ...

    async def retry(self, job: Job, *, at: float, error: str = "", counted: bool = True) -> bool:
        """End the claim; the job is ready again at the Unix time `at`. Not `counted`, the attempt is taken
        back."""
        ...

    async def give_up(self, job: Job, *, error: str) -> bool:
        """End the claim and make the job dead."""
        ...

    async def of(self, kind: str, owner: str) -> tuple[Job, ...]:
        """The owner's open jobs of `kind`, soonest first."""
        ...

    async def all_of(self, kind: str) -> tuple[Job, ...]:
        """The open jobs of `kind` of all owners, in the order in which they were added."""
        ...

    async def change(self, kind: str, owner: str, key: str, *, due: float, body: Mapping[str, Any]) -> bool:
        """Give one of the owner's open jobs another due time and body, and end a claim of it; False if there
        is no such one."""
        ...

    async def remove(self, kind: str, owner: str, key: str) -> bool:
        """Delete one of the owner's jobs; False if there is no such one."""
        ...

    async def listed(self, *, limit: int, state: JobState | None = None) -> tuple[Job, ...]:
        """Jobs of every kind, in that state if given: dead ones first, then by the time they are ready."""
        ...

    async def reopen(self, job_id: int) -> bool:
        """Make a dead job ready at once, without attempts; False if it is not dead."""
        ...

    async def drop(self, job_id: int) -> bool:
        """Delete a job; False if there is no such one. A worker that has it may still carry it out."""
        ...

    async def break_leases(self) -> int:
        """End every claim; how many. Only for a start that has made sure that no other process runs."""
        ...


class SharedJobBook(JobBook, Protocol):
    """The job book of a store that several processes share."""

    async def take_back(self, *, now: float) -> int:
        """End the claims of processes that are gone; how many. The attempts stay counted. A store with a
        clock ignores `now`."""
        ...

    async def soonest(self, kinds: Collection[str]) -> Mapping[str, float]:
        """What `next_ready` gives for each of `kinds`, without those that have no open job."""
        ...
