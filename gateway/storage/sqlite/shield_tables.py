"""The tables of the shield: steps of `steps.MIGRATIONS`, and as every released step never edited."""

from __future__ import annotations

SHIELD_TABLES = (
    # Bodies are bytes: they are hashed as they are stored.
    "CREATE TABLE audit (n INTEGER PRIMARY KEY, line BLOB NOT NULL, hash TEXT NOT NULL) STRICT",
    """CREATE TABLE audit_head (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        n INTEGER NOT NULL,
        hash TEXT NOT NULL
    ) STRICT""",
    f"INSERT INTO audit_head VALUES (1, 0, '{'0' * 64}')",  # noqa: S608 - a constant
    """CREATE TABLE audit_quarantine (
        id INTEGER PRIMARY KEY,
        n INTEGER NOT NULL,
        line BLOB NOT NULL,
        problem TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT""",
    """CREATE TABLE taints (
        session_id TEXT PRIMARY KEY,
        level INTEGER NOT NULL,
        private INTEGER NOT NULL,
        sources TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE permissions (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        session_id TEXT NOT NULL,
        thread TEXT NOT NULL,
        person TEXT NOT NULL,
        type TEXT NOT NULL,
        target TEXT NOT NULL,
        foreign_text TEXT NOT NULL,
        level INTEGER NOT NULL,
        private INTEGER NOT NULL,
        at REAL NOT NULL,
        UNIQUE (session_id, person, type, target)
    ) STRICT""",
)

SUSPECT_SOURCES = ("ALTER TABLE taints ADD COLUMN suspects TEXT NOT NULL DEFAULT '[]'",)
"""Where a conversation read text that looks like instructions."""

EVALUATOR_CALLS = (
    "CREATE TABLE evaluator_calls (day TEXT PRIMARY KEY, calls INTEGER NOT NULL) STRICT, WITHOUT ROWID",
)
"""How often the evaluator was asked, by day."""

ASKED = (
    # The questions to people whether a tool may be used. Those older than an hour go with the next one.
    """CREATE TABLE asked (
        question TEXT PRIMARY KEY,
        person TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX asked_person ON asked(person)",
)
