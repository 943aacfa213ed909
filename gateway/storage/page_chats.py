"""Port for the names of conversations, and for their deletion. A part of `Store`.

A deletion has two steps, so that it survives a crash: `begin_deletion` hides the conversation and adds the
job that ends with `erase`. Every method raises StorageError when the store fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from gateway.storage.jobs import NewJob
from gateway.storage.page_people import PagePeopleBook
from gateway.storage.saved_workflows import SavedWorkflowBook


class PageChatBook(Protocol):
    """Names and deletions of conversations, by thread key."""

    async def rename(self, thread: str, name: str) -> None:
        """Give the conversation a name of its person; an empty one takes the name away."""
        ...

    async def names(self, threads: Collection[str]) -> Mapping[str, str]:
        """The names of those of `threads` that have one."""
        ...

    async def deleted(self) -> frozenset[str]:
        """All deleted conversations."""
        ...

    async def begin_deletion(self, thread: str, job: NewJob) -> None:
        """In one transaction: hide the conversation from `Store.threads_of`, cancel its unfinished entries,
        and add the job that erases it."""
        ...

    async def erase(self, thread: str, *, owner: str, fence: int, but_jobs: str) -> None:
        """Erase every text of the thread, whose lease `owner` holds with `fence`: records, replies,
        questions, entries, kept state and jobs, but not the jobs of the kind `but_jobs`. Of a thread of
        heartbeats what they report to the next one too. What is left are the keys by which redeliveries are
        recognised. Repeatable. Raises FenceLost."""
        ...


class PageBooks(Protocol):
    """What the store keeps for the page alone."""

    @property
    def people(self) -> PagePeopleBook: ...

    @property
    def chats(self) -> PageChatBook: ...

    @property
    def workflows(self) -> SavedWorkflowBook: ...
