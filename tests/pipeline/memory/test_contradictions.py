"""Which known facts a new one replaces."""

from __future__ import annotations

from pipeline.memory.extraction.facts import fact_of
from pipeline.memory.policy.contradictions import says_the_same, superseded
from pipeline.memory.values import EntityRef, Fact
from tests.pipeline.memory.candidates import fact


def _fact(fact_id: str, about: str, quote: str = "I said so") -> Fact:
    return fact_of(fact(quote, id=fact_id, object=EntityRef("User", about)), "test", 1_000.0)


def test_a_new_home_replaces_the_old_one_and_no_other_fact() -> None:
    known = [_fact("home", "home: Rome"), _fact("name", "name: Ann"), _fact("tea", "likes: tea")]
    assert superseded([_fact("new", "home: Oslo", "I moved to Oslo")], known) == (("home", "new"),)


def test_a_liking_replaces_the_contrary() -> None:
    assert superseded([_fact("new", "dislikes: Tea", "I hate tea now")], [_fact("tea", "likes: tea")]) == (
        ("tea", "new"),
    )
    assert superseded([_fact("new", "dislikes: coffee")], [_fact("tea", "likes: tea")]) == ()


def test_the_same_statement_on_other_evidence_replaces_the_old_one() -> None:
    old, new = _fact("old", "likes: tea", "tea is my thing"), _fact("new", "likes: tea", "I really love tea")
    assert superseded([new], [old]) == (("old", "new"),)


def test_the_same_statement_on_the_same_evidence_replaces_nothing() -> None:
    old, new = _fact("old", "likes: tea", "I love tea"), _fact("new", "likes: tea", "i LOVE tea!")
    assert says_the_same(old, new)
    assert superseded([new], [old]) == ()


def test_a_fact_does_not_replace_itself() -> None:
    assert superseded([_fact("one", "home: Rome", "now")], [_fact("one", "home: Oslo", "then")]) == ()
