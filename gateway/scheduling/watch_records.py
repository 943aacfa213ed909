"""What is kept of a watch: a job that no handler takes, with its condition and what was seen last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Final

from gateway.storage.heartbeats import WATCH
from gateway.storage.jobs import Job, NewJob
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, identity_key
from pipeline.domain.messages import Author
from pipeline.watches.conditions import WatchCondition

NEVER: Final = 253_370_764_800.0
"""The due time of the jobs, the year 9999: the scheduler keeps the times of the checks itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One thing that is watched for a person."""

    id: str
    condition: WatchCondition
    text: str
    """What is done when it happens, in the words of who asked for it."""
    thread: ThreadKey
    """The chat of the person."""
    author: Author
    private: bool = True
    agent: str = ""
    """The agent that works; empty for the default one."""
    zone: str = "UTC"
    from_document: bool = False
    """It is a line of HEARTBEAT.md."""
    seen: Mapping[str, Any] = field(default_factory=dict)
    """What the last check has found, to compare the next one with; empty before the first."""
    failures: int = 0
    """Checks that have failed in a row; not more than the number at which the person gets a notice."""

    @property
    def owner(self) -> str:
        """Who may list and delete it: its person's identity on that account."""
        return identity_key(self.thread.channel, self.thread.account, self.author.id)

    def job(self) -> NewJob:
        """The job that keeps it."""
        body: dict[str, Any] = {
            "condition": self.condition.plain(),
            "text": self.text,
            "author": self.author.id,
            "name": self.author.name,
            "private": self.private,
            "agent": self.agent,
            "zone": self.zone,
            "from_document": self.from_document,
            "seen": self.seen,
            "failures": self.failures,
        }
        thread = self.thread.encode()
        return NewJob(kind=WATCH, key=self.id, thread=thread, owner=self.owner, due=NEVER, body=body)

    def with_seen(self, seen: Mapping[str, Any]) -> Watch:
        """The watch after a check that has found this."""
        return replace(self, seen=seen, failures=0)


def watch_of(job: Job) -> Watch:
    """The watch that the job keeps. Raises InvalidInput, KeyError, TypeError and ValueError."""
    body = job.body
    return Watch(
        id=job.key,
        condition=WatchCondition.from_plain(body["condition"]),
        text=str(body["text"]),
        thread=ThreadKey.decode(job.thread),
        author=Author(id=str(body["author"]), name=str(body.get("name", ""))),
        private=bool(body.get("private", True)),
        agent=str(body.get("agent", "")),
        zone=str(body.get("zone", "UTC")),
        from_document=bool(body.get("from_document", False)),
        seen=dict(body.get("seen", {})),
        failures=int(body.get("failures", 0)),
    )
