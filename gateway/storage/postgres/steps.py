"""The migration steps of every table, in one order. A released step is never edited: a change is a
new step."""

from __future__ import annotations

from typing import TypeAlias

from gateway.storage.postgres.apply_function import APPLY_FUNCTION
from gateway.storage.postgres.book_steps import BOOK_STEPS
from gateway.storage.postgres.core_schema import CORE_TABLES
from gateway.storage.postgres.owner_tables import OWNER_TABLES
from gateway.storage.postgres.reply_states import REPLY_STATES
from gateway.storage.postgres.shared_tables import SHARED_TABLES

Step: TypeAlias = tuple[str, ...]

STEPS: tuple[Step, ...] = (
    (*CORE_TABLES, *APPLY_FUNCTION),
    *BOOK_STEPS,
    OWNER_TABLES,
    SHARED_TABLES,
    REPLY_STATES,
)
"""Step n migrates a database from schema version n - 1 to n."""
