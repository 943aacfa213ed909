"""Port for erasing everything of a person. A part of `Store`.

An erasure is a job of several steps (`gateway.ingress.full_erasure`), each of which may be repeated. A
private chat is erased by `PageChatBook.erase`; here are the other steps. Every method raises StorageError
when the store fails.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from gateway.storage.audit import AuditHead, AuditRow, NewAuditRecord, canonical_plain, hash_of
from gateway.storage.identities import Identity
from gateway.storage.inbox_items import ASKED_IN
from gateway.storage.json_bodies import FORGOTTEN, encode_body
from pipeline.domain.frozen import dataclass

FULL_ERASURE: Final = "full_erasure"
"""The kind of the job that erases everything of a person. Its key is that of their first identity."""
ERASED: Final = "[erased]"
"""In place of the words of an erased person in a room, and of what names them in the audit."""
DROPPED: Final = ""
_WORDS: Final = encode_body({"text": ERASED})
PERSON_ERASED: Final = "person_erased"
"""The type of the record that an erasure adds to an audit that named the person."""
_NAMING: Final = ("person", "thread", "session", "message")
"""What of an audit record tells who the person is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonKeys:
    """Who is erased."""

    identities: tuple[Identity, ...]
    """All identities that are one person."""
    keys: tuple[str, ...]
    """The keys under which something of the person may be kept: one for each identity, and that of the
    person."""


class ErasureBook(Protocol):
    """What of a person is in the store, and its end."""

    async def keys_of(self, identity: Identity) -> PersonKeys:
        """Everyone that the identity is one person with, and the keys."""
        ...

    async def private_threads(self, person: PersonKeys) -> tuple[str, ...]:
        """The threads, by key, where the person writes to the bot alone, and which hold anything."""
        ...

    async def rooms(self, person: PersonKeys) -> tuple[str, ...]:
        """The threads of rooms that hold words of the person: their own messages, or quotes of them."""
        ...

    async def messages_in_room(self, thread: str, person: PersonKeys) -> tuple[str, ...]:
        """The ids of the messages that `redact_room` takes the words or the answer of."""
        ...

    async def redact_room(self, thread: str, person: PersonKeys, *, owner: str, fence: int) -> None:
        """Take the person's words out of a room whose lease `owner` holds with `fence`: their messages, the
        answers to these, messages that quote them, questions to them, and every summary. The messages of
        others stay. Repeatable. Raises FenceLost."""
        ...

    async def forget_person(self, person: PersonKeys, *, but_jobs: str) -> None:
        """Delete what is kept under the keys and the identities: preferences, speech, transcripts of
        everyone, pairings, links, feedback, use, permissions, kept states, and jobs but those of the kind
        `but_jobs`. Take the person out of the records of crises and of files."""
        ...

    async def forget_usage(self, scopes: Sequence[str]) -> None:
        """Delete the sums of use of these scopes."""
        ...

    async def redact_audit(self, person: PersonKeys, *, at: float) -> int:
        """Take the person out of the audit's records; how many named them. See `redacted_audit`."""
        ...

    async def compact(self) -> None:
        """Leave no byte of what was deleted in the store's files. Takes time in proportion to the store, and
        other writes wait for it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomMessage:
    """An inbox entry of a room, as far as a redaction needs it."""

    seq: int
    message_id: str
    joined: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What a redaction changes in a room."""

    entries: tuple[int, ...]
    """The seqs of the entries whose bodies go."""
    said: frozenset[str]
    """The messages whose words go."""
    turns: frozenset[str]
    """The messages whose answers and steps go: those, and the ones that were answered together with them."""

    def left_of(self, kind: str, message_id: str) -> str | None:
        """The body that a record has afterwards: DROPPED if the record goes, None if it stays as it is."""
        if kind in ("summary", "title"):
            return DROPPED if self.said else None
        if kind == "user":
            return _WORDS if message_id in self.said else None
        if kind in ("session", "model") or message_id not in self.turns:
            return None
        return _WORDS if kind in ("assistant", "error") else FORGOTTEN

    def concerns(
        self, body: Mapping[str, Any], people: Collection[str | None], users: Collection[str]
    ) -> bool:
        """Whether a question goes, by its body and the people who may answer it or have done so."""
        return bool(set(users) & set(people)) or str(body.get(ASKED_IN, "")) in self.turns


