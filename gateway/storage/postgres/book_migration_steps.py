"""The migration steps of the tables of the books, behind those of the core."""

from __future__ import annotations

from typing import Final

from gateway.storage.postgres.blob_tables import BLOB_TABLES
from gateway.storage.postgres.memory_tables import (
    MEMORY_TABLES,
)
from gateway.storage.postgres.people_tables import (
    CHAT_TABLES,
    FEEDBACK_TABLES,
    IDENTITY_TABLES,
    PAIRING_TABLES,
    PEOPLE_TABLES,
    SPEECH_TABLES,
    WORKFLOW_TABLES,
)
from gateway.storage.postgres.seal_tables import SEAL_TABLES
from gateway.storage.postgres.search_tables import (
    JSON_TABLES,
    SEARCH_TABLES,
)
from gateway.storage.postgres.shield_tables import (
    AUDIT_TABLES,
    CRISIS_TABLES,
    DEATH_TABLES,
    FILE_TABLES,
    SHIELD_TABLES,
    USAGE_TABLES,
)

BOOK_STEPS: Final[tuple[tuple[str, ...], ...]] = (
    (
        *JSON_TABLES,
        *PAIRING_TABLES,
        *IDENTITY_TABLES,
        *PEOPLE_TABLES,
        *CHAT_TABLES,
        *WORKFLOW_TABLES,
        *SPEECH_TABLES,
        *FEEDBACK_TABLES,
        *FILE_TABLES,
        *AUDIT_TABLES,
        *SHIELD_TABLES,
        *CRISIS_TABLES,
        *USAGE_TABLES,
        *DEATH_TABLES,
        *MEMORY_TABLES,
        *SEARCH_TABLES,
    ),
    SEAL_TABLES,
    BLOB_TABLES,
)
"""A released step is never edited: a change is a new step."""
