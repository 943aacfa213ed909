"""SQL on pending interactions. Runs in a DatabaseThread."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from gateway.storage.interaction_rules import judge_answer
from gateway.storage.json_bodies import encode_body
from gateway.storage.ports import AnswerStatus, Interaction
from gateway.storage.sealing import new_key, sealed
from gateway.storage.sqlite import seals, threads
from pipeline.domain.errors import StorageError

_INSERT = """
    INSERT INTO interactions
        (id, thread, session_id, kind, options, allowed_users, action_hash, created_at, expires_at, body)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO NOTHING"""
_SELECT = """
    SELECT i.id, t.key, session_id, kind, options, allowed_users, action_hash, created_at, i.expires_at, body,
        choice
    FROM interactions AS i JOIN threads AS t ON t.id = i.thread """
_ONE = _SELECT + "WHERE i.id = ?"
_PENDING = _SELECT + "WHERE t.key = ? AND answered_at IS NULL AND i.expires_at > ? ORDER BY created_at, n"
_FORGET = "DELETE FROM interactions WHERE session_id = ?"
_ANSWER = "UPDATE interactions SET answered_by = ?, choice = ?, answered_at = ? WHERE id = ?"


def add(db: sqlite3.Connection, interaction: Interaction, body: str) -> None:
    """Store the interaction, sealed while its thread is off the record. Raises StorageError if its id was
    used before."""
    if seals.is_off_record(db, interaction.thread):
        key = new_key()
        seals.put(db, interaction.id, interaction.thread, key)
        body = encode_body(sealed(interaction.body, key))
    if not add_new(db, interaction, body):
        raise StorageError(f"interaction {interaction.id} exists already; ids are used once")


def forget(db: sqlite3.Connection, session_id: str) -> None:
    """Delete the session's questions, answered or not, and their keys."""
    seals.drop_of_session(db, session_id)
    db.execute(_FORGET, (session_id,))


def add_new(db: sqlite3.Connection, interaction: Interaction, body: str) -> bool:
    """Store the interaction unless its id was used before; returns whether it was stored."""
    values = (
        interaction.id,
        threads.intern(db, interaction.thread),
        interaction.session_id,
        interaction.kind,
        json.dumps(interaction.options),
        json.dumps(interaction.allowed_users),
        interaction.action_hash,
        interaction.created_at,
        interaction.expires_at,
        body,
    )
    return db.execute(_INSERT, values).rowcount == 1


def answer(
    db: sqlite3.Connection, interaction_id: str, *, thread: str, user: str, choice: str, now: float
) -> AnswerStatus:
    """Check the answer and, if it is accepted, store it."""
    row = db.execute(_ONE, (interaction_id,)).fetchone()
    status = judge_answer(
        None if row is None else _interaction(db, row),
        answered=None if row is None else row[-1],
        thread=thread,
        user=user,
        choice=choice,
        now=now,
    )
    if status == "accepted":
        db.execute(_ANSWER, (user, choice, now, interaction_id))
    return status


def one(db: sqlite3.Connection, interaction_id: str) -> tuple[Interaction, str | None] | None:
    """The interaction and its answer's choice; None if there is no such id."""
    row = db.execute(_ONE, (interaction_id,)).fetchone()
    return None if row is None else (_interaction(db, row), row[-1])


def pending(db: sqlite3.Connection, thread: str, now: float) -> tuple[Interaction, ...]:
    """The thread's interactions that can still be answered, oldest first."""
    return tuple(_interaction(db, row) for row in db.execute(_PENDING, (thread, now)).fetchall())


def _interaction(db: sqlite3.Connection, row: tuple[Any, ...]) -> Interaction:
    (
        identity,
        thread,
        session_id,
        kind,
        options,
        allowed_users,
        action_hash,
        created_at,
        expires_at,
        body,
        _,
    ) = row
    return Interaction(
        id=identity,
        thread=thread,
        session_id=session_id,
        kind=kind,
        options=tuple(json.loads(options)),
        allowed_users=tuple(json.loads(allowed_users)),
        action_hash=action_hash,
        created_at=created_at,
        expires_at=expires_at,
        body=seals.readable(db, identity, body),
    )
