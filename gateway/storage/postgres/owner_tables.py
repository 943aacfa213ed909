"""The table of the processes that share the database, and who may take a thread from whom."""

from __future__ import annotations

from typing import Final

from gateway.storage.owners import UNTIL_GONE

NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
"""The database's clock, as Unix seconds: those of the processes differ."""
_GONE: Final = f"""(threads.expires_at >= {UNTIL_GONE / 2} AND NOT EXISTS (
    SELECT 1 FROM owners WHERE owners.id = threads.owner AND owners.expires_at > {NOW}))"""
"""Whether the thread's lease held as long as its owner, which is gone."""
IS_FREE: Final = f"(threads.owner IS NULL OR threads.expires_at <= {NOW} OR {_GONE})"
"""Whether nobody has the lease of the thread."""

OWNER_TABLES: Final = (
    """CREATE TABLE owners (
        id text COLLATE "C" PRIMARY KEY,
        name text COLLATE "C" NOT NULL,
        role text NOT NULL,
        version text NOT NULL,
        accounts text NOT NULL,
        expires_at double precision NOT NULL
    )""",
    f"""
CREATE OR REPLACE FUNCTION op_acquire(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE next_fence bigint;
BEGIN
    UPDATE threads SET fence = fence + 1, owner = op->>'owner', expires_at = (op->>'until')::float8
        WHERE key = op->>'thread'
            AND (owner IS NULL OR owner = op->>'owner' OR expires_at <= (op->>'now')::float8 OR {_GONE})
        RETURNING fence INTO next_fence;
    RETURN jsonb_build_object('r', next_fence);
END $$""",
)
