"""The tables of the blobs. The constant is a step of the migrations: a released one is never edited."""

from __future__ import annotations

from typing import Final

BLOB_TABLES: Final = (
    # A blob that is not whole has no size. Its key is in seal_keys if it is sealed.
    """CREATE TABLE blobs (
        name TEXT PRIMARY KEY,
        thread TEXT NOT NULL,
        expires_at REAL NOT NULL,
        sealed INTEGER NOT NULL,
        kept INTEGER NOT NULL DEFAULT 0,
        used INTEGER NOT NULL DEFAULT 0,
        size INTEGER,
        digest BLOB
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX blobs_expiry ON blobs(expires_at)",
    "CREATE INDEX blobs_thread ON blobs(thread)",
    """CREATE TABLE blob_chunks (
        name TEXT NOT NULL,
        n INTEGER NOT NULL,
        content BLOB NOT NULL,
        PRIMARY KEY (name, n)
    ) STRICT""",
)
