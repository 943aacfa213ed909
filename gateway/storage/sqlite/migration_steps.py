"""The tables, as numbered migration steps; `migrations.py` runs them.

A released step is never edited: a change to the schema is a new step at the end.
"""

from __future__ import annotations

from gateway.storage.sqlite.blob_tables import BLOB_TABLES
from gateway.storage.sqlite.crises import CRISIS_TABLES
from gateway.storage.sqlite.file_tables import FILE_CHANGES, MADE_FOLDERS
from gateway.storage.sqlite.memory_tables import MEMORY_TABLES
from gateway.storage.sqlite.page_tables import PAGE_TABLES, SAVED_WORKFLOW_TABLES
from gateway.storage.sqlite.seals import SEAL_TABLES
from gateway.storage.sqlite.shield_tables import ASKED, EVALUATOR_CALLS, SHIELD_TABLES, SUSPECT_SOURCES

_STEP_1 = (
    # One row per thread: every other table refers to the short id instead of repeating the key, and
    # the lease is stored here, so that the fence check and the id come from one look-up. Rows are never
    # deleted, so the fence never repeats.
    """CREATE TABLE threads (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        fence INTEGER NOT NULL DEFAULT 0,
        owner TEXT,
        expires_at REAL NOT NULL DEFAULT 0
    ) STRICT""",
    # Finished entries stay, for their dedupe keys. Pruning must keep the newest row of inbox and of log,
    # because the next id is one more than the greatest existing one.
    """CREATE TABLE inbox (
        seq INTEGER PRIMARY KEY,
        dedupe_key TEXT NOT NULL UNIQUE,
        thread INTEGER NOT NULL REFERENCES threads(id),
        message_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        received_at REAL NOT NULL,
        attempts INTEGER NOT NULL DEFAULT 0,
        excused INTEGER NOT NULL DEFAULT 0,
        cancelled INTEGER NOT NULL DEFAULT 0,
        outcome TEXT,
        finished_at REAL
    ) STRICT""",
    "CREATE INDEX inbox_open ON inbox(thread) WHERE outcome IS NULL",
    """CREATE TABLE log (
        id INTEGER PRIMARY KEY,
        thread INTEGER NOT NULL REFERENCES threads(id),
        kind TEXT NOT NULL,
        session_id TEXT NOT NULL,
        message_id TEXT NOT NULL,
        body TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT""",
    "CREATE INDEX log_thread ON log(thread)",
    # Finds a message's records, and keeps its user record unique: NULLs differ from one another, so only
    # the 1 of a user record can conflict.
    "CREATE UNIQUE INDEX log_message ON log(thread, message_id, (CASE kind WHEN 'user' THEN 1 END))",
    "CREATE INDEX log_visible ON log(thread, session_id) WHERE kind <> 'step'",
    "CREATE INDEX log_session ON log(thread) WHERE kind = 'session'",
    """CREATE TABLE outbox (
        id INTEGER PRIMARY KEY,
        key TEXT NOT NULL UNIQUE,
        thread INTEGER NOT NULL REFERENCES threads(id),
        message_id TEXT NOT NULL,
        entry_id INTEGER NOT NULL,
        body TEXT NOT NULL,
        state TEXT NOT NULL DEFAULT 'ready',
        attempts INTEGER NOT NULL DEFAULT 0,
        not_before REAL NOT NULL DEFAULT 0,
        created_at REAL NOT NULL,
        receipt TEXT NOT NULL DEFAULT '',
        error TEXT NOT NULL DEFAULT '',
        sent_at REAL
    ) STRICT""",
    "CREATE INDEX outbox_open ON outbox(thread) WHERE state IN ('ready', 'sending')",
    """CREATE TABLE interactions (
        n INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        thread INTEGER NOT NULL REFERENCES threads(id),
        session_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        options TEXT NOT NULL,
        allowed_users TEXT NOT NULL,
        action_hash TEXT NOT NULL,
        created_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        body TEXT NOT NULL,
        answered_by TEXT,
        choice TEXT,
        answered_at REAL
    ) STRICT""",
    "CREATE INDEX interactions_pending ON interactions(thread) WHERE answered_at IS NULL",
    "CREATE TABLE probe (n INTEGER PRIMARY KEY, filler BLOB NOT NULL) STRICT",
)