def redaction_of(
    entries: Sequence[RoomMessage],
    records: Iterable[tuple[str, Mapping[str, Any]]],
    users: Collection[str],
) -> Redaction:
    """What goes of a room: `records` are the message ids and bodies of the log's `user` records."""
    own = [one for one in entries if one.body.get("author") in users]
    names = {str(one.body["name"]) for one in own if one.body.get("name")}
    quoting = [one for one in entries if one.body.get("quoted_by") in names and one.body.get("quoted")]
    gone = {one.seq: one for one in (*own, *quoting)}
    said = {one.message_id for one in gone.values()}
    turns: set[str] = set()
    by_seq = {one.seq: one.message_id for one in entries}
    turns.update(by_seq[one.joined] for one in gone.values() if one.joined in by_seq)
    for message_id, body in records:
        if body.get("author") in users:
            said.add(message_id)
        if message_id in said and body.get("turn"):
            turns.add(str(body["turn"]))
    return Redaction(entries=tuple(sorted(gone)), said=frozenset(said), turns=frozenset(said | turns))


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedAudit:
    """An audit without a person."""

    rows: tuple[AuditRow, ...]
    """The rows that changed: from the first record that named the person."""
    head: AuditHead
    named: int
    """How many records named the person."""


def redacted_audit(rows: Iterable[AuditRow], head: AuditHead, person: PersonKeys) -> RedactedAudit | None:
    """The chain with the person taken out; None if no record names them.

    Each record keeps its number, time, type and decision. A changed line has another hash, so the records
    behind it name that one; a record that was damaged before stays damaged, and is found by the check as
    before.
    """
    users: dict[str, set[str]] = {}
    for one in person.identities:
        users.setdefault(f"{one.channel}:{one.account}:", set()).add(one.user)
    hashes: dict[str, str] = {}
    changed: list[AuditRow] = []
    named = 0
    for row in rows:
        plain = _plain(row)
        if plain is None:
            continue
        is_named = _names(plain["details"], users)
        named += is_named
        if not is_named and plain["prev"] not in hashes:
            continue
        details = dict(plain["details"])
        if is_named:
            details |= {field: ERASED for field in _NAMING if field in details}
        before = hashes.get(plain["prev"], plain["prev"])
        line = canonical_plain({**plain, "details": details, "prev": before})
        hashes[row.hash] = hash_of(line)
        changed.append(AuditRow(n=row.n, line=line, hash=hashes[row.hash]))
    if not named:
        return None
    new_head = AuditHead(n=head.n, hash=hashes.get(head.hash, head.hash))
    return RedactedAudit(rows=tuple(changed), head=new_head, named=named)


def erasure_record(before: AuditHead, named: int, at: float) -> NewAuditRecord:
    """The record of a redaction. It names the end of the chain from before, so that who kept that hash, or an
    export, can tell why the records have others now."""
    details = {"records": named, "through": before.n, "hash": before.hash}
    return NewAuditRecord(type=PERSON_ERASED, details=details, at=at)


def quoted_ids(person: PersonKeys) -> tuple[str, ...]:
    """How the lines of the audit name the person."""
    return tuple(json.dumps(one.user, ensure_ascii=False) for one in person.identities)


def _names(details: Mapping[str, Any], users: Mapping[str, Collection[str]]) -> bool:
    thread = str(details.get("thread", ""))
    return any(thread.startswith(account) and details.get("person") in ids for account, ids in users.items())


def _plain(row: AuditRow) -> dict[str, Any] | None:
    """The record of an undamaged row."""
    if hash_of(row.line) != row.hash:
        return None
    try:
        plain = json.loads(row.line)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(plain, dict) and isinstance(plain.get("details"), dict) and "prev" in plain
    return plain if whole else None
