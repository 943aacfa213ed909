"""Jobs in a dictionary."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gateway.storage.identities import Identity, wrote
from gateway.storage.jobs import Job, JobState, NewJob
from gateway.storage.json_bodies import decode_body, encode_body, storable_text


class MemoryJobs:
    """A part of `MemoryStore`. `require_open` raises StorageError if the store is closed; `is_live` says
    whether the process with an id is alive at a time."""

    def __init__(
        self,
        require_open: Callable[[], None],
        is_live: Callable[[str, float], bool] = lambda _process, _now: True,
    ) -> None:
        self._require_open = require_open
        self._is_live = is_live
        self._jobs: dict[int, tuple[Job, str]] = {}
        """By id: the job, and its body as text."""
        self._claimed_by: dict[int, str] = {}
        """By id: the process that has claimed it last."""
        self._last_id = 0

    async def add(self, job: NewJob, *, limit: int | None = None) -> bool:
        self._require_open()
        if limit is not None and self._is_new(job) and len(await self.of(job.kind, job.owner)) >= limit:
            return False
        self.add_now([(job, encode_body(job.body))])
        return True

    def add_now(self, jobs: Sequence[tuple[NewJob, str]]) -> None:
        """Add jobs with their encoded bodies, as `add` without a limit does."""
        for job, body in jobs:
            self._add(job, body)

    def _add(self, job: NewJob, body: str) -> None:
        if not self._is_new(job):
            return
        for known in self._all():
            if (known.kind, known.key) == (job.kind, job.key):
                del self._jobs[known.id]
        self._last_id += 1
        stored = Job(
            id=self._last_id,
            kind=job.kind,
            key=job.key,
            due=job.due,
            thread=job.thread,
            owner=job.owner,
            body={},
            state="open",
            ready=job.due,
            attempts=0,
            fence=0,
            claimed=False,
            error="",
        )
        self._jobs[stored.id] = (stored, body)

    async def claim(self, kind: str, *, now: float, until: float, by: str = "") -> Job | None:
        self._require_open()
        ready = [job for job in self._open(kind) if job.ready <= now]
        if not ready:
            return None
        job = min(ready, key=lambda one: (one.ready, one.id))
        self._claimed_by[job.id] = by
        return self._change(job, ready=until, attempts=job.attempts + 1, fence=job.fence + 1, claimed=True)

    async def take_back(self, *, now: float) -> int:
        self._require_open()
        claimed = ((job, self._claimed_by.get(job.id)) for job in self._all() if job.claimed)
        gone = [job for job, by in claimed if by and not self._is_live(by, now)]
        for job in gone:
            self._change(job, ready=job.due, claimed=False)
        return len(gone)

    async def soonest(self, kinds: Collection[str]) -> Mapping[str, float]:
        found = {kind: await self.next_ready(kind) for kind in kinds}
        return {kind: ready for kind, ready in found.items() if ready is not None}

    async def next_ready(self, kind: str) -> float | None:
        self._require_open()
        return min((job.ready for job in self._open(kind)), default=None)

    async def done(self, job: Job) -> bool:
        held = self._held(job)
        if held is not None:
            del self._jobs[held.id]
        return held is not None

    async def retry(self, job: Job, *, at: float, error: str = "", counted: bool = True) -> bool:
        held = self._held(job)
        if held is None:
            return False
        attempts = held.attempts - (not counted)
        self._change(held, ready=at, error=storable_text(error), attempts=attempts, claimed=False)
        return True

    async def give_up(self, job: Job, *, error: str) -> bool:
        held = self._held(job)
        if held is None:
            return False
        self._change(held, state="dead", error=storable_text(error), claimed=False)
        return True

    async def of(self, kind: str, owner: str) -> tuple[Job, ...]:
        self._require_open()
        return tuple(self._view(job) for job in self._open(kind) if job.owner == owner)

    async def all_of(self, kind: str) -> tuple[Job, ...]:
        self._require_open()
        return tuple(self._view(job) for job in sorted(self._open(kind), key=lambda job: job.id))

    async def change(self, kind: str, owner: str, key: str, *, due: float, body: Mapping[str, Any]) -> bool:
        self._require_open()
        return self.change_now([NewJob(kind=kind, owner=owner, key=key, due=due, body=body)]) == 1

    def change_now(self, changed: Sequence[NewJob]) -> int:
        """Change the open jobs of these kinds, owners and keys, as `change` does; how many there were."""
        found = 0
        for new in changed:
            for job in self._open(new.kind):
                if (job.owner, job.key) == (new.owner, new.key):
                    due, fence = new.due, job.fence + 1
                    after = replace(job, due=due, ready=due, fence=fence, attempts=0, claimed=False)
                    self._jobs[job.id] = (after, encode_body(new.body))
                    found += 1
        return found

    async def remove(self, kind: str, owner: str, key: str) -> bool:
        self._require_open()
        for job in self._all():
            if (job.kind, job.owner, job.key) == (kind, owner, key):
                del self._jobs[job.id]
                return True
        return False

    async def listed(self, *, limit: int, state: JobState | None = None) -> tuple[Job, ...]:
        self._require_open()
        found = [job for job in self._all() if state in (None, job.state)]
        found.sort(key=lambda job: (job.state, job.ready, job.id))
        return tuple(self._view(job) for job in found[:limit])

    async def reopen(self, job_id: int) -> bool:
        self._require_open()
        known = self._jobs.get(job_id)
        if known is None or known[0].state != "dead":
            return False
        self._change(known[0], state="open", ready=known[0].due, attempts=0, error="")
        return True

    async def drop(self, job_id: int) -> bool:
        self._require_open()
        return self._jobs.pop(job_id, None) is not None

    async def break_leases(self) -> int:
        self._require_open()
        claimed = [job for job in self._all() if job.claimed]
        for job in claimed:
            self._change(job, ready=job.due, claimed=False)
        return len(claimed)

    def _is_new(self, job: NewJob) -> bool:
        return not any(
            (known.kind, known.key, known.state) == (job.kind, job.key, "open") for known in self._all()
        )

    def _held(self, job: Job) -> Job | None:
        """The stored job, if `job` is its last claim."""
        self._require_open()
        known = self._jobs.get(job.id)
        if known is None or known[0].fence != job.fence or known[0].state != "open":
            return None
        return known[0]

    def _change(self, job: Job, **changes: Any) -> Job:
        changed = replace(job, **changes)
        self._jobs[job.id] = (changed, self._jobs[job.id][1])
        return self._view(changed)

    def _view(self, job: Job) -> Job:
        body: Mapping[str, Any] = decode_body(self._jobs[job.id][1])
        return replace(job, body=body)

    def drop_of(self, thread: str, *, but: str) -> None:
        """Delete the jobs about `thread`, but not those of the kind `but`."""
        for job in self._all():
            if job.thread == thread and job.kind != but:
                del self._jobs[job.id]

    def drop_of_person(self, owners: Collection[str], identities: Collection[Identity], *, but: str) -> None:
        """Delete the jobs of owners and authors, but not those of the kind `but`."""
        for job in self._all():
            author = self._view(job).body.get("author")
            if job.kind != but and (job.owner in owners or wrote(identities, job.thread, author)):
                del self._jobs[job.id]

    def _all(self) -> list[Job]:
        return [job for job, _ in self._jobs.values()]

    def _open(self, kind: str) -> list[Job]:
        found = [job for job in self._all() if job.kind == kind and job.state == "open"]
        return sorted(found, key=lambda job: (job.due, job.id))
