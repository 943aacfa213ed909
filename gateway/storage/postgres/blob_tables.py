"""The tables of the blobs. The constant is a step of the migrations: a released one is never edited."""

from __future__ import annotations

from typing import Final

BLOB_TABLES: Final = (
    # A blob that is not whole has no size. Its key is in seal_keys if it is sealed.
    """CREATE TABLE blobs (
        name text COLLATE "C" PRIMARY KEY,
        thread text COLLATE "C" NOT NULL,
        expires_at double precision NOT NULL,
        sealed boolean NOT NULL,
        kept boolean NOT NULL DEFAULT false,
        used bigint NOT NULL DEFAULT 0,
        size bigint,
        digest bytea
    )""",
    "CREATE INDEX blobs_expiry ON blobs(expires_at)",
    "CREATE INDEX blobs_thread ON blobs(thread)",
    """CREATE TABLE blob_chunks (
        name text COLLATE "C" NOT NULL,
        n integer NOT NULL,
        content bytea NOT NULL,
        PRIMARY KEY (name, n)
    )""",
    # Pictures and sound are compressed already.
    "ALTER TABLE blob_chunks ALTER COLUMN content SET STORAGE EXTERNAL",
)
