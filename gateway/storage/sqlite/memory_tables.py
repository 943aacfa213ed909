"""The tables of the memory. Words of people are in the bodies alone; the rest is ids, numbers and hashes."""

from __future__ import annotations

MEMORY_TABLES = (
    # The salt keys the terms in the index and goes with the owner, so that nothing left of the index can be
    # tried out; `words` is the version of the rules by which the terms were made.
    """CREATE TABLE memory_owners (
        owner TEXT PRIMARY KEY,
        salt BLOB NOT NULL,
        words INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE memory_facts (
        n INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        id TEXT NOT NULL,
        session TEXT NOT NULL,
        turn INTEGER NOT NULL,
        triple TEXT NOT NULL,
        live INTEGER NOT NULL,
        referenced_at REAL NOT NULL,
        dormant_at REAL,
        superseded_by TEXT,
        model TEXT NOT NULL DEFAULT '',
        terms TEXT NOT NULL,
        UNIQUE (owner, id)
    ) STRICT""",
    # Rows of this table never change, so SQLite moves none and leaves no copies of words.
    "CREATE TABLE memory_texts (n INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT",
    "CREATE INDEX memory_facts_live ON memory_facts(owner, live, n)",
    "CREATE INDEX memory_facts_turn ON memory_facts(owner, session, turn)",
    "CREATE INDEX memory_facts_triple ON memory_facts(owner, triple)",
    "CREATE INDEX memory_facts_referenced ON memory_facts(referenced_at)",
    "CREATE INDEX memory_facts_model ON memory_facts(model) WHERE live = 1",
    # Its terms are hashes of 16 hexadecimal digits. Rows have the numbers of the facts.
    """CREATE VIRTUAL TABLE memory_index USING fts5(
        terms, content = '', columnsize = 0, detail = none, tokenize = 'ascii')""",
    "INSERT INTO memory_index (memory_index, rank) VALUES ('pgsz', 900)",
    """CREATE TABLE memory_vectors (
        fact INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        model TEXT NOT NULL,
        vector BLOB NOT NULL
    ) STRICT""",
    "CREATE INDEX memory_vectors_owner ON memory_vectors(owner, model)",
    """CREATE TABLE memory_arcs (
        n INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        ended_at REAL NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (owner, session)
    ) STRICT""",
    "CREATE INDEX memory_arcs_owner ON memory_arcs(owner, ended_at)",
    "CREATE INDEX memory_arcs_ended ON memory_arcs(ended_at)",
    """CREATE TABLE memory_profiles (
        owner TEXT PRIMARY KEY,
        revision INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE memory_held (
        n INTEGER PRIMARY KEY,
        owner TEXT NOT NULL,
        session TEXT NOT NULL,
        id TEXT NOT NULL,
        at REAL NOT NULL,
        body TEXT NOT NULL,
        UNIQUE (owner, session, id)
    ) STRICT""",
    "CREATE INDEX memory_held_at ON memory_held(at)",
    """CREATE TABLE memory_writes (
        owner TEXT NOT NULL,
        key TEXT NOT NULL,
        at REAL NOT NULL,
        PRIMARY KEY (owner, key)
    ) STRICT, WITHOUT ROWID""",
    "CREATE INDEX memory_writes_at ON memory_writes(at)",
)
"""A step of `steps.MIGRATIONS`, and as every released step never edited."""
