"""The table of the processes that share the database, and who may take a thread from whom."""

from __future__ import annotations

from typing import Final

OWNER_TABLES: Final = (
    """CREATE TABLE owners (
        id text COLLATE "C" PRIMARY KEY,
        name text COLLATE "C" NOT NULL,
        role text NOT NULL,
        version text NOT NULL,
        accounts text NOT NULL,
        expires_at double precision NOT NULL
    )""",
    # The database's clock, as Unix seconds: those of the processes differ.
    """
CREATE FUNCTION unix_now() RETURNS float8 LANGUAGE sql VOLATILE AS
    'SELECT extract(epoch FROM clock_timestamp())::float8'""",
    # Whether the lease holds as long as its owner, and that one is gone. The number is half of UNTIL_GONE.
    """
CREATE FUNCTION is_abandoned(one threads) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT one.expires_at >= 5e17
        AND NOT EXISTS (SELECT 1 FROM owners WHERE id = one.owner AND owners.expires_at > unix_now())
$$""",
    """
CREATE OR REPLACE FUNCTION op_acquire(op jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE next_fence bigint;
BEGIN
    UPDATE threads SET fence = fence + 1, owner = op->>'owner', expires_at = (op->>'until')::float8
        WHERE key = op->>'thread'
            AND (owner IS NULL OR owner = op->>'owner' OR expires_at <= (op->>'now')::float8
                OR is_abandoned(threads))
        RETURNING fence INTO next_fence;
    RETURN jsonb_build_object('r', next_fence);
END $$""",
    # Threads with unfinished entries and no live owner, with the oldest of these entries.
    """
CREATE VIEW unowned AS
    SELECT threads.id, threads.key, open.first
    FROM (SELECT thread, min(seq) AS first FROM inbox WHERE outcome IS NULL GROUP BY thread) AS open
        JOIN threads ON threads.id = open.thread
    WHERE threads.owner IS NULL OR threads.expires_at <= unix_now() OR is_abandoned(threads)""",
    # Locks a row before it looks again whether it is free: another process may have claimed it meanwhile.
    """
CREATE FUNCTION claim_threads(by_owner text, until float8, most integer)
    RETURNS TABLE (thread text, new_fence bigint) LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
        UPDATE threads SET fence = fence + 1, owner = by_owner, expires_at = until
        WHERE id IN (
            SELECT t.id FROM threads AS t JOIN unowned ON unowned.id = t.id
            WHERE t.owner IS NULL OR t.expires_at <= unix_now() OR is_abandoned(t)
            ORDER BY unowned.first LIMIT most FOR NO KEY UPDATE OF t SKIP LOCKED)
        RETURNING key, fence;
END $$""",
)
