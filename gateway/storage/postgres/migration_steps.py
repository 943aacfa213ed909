"""The migration steps of every table, in one order. A released step is never edited: a change is a
new step.

During an upgrade processes of two releases use one schema, so a step is one of two kinds:

- `added`: what the release before works with unchanged: a new table, an index, a column with a default, a
  function with the same parameters whose result older callers understand;
- `removed`: what programs older than its `oldest` need is gone or means something else afterwards. It is
  applied when no living process is older. A release that has one works before and after it, and has it
  behind its other steps; where one is followed by an `added` step, a process waits for it when it starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.storage.formats import Formats
from gateway.storage.postgres.apply_function import APPLY_FUNCTION
from gateway.storage.postgres.book_migration_steps import BOOK_STEPS
from gateway.storage.postgres.core_schema import CORE_TABLES
from gateway.storage.postgres.format_tables import FORMAT_TABLES
from gateway.storage.postgres.owner_tables import OWNER_TABLES
from gateway.storage.postgres.reply_states import REPLY_STATES
from gateway.storage.postgres.shared_tables import SHARED_TABLES
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationStep:
    """What brings a database from one schema version to the next, in one transaction."""

    statements: tuple[str, ...]
    oldest: int = 0
    """The oldest data format whose programs work afterwards; 0 where all do that worked before."""


def added(*statements: str) -> MigrationStep:
    """A step that older processes do not notice."""
    return MigrationStep(statements=statements)


def removed(*statements: str, oldest: int) -> MigrationStep:
    """A step that waits until no living process has a format older than `oldest`."""
    return MigrationStep(statements=statements, oldest=oldest)


def formats_of(steps: Sequence[MigrationStep]) -> Formats:
    """What a program with these steps can use: it works before those at the end that take something away."""
    oldest = len(steps)
    while oldest > 1 and steps[oldest - 1].oldest:
        oldest -= 1
    return Formats(oldest=oldest, newest=len(steps))


STEPS: tuple[MigrationStep, ...] = (
    added(*CORE_TABLES, *APPLY_FUNCTION),
    *(added(*statements) for statements in BOOK_STEPS),
    added(*OWNER_TABLES),
    added(*SHARED_TABLES),
    added(*FORMAT_TABLES),
    added(*REPLY_STATES),
)
"""Step n migrates a database from schema version n - 1 to n."""
