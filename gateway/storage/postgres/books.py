"""The books of the store in a Postgres database, but those of the core: jobs, states, expiries and bursts."""

from __future__ import annotations

from gateway.storage.postgres.blobs import PostgresBlobs
from gateway.storage.postgres.changes import PostgresChanges
from gateway.storage.postgres.crash_counts import PostgresDeaths
from gateway.storage.postgres.crises import PostgresCrises
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.erasure import PostgresErasure
from gateway.storage.postgres.feedback import PostgresFeedback
from gateway.storage.postgres.file_changes import PostgresFileChanges
from gateway.storage.postgres.finished import PostgresFinished
from gateway.storage.postgres.formats import PostgresFormats
from gateway.storage.postgres.identities import PostgresIdentities
from gateway.storage.postgres.memories import PostgresMemories
from gateway.storage.postgres.page_chats import PostgresPage
from gateway.storage.postgres.pairings import PostgresPairings
from gateway.storage.postgres.search import PostgresSearch
from gateway.storage.postgres.shield import PostgresShield
from gateway.storage.postgres.speech import PostgresVoices
from gateway.storage.postgres.usage import PostgresUsage


class PostgresBooks:
    """The books, as properties of a store. All share one `Database`, which the caller opens and closes."""

    def __init__(self, database: Database) -> None:
        self.blobs = PostgresBlobs(database)
        self.pairings = PostgresPairings(database)
        self.voices = PostgresVoices(database)
        self.feedback = PostgresFeedback(database)
        self.file_changes = PostgresFileChanges(database)
        self.usage = PostgresUsage(database)
        self.identities = PostgresIdentities(database)
        self.search = PostgresSearch(database)
        self.shield = PostgresShield(database)
        self.crises = PostgresCrises(database)
        self.erasure = PostgresErasure(database)
        self.memories = PostgresMemories(database)
        self.page = PostgresPage(database)
        self.deaths = PostgresDeaths(database)
        self.finished = PostgresFinished(database)
        self.changes = PostgresChanges(database)
        self.formats = PostgresFormats(database)
