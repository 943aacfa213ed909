"""Memory on every store: written once and whole, one owner's apart from another's, forgotten for good."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.storage.ports import Store
from pipeline.domain.errors import StorageError
from pipeline.memory.ports import MemoryCounts, ProfileChanged, Written
from pipeline.memory.values import EntityRef, Profile
from tests.contracts.conftest import Reopen
from tests.contracts.memory_values import (
    ANN,
    BEN,
    DAY_S,
    NOW,
    PROFILE,
    arc,
    fact,
    found,
    held,
    kept,
    rule,
    write,
)


async def test_everything_is_read_as_it_was_written_also_after_a_restart(
    store: Store, reopen: Reopen
) -> None:
    odd = fact("f1", 'I said "no" \ud800 to O\'Neil', about="Zoë", write_timing="session_end", turn=4)
    sleep = arc("s1", "Ann slept badly.", mood_opened="tense", resolved_threads=("exam",), crisis_level_max=1)
    await write(store, ANN, odd, held=(held("h1"), held("h2", is_rule=True)), arc=sleep, profile=PROFILE)
    book = (await reopen()).memories
    assert await book.facts(ANN) == (odd,)
    assert await book.arcs(ANN) == (sleep,)
    assert await book.held(ANN, "s1") == (held("h1"), held("h2", is_rule=True))
    assert await book.profile(ANN) == replace(PROFILE, revision=1)
    assert await book.counts(ANN) == MemoryCounts(facts=1, arcs=1, rules=2)
    everything = await book.everything(ANN)
    assert (everything.facts, everything.arcs) == ((odd,), (sleep,))
    assert (everything.held, everything.profile.rules) == (await book.held(ANN, "s1"), PROFILE.rules)


async def test_work_with_a_known_key_is_not_written_again(store: Store) -> None:
    assert await write(store, ANN, fact("f1", "tea")) == Written(facts=1)
    again = await write(store, ANN, fact("f2", "coffee"), key="f1", profile=PROFILE)
    assert again == Written(repeated=True)
    assert await kept(store, ANN) == ["f1"]
    assert await store.memories.profile(ANN) == Profile()
    assert (await write(store, BEN, fact("f2", "coffee"), key="f1")).facts == 1


async def test_a_profile_made_from_an_older_one_is_refused_with_nothing_written(store: Store) -> None:
    first = await store.memories.write_profile(ANN, PROFILE)
    assert first.revision == 1
    with pytest.raises(ProfileChanged):
        await store.memories.write_profile(ANN, PROFILE)
    with pytest.raises(ProfileChanged):
        await write(store, ANN, fact("f1", "tea"), profile=PROFILE, held=(held("h"),), arc=arc("s1", "x"))
    assert await store.memories.counts(ANN) == MemoryCounts(facts=0, arcs=0, rules=2)
    assert await store.memories.held(ANN, "s1") == ()
    changed = replace(first, rules=(rule("r3"),), last_consolidated_at=NOW)
    assert (await write(store, ANN, fact("f1", "tea"), profile=changed)).facts == 1
    assert await store.memories.profile(ANN) == replace(changed, revision=2)


async def test_the_same_statement_renews_the_fact_that_is_kept(store: Store) -> None:
    quote = "My sister Clara moved to Leeds with her two small kids last year"
    await write(store, ANN, fact("f1", quote, about="Clara"))
    later = NOW + DAY_S
    same = fact("f2", f"{quote}!", about="Clara")
    assert await write(store, ANN, same, at=later) == Written(renewed=1)
    assert [(one.id, one.last_referenced_at) for one in await store.memories.facts(ANN)] == [("f1", later)]
    other_words = fact("f3", "Clara called me yesterday", about="Clara")
    other_triple = fact("f4", quote, about="Clara", predicate="KNOWS")
    assert await write(store, ANN, other_words, other_triple) == Written(facts=2)
    assert await write(store, ANN, fact("f5", quote, about="clara")) == Written(facts=1)
    assert (await write(store, ANN, same, key="older", at=NOW)).renewed == 1
    assert (await store.memories.facts(ANN))[-1].last_referenced_at == later, "never set back"


async def test_the_same_id_is_never_stored_twice(store: Store) -> None:
    await write(store, ANN, fact("f1", "tea"))
    assert await write(store, ANN, fact("f1", "quite other words"), key="k2") == Written(renewed=1)
    assert await kept(store, ANN) == ["f1"]


async def test_superseded_and_dormant_facts_are_kept_and_not_recalled(store: Store) -> None:
    await write(store, ANN, fact("f1", "I live in Leeds"), fact("f2", "I live in York"), fact("f3", "Leeds"))
    await write(store, ANN, key="k", supersedes=(("f1", "f2"), ("none", "f2")), dormant=("f3", "none"))
    assert await kept(store, ANN) == ["f2"]
    assert await found(store, ANN, "Leeds") == []
    assert await found(store, ANN, "York") == ["f2"]
    assert (await store.memories.counts(ANN)).facts == 1
    marks = [
        (one.id, one.superseded_by, one.dormant_at) for one in (await store.memories.everything(ANN)).facts
    ]
    assert marks == [("f1", "f2", None), ("f2", None, None), ("f3", None, NOW)]


async def test_a_fact_is_superseded_by_the_kept_one_if_the_new_one_said_the_same(store: Store) -> None:
    await write(store, ANN, fact("f1", "I live in Leeds"), fact("f2", "I live in York", about="york"))
    again = fact("f9", "I live in York", about="york")
    await write(store, ANN, again, supersedes=(("f1", "f9"), ("f2", "f9")))
    assert [(one.id, one.superseded_by) for one in (await store.memories.everything(ANN)).facts] == [
        ("f1", "f2"),
        ("f2", None),
    ]


async def test_the_latest_is_the_latest_among_more_than_fifty(store: Store) -> None:
    for number in range(60):
        ended = NOW + number * DAY_S
        key = f"k{number}"
        await write(
            store, ANN, fact(f"f{number}", f"number {number}"), key=key, arc=arc(key, key, ended_at=ended)
        )
    assert (await kept(store, ANN))[:2] == ["f59", "f58"]
    assert [one.session_id for one in await store.memories.arcs(ANN, limit=2)] == ["k59", "k58"]
    assert [one.id for one in await store.memories.facts(ANN, limit=1)] == ["f59"]
    since = await store.memories.arcs(ANN, since=NOW + 58 * DAY_S)
    assert [one.session_id for one in since] == ["k59", "k58"]


async def test_an_arc_replaces_the_one_of_its_session(store: Store) -> None:
    await write(store, ANN, key="a", arc=arc("s1", "First."))
    await write(store, ANN, key="b", arc=arc("s1", "Second.", ended_at=NOW + 9))
    assert [one.summary for one in await store.memories.arcs(ANN)] == ["Second."]


async def test_held_candidates_wait_until_their_session_ends(store: Store, reopen: Reopen) -> None:
    await write(store, ANN, key="a", held=(held("h1"),))
    await write(store, ANN, key="b", held=(held("h1"), held("h2")))
    await write(store, ANN, key="c", held=(held("h3"),), session_id="s2")
    store = await reopen()
    assert [one.candidate.id for one in await store.memories.held(ANN, "s1")] == ["h1", "h2"]
    assert await store.memories.held(BEN, "s1") == ()
    await write(store, ANN, fact("f1", "tea"), ends_session=True)
    assert await store.memories.held(ANN, "s1") == ()
    assert len(await store.memories.held(ANN, "s2")) == 1


async def test_a_held_candidate_can_be_forgotten_alone(store: Store, reopen: Reopen) -> None:
    await write(store, ANN, key="a", held=(held("h1"), held("h2")))
    await write(store, BEN, key="b", held=(held("h1"),))
    assert await store.memories.forget(ANN, ["h1", "h9"]) == 1
    store = await reopen()
    assert [one.candidate.id for one in await store.memories.held(ANN, "s1")] == ["h2"]
    assert len(await store.memories.held(BEN, "s1")) == 1


async def test_nothing_is_written_for_a_person_who_lets_nothing_be_remembered(store: Store) -> None:
    await write(store, ANN, key="a", held=(held("h1"),))
    off = await store.memories.write_profile(ANN, replace(PROFILE, enabled=False))
    outcome = await write(
        store, ANN, fact("f1", "tea"), held=(held("h2"),), arc=arc("s1", "x"), ends_session=True
    )
    assert outcome == Written(disabled=True)
    assert await store.memories.counts(ANN) == MemoryCounts(facts=0, arcs=0, rules=2)
    assert await store.memories.held(ANN, "s1") == ()
    assert (await write(store, ANN, fact("f2", "tea"), profile=replace(off, enabled=True))).facts == 1


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"evidence_quote": ""}, "evidence_quote has 0 characters"),
        ({"evidence_quote": "x" * 281}, "evidence_quote has 281"),
        ({"write_reason": "x" * 241}, "write_reason has 241"),
        ({"subject": EntityRef("User", "")}, "subject.identifier has 0"),
        ({"object": EntityRef("User", "x" * 201)}, "object.identifier has 201"),
        ({"source_turn_index": -1}, "source_turn_index is -1"),
    ],
)
async def test_a_fact_out_of_its_limits_is_refused_with_its_field_named(
    store: Store, broken: dict[str, object], named: str
) -> None:
    bad = replace(fact("f1", "tea"), **broken)  # type: ignore[arg-type]  # names of fields
    with pytest.raises(StorageError, match=named):
        await write(store, ANN, fact("f0", "fine"), bad)
    assert await kept(store, ANN) == []


async def test_arcs_and_profiles_out_of_their_limits_are_refused(store: Store) -> None:
    for broken, named in (
        (arc("s1", "x" * 601), "summary has 601"),
        (arc("s1", "x", mood_closed="x" * 41), "mood_closed has 41"),
        (arc("s1", "x", primary_themes=("a", "b", "c", "d")), "primary_themes has 4"),
    ):
        with pytest.raises(StorageError, match=named):
            await write(store, ANN, arc=broken)
    many = Profile(rules=tuple(rule(f"r{number}") for number in range(21)))
    with pytest.raises(StorageError, match="rules has 21"):
        await store.memories.write_profile(ANN, many)
    with pytest.raises(StorageError, match="the text of the rule r1 has 281"):
        await store.memories.write_profile(ANN, Profile(rules=(rule("r1", "x" * 281),)))


async def test_one_item_is_forgotten_and_with_a_fact_those_that_it_replaced(store: Store) -> None:
    await write(store, ANN, fact("f1", "Leeds"), fact("f2", "York"), fact("f3", "Bath"), arc=arc("s1", "x"))
    await write(store, ANN, key="k", supersedes=(("f1", "f2"), ("f2", "f3")))
    await write(store, ANN, fact("f4", "tea"), profile=replace(PROFILE, archived_rules=(rule("r0"),)))
    await write(store, BEN, fact("f3", "Bath"))
    assert await store.memories.forget(ANN, ["f3", "r1", "r0", "s1", "none", "f3"]) == 4
    everything = await store.memories.everything(ANN)
    assert [one.id for one in everything.facts] == ["f4"]
    assert ([one.id for one in everything.profile.rules], everything.profile.archived_rules) == (["r2"], ())
    assert everything.profile.revision == 2
    assert everything.arcs == ()
    assert await found(store, ANN, "Bath York Leeds") == []
    assert await kept(store, BEN) == ["f3"]


async def test_a_session_is_forgotten(store: Store) -> None:
    await write(store, ANN, fact("f1", "tea"), fact("f2", "xyzzy", session="s2"), arc=arc("s1", "x"))
    await write(store, ANN, key="k", held=(held("h1"),))
    assert await store.memories.forget_session(ANN, "s1") == 3
    assert await kept(store, ANN) == ["f2"]
    assert await found(store, ANN, "tea") == []
    assert await store.memories.arcs(ANN) == ()
    assert await store.memories.held(ANN, "s1") == ()
    assert await store.memories.forget_session(ANN, "s1") == 0


async def test_an_owner_is_erased_and_another_one_stays(store: Store, reopen: Reopen) -> None:
    for owner in (ANN, BEN):
        await write(
            store, owner, fact("f1", "green tea"), arc=arc("s1", "x"), held=(held("h1"),), profile=PROFILE
        )
    assert await store.memories.erase(ANN) == 6
    store = await reopen()
    assert await store.memories.counts(ANN) == MemoryCounts(facts=0, arcs=0, rules=0)
    assert await store.memories.profile(ANN) == Profile()
    assert await found(store, ANN, "tea") == []
    assert await found(store, BEN, "tea") == ["f1"]
    assert await store.memories.counts(BEN) == MemoryCounts(facts=1, arcs=1, rules=2)
    assert await store.memories.erase(ANN) == 0
    assert (await write(store, ANN, fact("f1", "green tea"))).facts == 1, "its keys are gone too"
    assert await found(store, ANN, "tea") == ["f1"]


async def test_what_was_not_referenced_for_long_is_pruned_of_every_owner(store: Store) -> None:
    for owner in (ANN, BEN):
        old = fact("old", "green tea", last_referenced_at=NOW - 1)
        await write(store, owner, old, fact("new", "xyzzy"), arc=arc("s0", "x", ended_at=NOW - 1))
        await write(store, owner, key="k", arc=arc("s1", "y"), held=(held("h1"),), at=NOW - 1)
    assert await store.memories.prune(before=NOW) == 6
    assert await store.memories.prune(before=NOW) == 0
    for owner in (ANN, BEN):
        assert await kept(store, owner) == ["new"]
        assert [one.session_id for one in await store.memories.arcs(owner)] == ["s1"]
        assert await found(store, owner, "tea") == []
        assert (await store.memories.everything(owner)).held == ()
