"""Whatever is proposed and whatever a person writes: one decision, and nothing that was not said."""

from __future__ import annotations

import asyncio
import string
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from pipeline.memory.candidates import (
    Decision,
    Durability,
    Explicitness,
    FactCandidate,
    Judged,
    RuleCandidate,
    Scope,
    Sensitivity,
)
from pipeline.memory.extraction.facts import extract_facts
from pipeline.memory.extraction.rules import extract_rules
from pipeline.memory.policy.decisions import decide_fact, decide_rule
from pipeline.memory.policy.evidence import is_said
from pipeline.memory.policy.profile_rules import with_rules
from pipeline.memory.values import MAX_RULES, Category, EntityRef, EntityType, Predicate, Profile, Rule
from tests.pipeline.memory.candidates import CLOCK, REDACTOR, said
from tests.support.examples import examples

_PHRASES = (
    *(
        "I live in",
        "my name is",
        "Leeds",
        "I love",
        "my sister",
        "Ann",
        "I'm allergic to",
        "nuts",
        "remember that",
    ),
    *(
        "always",
        "never",
        "answer in German",
        "keep your answers short",
        "please",
        "today",
        "for now",
        "if",
        "and",
    ),
    *("don't save this", "call me", "Jo", "ich wohne in", "Köln", "j'aime", "vivo en", "Sevilla", "me llamo"),
    *('"', "“", "”", "> ", "\n", ".", ",", "?", ":", "```", "\u2019", "\0", "password", "I am a failure"),
)
_WORDS = st.one_of(st.sampled_from(_PHRASES), st.text(max_size=12))
_TEXTS = st.lists(_WORDS, max_size=14).map(" ".join)
_JUDGED = st.builds(
    Judged,
    explicitness=st.sampled_from(get_args(Explicitness)),
    durability=st.sampled_from(get_args(Durability)),
    sensitivity=st.sampled_from(get_args(Sensitivity)),
    scope=st.sampled_from(get_args(Scope)),
    recommendation=st.text(max_size=5),
)
_ENTITIES = st.builds(EntityRef, st.sampled_from(get_args(EntityType)), _TEXTS)
_FACTS = st.builds(
    FactCandidate,
    id=st.just("c"),
    category=st.sampled_from(get_args(Category)),
    subject=_ENTITIES,
    predicate=st.sampled_from(get_args(Predicate)),
    object=_ENTITIES,
    evidence_quote=_TEXTS,
    confidence=st.just("low"),
    judged=_JUDGED,
    session_id=st.just("s"),
    turn_index=st.just(0),
)
_RULES = st.builds(
    RuleCandidate,
    id=st.just("c"),
    text=_TEXTS,
    evidence_quote=_TEXTS,
    judged=_JUDGED,
    session_id=st.just("s"),
    turn_index=st.just(0),
)


@examples(75)
@given(_FACTS, _RULES)
def test_every_candidate_gets_one_decision_and_always_the_same(
    fact: FactCandidate, rule: RuleCandidate
) -> None:
    for decided, again in ((decide_fact(fact), decide_fact(fact)), (decide_rule(rule), decide_rule(rule))):
        assert decided == again
        assert decided.decision in get_args(Decision)
        assert decided.reason


@examples(75)
@given(_TEXTS)
def test_what_is_found_in_a_message_was_said_there(text: str) -> None:
    turn = said(text)
    facts = asyncio.run(extract_facts(turn, ask=None, clock=CLOCK, redactor=REDACTOR))
    rules = asyncio.run(extract_rules(turn, ask=None, clock=CLOCK, redactor=REDACTOR))
    quotes = [one.evidence_quote for one in facts.facts]
    quotes += [one.candidate.evidence_quote for one in (*facts.held, *rules.held)]
    quotes += [quote for one in rules.rules for quote in one.evidence]
    assert all(is_said(quote, text) for quote in quotes)
    counts = facts.diagnostics
    if not facts.reason.startswith("skipped"):
        decided = ("commit_now_candidates", "session_end_holds", "repeat_required", "policy_drops")
        assert counts["semantic_candidates"] == sum(counts[f"semantic_{name}"] for name in decided)


@examples(40)
@given(st.lists(st.text(alphabet=string.ascii_lowercase + " ", min_size=1, max_size=30), max_size=40))
def test_a_profile_never_has_too_many_rules_and_keeps_the_newest(texts: list[str]) -> None:
    rules = [
        Rule(
            id=str(number),
            text=text,
            source="manual",
            confidence="low",
            evidence=(),
            created_at=float(number),
        )
        for number, text in enumerate(texts)
    ]
    profile = with_rules(Profile(), rules)
    assert len(profile.rules) <= MAX_RULES
    assert with_rules(profile, rules[-1:]) is profile
    if rules:
        assert profile.rules[-1] == rules[-1]
    assert all(rule.superseded_by for rule in profile.archived_rules)
