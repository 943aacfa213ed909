"""SQL on questions and their answers, in separate transactions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from gateway.storage.interaction_rules import judge_answer
from gateway.storage.jobs import NewJob
from gateway.storage.json_bodies import encode_body
from gateway.storage.ports import Accepted, AnswerStatus, Interaction, NewEntry
from gateway.storage.postgres import operations, seals
from gateway.storage.postgres.database import Connection
from gateway.storage.postgres.entries import QUESTION, question_of
from gateway.storage.postgres.jobs import CHANGE
from gateway.storage.postgres.operations import Operation, message_key
from gateway.storage.sealing import SealNeeded, new_key, sealed
from pipeline.domain.errors import StorageError

T = TypeVar("T")

_KNOWN = "SELECT 1 FROM inbox WHERE dedupe_key = $1"
_ADD = "SELECT add_question($1::jsonb)"
_ONE = QUESTION + " FOR UPDATE OF i"
_ANSWER = "UPDATE interactions SET answered_by = $1, choice = $2, answered_at = $3 WHERE id = $4"
_FINISH = "UPDATE inbox SET outcome = 'answered', finished_at = $1 WHERE seq = $2"


async def applied(db: Connection, operation: Operation[T]) -> T:
    """The outcome of an operation in the caller's transaction, which its refusal undoes."""
    found = json.loads(await db.fetchval("SELECT apply($1::jsonb)", f"[{operation.text}]"))
    return operation.outcome(found[0])


async def accepted(db: Connection, entry: NewEntry) -> Accepted:
    """Accept the entry, sealed while its thread is off the record."""
    try:
        return await applied(db, operations.accept(entry))
    except SealNeeded:
        return await applied(db, operations.accept(entry, key=new_key()))


async def accept_with(db: Connection, entry: NewEntry, changed: Sequence[NewJob]) -> Accepted:
    """Accept the entry and change open jobs."""
    result = await accepted(db, entry)
    for job in changed:
        await db.execute(CHANGE, job.kind, job.owner, job.key, job.due, encode_body(job.body))
    return result


async def ask(db: Connection, interaction: Interaction) -> None:
    """Store the interaction, sealed while its thread is off the record. Raises StorageError if its id was
    used before."""
    if await db.fetchval(seals.IS_OFF_RECORD, interaction.thread):
        key = new_key()
        interaction = replace(interaction, body=sealed(interaction.body, key))
        await db.execute(seals.PUT, interaction.id, interaction.thread, key)
    if not await db.fetchval(_ADD, operations.as_json(operations.question(interaction))):
        raise StorageError(f"interaction {interaction.id} exists already; ids are used once")


async def answer(
    db: Connection,
    interaction_id: str,
    *,
    thread: str,
    user: str,
    choice: str,
    now: float,
    entry: NewEntry | None,
    finished: bool,
) -> AnswerStatus:
    """Check the answer and, if it is accepted, store it and enqueue the entry."""
    if entry is not None and await db.fetchval(_KNOWN, message_key(entry.dedupe_key)) is not None:
        return "already_answered"
    # Locked: another process that answers it at the same time waits, and reads the choice of this one.
    row: Any = await db.fetchrow(_ONE, interaction_id)
    status = judge_answer(
        None if row is None else question_of(row, {}),
        answered=None if row is None else row["choice"],
        thread=thread,
        user=user,
        choice=choice,
        now=now,
    )
    if status != "accepted":
        return status
    await db.execute(_ANSWER, user, choice, now, interaction_id)
    if entry is not None:
        seq = (await accepted(db, entry)).seq
        if finished:
            await db.execute(_FINISH, now, seq)
    return status
