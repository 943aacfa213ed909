"""The tables of the changes of files: steps of `steps.MIGRATIONS`, as every released step never edited."""

from __future__ import annotations

FILE_CHANGES = (
    # The path is stored as it is used, not as an id: a file has few changes, and operators read the table.
    """CREATE TABLE file_changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        action TEXT NOT NULL,
        tool TEXT NOT NULL,
        root TEXT NOT NULL,
        path TEXT NOT NULL,
        thread TEXT NOT NULL,
        message_id TEXT NOT NULL,
        author TEXT NOT NULL,
        owner TEXT NOT NULL,
        is_foreign INTEGER NOT NULL,
        at REAL NOT NULL,
        before TEXT NOT NULL,
        before_mode INTEGER NOT NULL,
        after TEXT,
        after_mode INTEGER,
        undone_by TEXT NOT NULL DEFAULT '',
        undone_at REAL NOT NULL DEFAULT 0
    ) STRICT""",
    "CREATE INDEX file_changes_path ON file_changes(root, path)",
    "CREATE INDEX file_changes_action ON file_changes(action)",
    "CREATE INDEX file_changes_undone ON file_changes(undone_by) WHERE undone_by <> ''",
    "CREATE INDEX file_changes_thread ON file_changes(thread) WHERE undone_at = 0",
)

MADE_FOLDERS = (
    # The folders that tools made with a file in them. They go when all that was changed below is taken back.
    """CREATE TABLE made_folders (
        root TEXT NOT NULL,
        path TEXT NOT NULL,
        PRIMARY KEY (root, path)
    ) STRICT, WITHOUT ROWID""",
)
