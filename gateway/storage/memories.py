"""What every store shares of the memory: the bodies of facts, arcs, profiles and candidates, and the rules of
writing. The port is `pipeline.memory.ports`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, replace
from typing import Any, Final

from gateway.storage.json_bodies import decode_body, encode_body
from pipeline.memory.candidates import FactCandidate, Held, Judged, RuleCandidate
from pipeline.memory.checks import require_arc, require_fact, require_profile
from pipeline.memory.ports import MemoryWrites, ProfileChanged
from pipeline.memory.recall import same_evidence
from pipeline.memory.values import EntityRef, Fact, Profile, Rule, SessionArc


def storable_owner(owner: str) -> str:
    """`owner` as text that UTF-8 can hold, different for different owners."""
    return owner.encode("utf-8", "backslashreplace").decode("utf-8")


def encode_fact(fact: Fact) -> str:
    """The body of a fact: all but its marks, which change (when it was referenced, whether it is live)."""
    fields = asdict(fact)
    return encode_body({name: value for name, value in fields.items() if name not in _MARKS})


def decode_fact(
    text: str, referenced_at: float = 0.0, dormant_at: float | None = None, superseded_by: str | None = None
) -> Fact:
    """The fact from its body and its marks."""
    body = decode_body(text)
    marks = dict(zip(_MARKS, (referenced_at, dormant_at, superseded_by), strict=True))
    return Fact(**{**body, **_entities(body), **marks})


_MARKS: Final = ("last_referenced_at", "dormant_at", "superseded_by")


def encode_arc(arc: SessionArc) -> str:
    """The body of an arc."""
    return encode_body(asdict(arc))


def decode_arc(text: str) -> SessionArc:
    """The arc from its body."""
    return SessionArc(**_with_tuples(decode_body(text)))


def encode_profile(profile: Profile) -> str:
    """The body of a profile."""
    return encode_body(asdict(profile))


def decode_profile(text: str) -> Profile:
    """The profile from its body."""
    body = decode_body(text)
    rules = {
        name: tuple(Rule(**_with_tuples(one)) for one in body[name]) for name in ("rules", "archived_rules")
    }
    return Profile(**{**body, **rules})


def encode_held(held: Held) -> str:
    """The body of a candidate that waits."""
    kind = "fact" if isinstance(held.candidate, FactCandidate) else "rule"
    return encode_body({"kind": kind, **asdict(held)})


def decode_held(text: str) -> Held:
    """The candidate from its body."""
    body = decode_body(text)
    fields = body["candidate"]
    judged = Judged(**fields["judged"])
    if body["kind"] == "rule":
        return Held(candidate=RuleCandidate(**{**fields, "judged": judged}), decision=body["decision"])
    candidate = FactCandidate(**{**fields, **_entities(fields), "judged": judged})
    return Held(candidate=candidate, decision=body["decision"])


def require_valid(writes: MemoryWrites) -> None:
    """Raise StorageError, which names the field, for a value out of its limits."""
    for fact in writes.facts:
        require_fact(fact)
    if writes.arc is not None:
        require_arc(writes.arc)
    if writes.profile is not None:
        require_profile(writes.profile)


def next_profile(stored: Profile, new: Profile) -> Profile:
    """`new` as it is stored in place of `stored`. Raises ProfileChanged."""
    require_profile(new)
    if new.revision != stored.revision:
        raise ProfileChanged("the profile has changed since it was read")
    return replace(new, revision=new.revision + 1)


def same_statement(fact: Fact, known: Iterable[Fact]) -> Fact | None:
    """The live fact of the same triple that rests on about the same words."""
    return next((one for one in known if same_evidence(one.evidence_quote, fact.evidence_quote)), None)


def renewed(fact: Fact, at: float) -> Fact:
    """The fact as last referenced at a time, never earlier than before."""
    return replace(fact, last_referenced_at=max(fact.last_referenced_at, at))


def without_rules(profile: Profile, ids: Collection[str]) -> tuple[Profile, int]:
    """The profile without the rules with these ids, and how many those were."""
    active = tuple(rule for rule in profile.rules if rule.id not in ids)
    archived = tuple(rule for rule in profile.archived_rules if rule.id not in ids)
    gone = len(profile.rules) + len(profile.archived_rules) - len(active) - len(archived)
    changed = replace(profile, rules=active, archived_rules=archived, revision=profile.revision + 1)
    return (changed if gone else profile), gone


def _entities(body: dict[str, Any]) -> dict[str, EntityRef]:
    return {name: EntityRef(**body[name]) for name in ("subject", "object")}


def _with_tuples(body: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in body.items()}
