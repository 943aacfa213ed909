"""What supports a held candidate, and which rules are implied often enough."""

from __future__ import annotations

import pytest

from pipeline.memory.candidates import Held
from pipeline.memory.sessions.ended import SessionTurn
from pipeline.memory.sessions.fact_support import Supported, arc_score, supported, topic_of
from pipeline.memory.sessions.rule_clusters import clusters, consolidated
from pipeline.memory.values import EntityRef, Rule, SessionArc
from tests.pipeline.memory.candidates import fact, held, rule

WORK = fact("my work at the harbour wears me out", object=EntityRef("Concern", "harbour"))


def _arc(summary: str, session_id: str = "s1") -> SessionArc:
    return SessionArc(
        session_id=session_id,
        started_at=0.0,
        ended_at=1.0,
        turn_count=3,
        primary_themes=(),
        summary=summary,
    )


def _of(
    *texts: str,
    waiting: tuple[Held, ...] = (),
    arc: SessionArc | None = None,
    before: tuple[SessionArc, ...] = (),
) -> Supported:
    turns = [SessionTurn(text=text) for text in texts]
    (only,) = supported(waiting or (held(WORK),), turns, arc, before)
    return only


def test_a_turn_supports_by_the_object_or_by_two_words_in_common() -> None:
    assert _of(WORK.evidence_quote, "the harbour again").support == 2
    assert _of(WORK.evidence_quote, "it wears me out, all this work").support == 2
    assert _of(WORK.evidence_quote, "my work is fine").support == 1
    assert _of(WORK.evidence_quote, "harbours and networks").support == 1


def test_a_quotation_supports_nothing() -> None:
    assert _of(WORK.evidence_quote, 'she wrote "the harbour is closed today" to me').support == 1


def test_a_short_object_is_not_found_inside_other_words() -> None:
    work = fact("work is hard", object=EntityRef("Concern", "work"))
    assert _of("work is hard", "the network is down", "homework", waiting=(held(work),)).support == 1


def test_candidates_of_several_turns_support_each_other() -> None:
    again = fact("the harbour exhausts me", object=EntityRef("Concern", "Harbour"), turn_index=3)
    one = _of("x", waiting=(held(WORK), held(again)))
    assert (one.support, one.candidate) == (2, again)


@pytest.mark.parametrize(
    ("summary", "score"),
    [
        ("They talked about the sea.", 0),
        ("The harbour came up.", 2),
        ("Their work wears them out.", 1),
        ("Work at the harbour wears them out.", 4),
        ("The harbours came up.", 0),
    ],
)
def test_the_score_of_a_summary(summary: str, score: int) -> None:
    assert arc_score("harbour", topic_of([WORK]), summary) == score


@pytest.mark.parametrize(
    ("texts", "arc", "before", "enough"),
    [
        (("the harbour", "the harbour"), "", (), True),
        (("the harbour",), "", (), False),
        (("the harbour",), "The harbour came up.", (), True),
        (("the harbour",), "Their work wears them out.", (), False),
        (("the harbour",), "", ("The harbour came up.",), True),
        (("the harbour",), "", ("The weather came up.",), False),
        ((), "The harbour came up.", (), True),
    ],
)
def test_a_held_fact_needs_two_turns_or_a_summary(
    texts: tuple[str, ...], arc: str, before: tuple[str, ...], enough: bool
) -> None:
    arcs = tuple(_arc(summary, f"b{number}") for number, summary in enumerate(before))
    assert _of(*texts, arc=_arc(arc) if arc else None, before=arcs).is_enough is enough


@pytest.mark.parametrize(
    ("texts", "arc", "before", "enough"),
    [
        (("the harbour", "the harbour"), "", (), True),
        (("the harbour",), "The harbour came up, their work wears them out.", (), False),
        (("the harbour",), "", ("The harbour came up.",), True),
    ],
)
def test_what_needs_repetition_is_not_repeated_by_the_summary_of_the_same_session(
    texts: tuple[str, ...], arc: str, before: tuple[str, ...], enough: bool
) -> None:
    waiting = (held(WORK, "require_repetition"),)
    arcs = tuple(_arc(summary, f"b{number}") for number, summary in enumerate(before))
    assert _of(*texts, waiting=waiting, arc=_arc(arc) if arc else None, before=arcs).is_enough is enough


def _clustered(*said: tuple[int, str]) -> list[Rule | None]:
    waiting = [held(rule(text, turn=turn)) for turn, text in said]
    return [consolidated(group, 1_000.0) for group in clusters(waiting)]


def test_a_rule_is_made_of_what_was_implied_in_two_turns() -> None:
    (made,) = _clustered((0, "long texts tire me"), (4, "long texts tire my eyes"))
    assert made is not None
    assert (made.text, made.source, made.confidence) == ("long texts tire my eyes", "consolidation", "medium")
    assert made.evidence == ("long texts tire my eyes", "long texts tire me")


def test_three_turns_make_it_certain_and_three_quotes_are_kept() -> None:
    (made,) = _clustered(*((turn, f"long texts tire me {turn}") for turn in range(5)))
    assert made is not None
    assert made.confidence == "high"
    assert len(made.evidence) == 3


def test_one_turn_is_not_enough_however_often_it_says_so() -> None:
    assert _clustered((2, "long texts tire me"), (2, "long texts really tire me")) == [None]
    assert _clustered((0, "long texts tire me"), (1, "I like the sea")) == [None, None]
