"""Which data formats the database and each of its processes have. A released step is never edited."""

from __future__ import annotations

from typing import Final

UNREPORTED: Final = 6
"""The data format of a process that reports none."""

FORMAT_TABLES: Final = (
    f"ALTER TABLE schema_version ADD COLUMN oldest integer NOT NULL DEFAULT {UNREPORTED}",
    f"ALTER TABLE owners ADD COLUMN oldest_format integer NOT NULL DEFAULT {UNREPORTED}",
    f"ALTER TABLE owners ADD COLUMN newest_format integer NOT NULL DEFAULT {UNREPORTED}",
)