_STEP_2 = (
    # The platform messages that show a reply which is not yet known to be sent; rows are deleted when it is.
    """CREATE TABLE shown (
        key TEXT NOT NULL,
        part INTEGER NOT NULL,
        native_id TEXT NOT NULL,
        final INTEGER NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (key, part)
    ) STRICT, WITHOUT ROWID""",
)

_STEP_3 = (
    # A code is stored as its hash. Rows stay after the code's expiry, so that the person is not shown another
    # code at once.
    """CREATE TABLE pairing_requests (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        user TEXT NOT NULL,
        name TEXT NOT NULL,
        code_hash TEXT NOT NULL,
        asked_at REAL NOT NULL,
        expires_at REAL NOT NULL,
        PRIMARY KEY (channel, account, chat, user)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE pairings (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        chat TEXT NOT NULL,
        user TEXT NOT NULL,
        name TEXT NOT NULL,
        paired_at REAL NOT NULL,
        PRIMARY KEY (channel, account, chat, user)
    ) STRICT, WITHOUT ROWID""",
)

_STEP_4 = (
    # Dictated text that is not a message yet; the row is deleted when it is.
    """CREATE TABLE speech_buffers (
        key TEXT PRIMARY KEY,
        body TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE speakers (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        user TEXT NOT NULL,
        language TEXT NOT NULL DEFAULT '',
        voice_replies INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (channel, account, user)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE transcripts (
        key TEXT PRIMARY KEY,
        body TEXT NOT NULL,
        at REAL NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX transcripts_age ON transcripts(at)",
)

_STEP_5 = (
    """CREATE TABLE reminders (
        id TEXT PRIMARY KEY,
        thread TEXT NOT NULL,
        owner TEXT NOT NULL,
        due REAL NOT NULL,
        text TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX reminders_due ON reminders(due)",
    "CREATE INDEX reminders_owner ON reminders(owner, due)",
    """CREATE TABLE usage (
        day TEXT NOT NULL,
        scope TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        cost REAL NOT NULL,
        PRIMARY KEY (day, scope)
    ) STRICT, WITHOUT ROWID""",
)

_STEP_6 = (
    # The command that last changed voice_replies, so that repeating it after a crash changes nothing.
    "ALTER TABLE speakers ADD COLUMN voice_command TEXT NOT NULL DEFAULT ''",
)

_STEP_7 = (
    # Only unfinished entries have rows: those of finished entries are deleted at the next start.
    """CREATE TABLE deaths (
        seq INTEGER PRIMARY KEY,
        total INTEGER NOT NULL,
        alone INTEGER NOT NULL
    ) STRICT""",
)

_STEP_8 = (
    # AUTOINCREMENT: a stale worker knows a job by id and fence, so no later job may get the same id.
    """CREATE TABLE jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        key TEXT NOT NULL,
        thread TEXT NOT NULL,
        owner TEXT NOT NULL,
        due REAL NOT NULL,
        ready REAL NOT NULL,
        state TEXT NOT NULL DEFAULT 'open',
        attempts INTEGER NOT NULL DEFAULT 0,
        fence INTEGER NOT NULL DEFAULT 0,
        claimed INTEGER NOT NULL DEFAULT 0,
        body TEXT NOT NULL,
        error TEXT NOT NULL DEFAULT '',
        UNIQUE (kind, key)
    ) STRICT""",
    "CREATE INDEX jobs_ready ON jobs(kind, ready, id) WHERE state = 'open'",
    "CREATE INDEX jobs_owner ON jobs(kind, owner)",
    """INSERT INTO jobs (kind, key, thread, owner, due, ready, body)
        SELECT 'reminder', id, thread, owner, due, due, json_set(body, '$.text', text) FROM reminders
        ORDER BY due, id""",
    "DROP TABLE reminders",
)

_STEP_9 = (
    """CREATE TABLE states (
        owner TEXT NOT NULL,
        graph TEXT NOT NULL,
        revision INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (owner, graph)
    ) STRICT, WITHOUT ROWID""",
)

_STEP_10 = (
    # An identity that has left stays: its last change must be recognised when it is repeated.
    """CREATE TABLE identities (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        user TEXT NOT NULL,
        thread TEXT NOT NULL,
        person TEXT NOT NULL,
        own TEXT NOT NULL,
        came_from TEXT NOT NULL,
        changed_by TEXT NOT NULL,
        PRIMARY KEY (channel, account, user)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX identities_person ON identities(person)",
    """CREATE TABLE link_codes (
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        user TEXT NOT NULL,
        thread TEXT NOT NULL,
        code_hash TEXT NOT NULL,
        expires_at REAL NOT NULL,
        PRIMARY KEY (channel, account, user)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX link_codes_hash ON link_codes(code_hash)",
    # Only the wrong codes of the last hour have rows, and their number is bounded.
    "CREATE TABLE link_tries (id INTEGER PRIMARY KEY, identity TEXT NOT NULL, at REAL NOT NULL) STRICT",
)

_STEP_11 = (
    # voice_replies holds more than two values from here on: 0 off, 1 on, 2 automatic.
    "ALTER TABLE speakers ADD COLUMN voice_speed REAL NOT NULL DEFAULT 1.0",
    "ALTER TABLE speakers ADD COLUMN voice_brief INTEGER NOT NULL DEFAULT 0",
)

_STEP_12 = (
    # What was said, by its words; filled up to a record's id when a person searches. The table holds the text
    # a second time, because an index without it cannot take out a row that may not be in it.
    "CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'unicode61 remove_diacritics 2')",
    "INSERT INTO said (said, rank) VALUES ('pgsz', 900)",
    "CREATE TABLE said_upto (upto INTEGER NOT NULL) STRICT",
    "INSERT INTO said_upto VALUES (0)",
    """CREATE TRIGGER said_forget AFTER UPDATE OF body ON log
        BEGIN DELETE FROM said WHERE rowid = old.id; END""",
    """CREATE TRIGGER said_delete AFTER DELETE ON log
        BEGIN DELETE FROM said WHERE rowid = old.id; END""",
)

_STEP_13 = (
    """CREATE TABLE feedback (
        message_id TEXT NOT NULL,
        channel TEXT NOT NULL,
        account TEXT NOT NULL,
        user TEXT NOT NULL,
        thread TEXT NOT NULL,
        name TEXT NOT NULL,
        value TEXT NOT NULL,
        run_id TEXT NOT NULL,
        agent TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (message_id, channel, account, user)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX feedback_at ON feedback(at)",
    "CREATE INDEX feedback_thread ON feedback(thread)",
)

_STEP_14 = (
    # The seq of the earlier entry whose turn answers this one too.
    "ALTER TABLE inbox ADD COLUMN joined INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE inbox ADD COLUMN steered INTEGER NOT NULL DEFAULT 0",
)

SAID_IN_TERMS = (
    # The index was filled with texts, in which words of some scripts were not found. It is filled again when
    # a person searches.
    "DELETE FROM said",
    "UPDATE said_upto SET upto = 0",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    _STEP_1,
    _STEP_2,
    _STEP_3,
    _STEP_4,
    _STEP_5,
    _STEP_6,
    _STEP_7,
    _STEP_8,
    _STEP_9,
    _STEP_10,
    _STEP_11,
    _STEP_12,
    _STEP_13,
    _STEP_14,
    FILE_CHANGES,
    SHIELD_TABLES,
    PAGE_TABLES,
    SUSPECT_SOURCES,
    EVALUATOR_CALLS,
    MADE_FOLDERS,
    ASKED,
    CRISIS_TABLES,
    MEMORY_TABLES,
    SAVED_WORKFLOW_TABLES,
    SAID_IN_TERMS,
    SEAL_TABLES,
    BLOB_TABLES,
)
"""Step n migrates a file from schema version n - 1 to n."""
