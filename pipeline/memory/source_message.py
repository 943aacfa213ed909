"""From which message a fact, a rule or a candidate for one comes: its id is made of the message's."""

from __future__ import annotations

from pipeline.memory.candidates import FactCandidate, RuleCandidate
from pipeline.memory.extraction.facts import item_id
from pipeline.memory.values import Fact, Rule


def exercise_id(message_id: str) -> str:
    """The id of the fact that an exercise was completed in the turn of a message."""
    return item_id(message_id, "exercise")


def rests_on(item: Fact | Rule | FactCandidate | RuleCandidate, message_id: str) -> bool:
    """Whether the message said it."""
    if isinstance(item, Rule | RuleCandidate):
        return item.id == item_id(message_id, item.text)
    return item.id in (item_id(message_id, item.predicate, item.object.identifier), exercise_id(message_id))
