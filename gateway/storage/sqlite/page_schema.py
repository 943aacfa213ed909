"""The step of the schema with the tables of the page: its people, and names of conversations."""

from __future__ import annotations

from typing import Final

PAGE_TABLES: Final = (
    # The invited people of the page. Codes and tokens are stored as hashes.
    """CREATE TABLE page_people (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        name_key TEXT NOT NULL UNIQUE,
        invited_at REAL NOT NULL,
        joined_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # A used invitation stays until it expires, so that a browser that lost the answer can repeat its request.
    """CREATE TABLE page_invitations (
        code_hash TEXT PRIMARY KEY,
        person TEXT NOT NULL,
        made_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        used_by TEXT NOT NULL DEFAULT ''
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE page_devices (
        id TEXT PRIMARY KEY,
        person TEXT NOT NULL,
        token_hash TEXT NOT NULL UNIQUE,
        name TEXT NOT NULL,
        signed_in_at REAL NOT NULL,
        seen_at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    # A conversation that was renamed or deleted. The row of a deleted one stays, so that its key is not used
    # again.
    """CREATE TABLE page_chats (
        thread TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        deleted INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
)
