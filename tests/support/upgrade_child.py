"""`parlour` as a later release would be: `python -m tests.support.upgrade_child RELEASE ARGUMENTS`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.app import leases
from gateway.cli.main import main
from gateway.storage.postgres.database import Database
from gateway.storage.postgres.migration_steps import STEPS, MigrationStep, added, removed
from gateway.storage.postgres.store import PostgresStore

NOTES: Final = added(
    "CREATE TABLE notes (n integer PRIMARY KEY)",
    "ALTER TABLE threads ADD COLUMN noted boolean NOT NULL DEFAULT false",
    "ALTER TABLE inbox ADD COLUMN noted boolean NOT NULL DEFAULT false",
)
"""A step that programs without it do not notice."""
NO_NOTES: Final = removed("ALTER TABLE inbox DROP COLUMN noted", oldest=len(STEPS) + 1)
"""A step for programs that have NOTES, or that and this one."""
RELEASES: Final[Mapping[str, tuple[MigrationStep, ...]]] = {
    "0.2.0": (*STEPS, NOTES),
    "0.3.0": (*STEPS, NOTES, NO_NOTES),
    "0.4.0": (*STEPS, NOTES, NO_NOTES, added("CREATE TABLE more (n integer)")),
}
"""The steps of each later release."""


def become(release: str) -> None:
    """Let this process be one of `release` from now on."""
    leases.__version__ = release  # type: ignore[attr-defined]  # what it imports
    for kind in (Database, PostgresStore):
        made: Any = kind.__init__
        made.__kwdefaults__["steps"] = RELEASES[release]


def run(arguments: Sequence[str]) -> int:
    """The exit code of `parlour`."""
    become(arguments[0])
    return main(arguments[1:])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
