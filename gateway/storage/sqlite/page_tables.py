"""The steps of the schema with the tables of the page: its people, names of conversations, and the workflows
that its editor saves."""

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

SAVED_WORKFLOW_TABLES: Final = (
    # The documents that the editor saves: every save is a row.
    """CREATE TABLE workflow_versions (
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        runs INTEGER NOT NULL,
        saved_at REAL NOT NULL,
        PRIMARY KEY (name, version)
    ) STRICT""",
    # The runs that were begun from the editor, each in a separate conversation.
    """CREATE TABLE workflow_runs (
        thread TEXT PRIMARY KEY,
        message_id TEXT NOT NULL,
        name TEXT NOT NULL,
        version INTEGER NOT NULL,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX workflow_runs_name ON workflow_runs(name)",
)
