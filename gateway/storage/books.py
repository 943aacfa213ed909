"""The parts of the store that have separate ports. Every store has all of them."""

from __future__ import annotations

from typing import Protocol

from gateway.storage.crash_counts import DeathBook
from gateway.storage.crises import CrisisBook
from gateway.storage.erasure import ErasureBook
from gateway.storage.expiries import ExpiryBook
from gateway.storage.feedback import FeedbackBook
from gateway.storage.file_changes import FileChangeBook
from gateway.storage.finished import FinishedBook
from gateway.storage.identities import IdentityBook
from gateway.storage.jobs import JobBook
from gateway.storage.page_chats import PageBooks
from gateway.storage.pairings import PairingBook
from gateway.storage.search import SearchBook
from gateway.storage.shield import ShieldBooks
from gateway.storage.speech import SpeakerPreferenceStore
from gateway.storage.states import StateBook
from gateway.storage.usage import UsageBook
from pipeline.memory.ports import MemoryBook


class Books(Protocol):
    """The ports that a store has as properties."""

    @property
    def pairings(self) -> PairingBook:
        """Pairing requests and pairings."""

    @property
    def voices(self) -> SpeakerPreferenceStore:
        """Speech buffers, speakers' preferences and transcripts."""

    @property
    def jobs(self) -> JobBook:
        """Work that is due at a time."""

    @property
    def states(self) -> StateBook:
        """State of graphs that outlives a run."""

    @property
    def expiries(self) -> ExpiryBook:
        """Expired questions."""

    @property
    def feedback(self) -> FeedbackBook:
        """People's reactions to answers."""

    @property
    def file_changes(self) -> FileChangeBook:
        """Changes that tools made to files."""

    @property
    def usage(self) -> UsageBook:
        """Token use and cost, by day."""

    @property
    def identities(self) -> IdentityBook:
        """Linked identities and the codes that link them."""

    @property
    def search(self) -> SearchBook:
        """What was said, by its words."""

    @property
    def shield(self) -> ShieldBooks:
        """The audit of actions, what conversations have read, and what people have allowed."""

    @property
    def crises(self) -> CrisisBook:
        """The records of crisis responses."""

    @property
    def erasure(self) -> ErasureBook:
        """What is needed to erase everything of a person."""

    @property
    def memories(self) -> MemoryBook:
        """What is remembered of people and rooms."""

    @property
    def page(self) -> PageBooks:
        """Invited people of the page, names and deletions of its conversations, and saved workflows."""

    @property
    def deaths(self) -> DeathBook:
        """Process deaths, by entry."""

    @property
    def finished(self) -> FinishedBook:
        """The messages that were finished last."""
