"""Rules are added to a profile, replace each other and make room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipeline.memory.policy.profile_rules import EVICTION, MAX_ARCHIVED_RULES, with_rules
from pipeline.memory.policy.rule_topics import replaces, topics
from pipeline.memory.values import MAX_RULES, Profile, Rule


def _rule(number: int, text: str, created_at: float = 0.0) -> Rule:
    return Rule(
        id=f"r{number}",
        text=text,
        source="explicit_user",
        confidence="high",
        evidence=(),
        created_at=created_at,
    )


def _texts(profile: Profile) -> list[str]:
    return [rule.text for rule in profile.rules]


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Answer in German.", "answer in german"),
        ("Answer in French.", "Always answer in German."),
        ("Write long answers.", "Keep your answers short."),
        ("Call me Jo.", "Call me Dr. Smith."),
        ("Use emojis.", "Don't use emojis."),
        ("Siez mich.", "Duz mich."),
        ("Always mention the weather.", "Never mention the weather."),
        ("Réponds en anglais.", "Réponds toujours en français."),
    ],
)
def test_a_rule_replaces_the_same_and_the_contrary(new: str, old: str) -> None:
    assert replaces(new, old)
    changed = with_rules(Profile(rules=(_rule(1, old),), revision=3), [_rule(2, new)])
    assert _texts(changed) == [new]
    assert [(rule.text, rule.superseded_by) for rule in changed.archived_rules] == [(old, "r2")]
    assert changed.revision == 3


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Answer in German.", "Keep your answers short."),
        ("Don't use emojis.", "Don't use bullet points."),
        ("Keep your answers short.", "Keep your answers short and in German."),
        ("Never mention my boss.", "Never mention the weather."),
    ],
)
def test_rules_about_different_things_stay_together(new: str, old: str) -> None:
    assert not replaces(new, old)
    assert _texts(with_rules(Profile(rules=(_rule(1, old),)), [_rule(2, new)])) == [old, new]


def test_a_rule_may_have_several_topics() -> None:
    assert topics("Short answers in German, without emojis") == {"length", "language", "emoji"}
    assert topics("Mention the weather") == frozenset()


def test_the_oldest_rule_makes_room_for_the_twenty_first() -> None:
    rules = tuple(_rule(number, f"Mention topic{number}.", 1_000.0 - number) for number in range(MAX_RULES))
    changed = with_rules(Profile(rules=rules), [_rule(99, "Mention the sea.", 2_000.0)])
    assert len(changed.rules) == MAX_RULES
    assert [(rule.id, rule.superseded_by) for rule in changed.archived_rules] == [
        (f"r{MAX_RULES - 1}", EVICTION)
    ]


def test_a_known_rule_is_not_added_again() -> None:
    profile = Profile(rules=(_rule(1, "Answer in German."),))
    assert with_rules(profile, [_rule(1, "Answer in German.")]) is profile
    changed = with_rules(profile, [_rule(2, "Answer in French.")])
    assert with_rules(changed, [_rule(1, "Answer in German.")]) is changed


def test_the_archive_has_a_limit() -> None:
    profile = Profile()
    for number in range(MAX_ARCHIVED_RULES + 5):
        profile = with_rules(profile, [_rule(number, f"Call me N{number}.")])
    assert len(profile.archived_rules) == MAX_ARCHIVED_RULES
    assert profile.archived_rules[-1].id == f"r{MAX_ARCHIVED_RULES + 3}"
    assert replace(profile, archived_rules=()).rules[0].text == f"Call me N{MAX_ARCHIVED_RULES + 4}."
