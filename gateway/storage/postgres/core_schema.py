"""The tables of the inbox, the log, the outbox, questions, jobs and states.

Text that is compared or ordered has the collation "C": by its bytes, as in the other stores, whatever the
database's locale. Bodies are JSON text: `jsonb` refuses characters that people send.
"""

from __future__ import annotations

CORE_TABLES = (
    # One row per thread. Every write to a thread locks it first: it holds the lease, and what is written to
    # one thread is committed in the order of its ids. Rows are never deleted, so the fence never repeats.
    """CREATE TABLE threads (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key text COLLATE "C" NOT NULL UNIQUE,
        fence bigint NOT NULL DEFAULT 0,
        owner text COLLATE "C",
        expires_at double precision NOT NULL DEFAULT 0
    )""",
    # Finished entries stay, for their dedupe keys.
    """CREATE TABLE inbox (
        seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        dedupe_key text COLLATE "C" NOT NULL UNIQUE,
        thread bigint NOT NULL REFERENCES threads(id),
        message_id text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        body text NOT NULL,
        received_at double precision NOT NULL,
        attempts integer NOT NULL DEFAULT 0,
        excused integer NOT NULL DEFAULT 0,
        cancelled boolean NOT NULL DEFAULT false,
        outcome text,
        finished_at double precision,
        joined bigint NOT NULL DEFAULT 0,
        steered boolean NOT NULL DEFAULT false
    )""",
    "CREATE INDEX inbox_open ON inbox(thread, seq) WHERE outcome IS NULL",
    """CREATE TABLE log (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        thread bigint NOT NULL REFERENCES threads(id),
        kind text NOT NULL,
        session_id text COLLATE "C" NOT NULL,
        message_id text COLLATE "C" NOT NULL,
        body text NOT NULL,
        at double precision NOT NULL
    )""",
    "CREATE INDEX log_thread ON log(thread, id)",
    "CREATE INDEX log_message ON log(thread, message_id, id)",
    # Keeps the user record of a message unique.
    "CREATE UNIQUE INDEX log_user ON log(thread, message_id) WHERE kind = 'user'",
    "CREATE INDEX log_visible ON log(thread, session_id, id) WHERE kind <> 'step'",
    "CREATE INDEX log_session ON log(thread, id) WHERE kind = 'session'",
    """CREATE TABLE outbox (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key text COLLATE "C" NOT NULL UNIQUE,
        thread bigint NOT NULL REFERENCES threads(id),
        message_id text COLLATE "C" NOT NULL,
        entry_id bigint NOT NULL,
        body text NOT NULL,
        state text NOT NULL DEFAULT 'ready',
        attempts integer NOT NULL DEFAULT 0,
        not_before double precision NOT NULL DEFAULT 0,
        created_at double precision NOT NULL,
        receipt text COLLATE "C" NOT NULL DEFAULT '',
        error text NOT NULL DEFAULT '',
        sent_at double precision
    )""",
    "CREATE INDEX outbox_open ON outbox(thread, id) WHERE state IN ('ready', 'sending')",
    "CREATE INDEX outbox_thread ON outbox(thread, id)",
    # The platform messages that show a reply which is not yet known to be sent; rows are deleted when it is.
    """CREATE TABLE shown (
        key text COLLATE "C" NOT NULL,
        part bigint NOT NULL,
        native_id text COLLATE "C" NOT NULL,
        final boolean NOT NULL,
        at double precision NOT NULL,
        PRIMARY KEY (key, part)
    )""",
    """CREATE TABLE interactions (
        n bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL UNIQUE,
        thread bigint NOT NULL REFERENCES threads(id),
        session_id text COLLATE "C" NOT NULL,
        kind text NOT NULL,
        options text NOT NULL,
        allowed_users text NOT NULL,
        action_hash text NOT NULL,
        created_at double precision NOT NULL,
        expires_at double precision NOT NULL,
        body text NOT NULL,
        answered_by text,
        choice text,
        answered_at double precision
    )""",
    "CREATE INDEX interactions_pending ON interactions(thread) WHERE answered_at IS NULL",
    "CREATE INDEX interactions_expiring ON interactions(kind, expires_at, n) WHERE answered_at IS NULL",
    "CREATE INDEX interactions_session ON interactions(session_id)",
    # Ids are never used twice: a stale worker knows a job by id and fence.
    """CREATE TABLE jobs (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        kind text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        thread text COLLATE "C" NOT NULL,
        owner text COLLATE "C" NOT NULL,
        due double precision NOT NULL,
        ready double precision NOT NULL,
        state text COLLATE "C" NOT NULL DEFAULT 'open',
        attempts integer NOT NULL DEFAULT 0,
        fence bigint NOT NULL DEFAULT 0,
        claimed boolean NOT NULL DEFAULT false,
        body text NOT NULL,
        error text NOT NULL DEFAULT '',
        UNIQUE (kind, key)
    )""",
    "CREATE INDEX jobs_ready ON jobs(kind, ready, id) WHERE state = 'open'",
    "CREATE INDEX jobs_owner ON jobs(kind, owner)",
    """CREATE TABLE states (
        owner text COLLATE "C" NOT NULL,
        graph text COLLATE "C" NOT NULL,
        revision bigint NOT NULL,
        body text NOT NULL,
        PRIMARY KEY (owner, graph)
    )""",
    "CREATE TABLE probe (n integer PRIMARY KEY, filler bytea NOT NULL)",
)
