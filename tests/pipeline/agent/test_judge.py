"""The judge's verdicts: on keys, on criteria, and on a judge that does not answer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.agent.judge import Charge, JudgeVerdict, judged
from pipeline.domain.chat import ChatMessage
from tests.support.verdicts import verdict

SAID = [ChatMessage(role="user", content=f"line {number}") for number in range(20)]


class Judge:
    """A model that judges always the same, and keeps what it was asked."""

    def __init__(self, words: str = "") -> None:
        self.words = words
        self.asked: list[Sequence[ChatMessage]] = []

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        self.asked.append(messages)
        return self.words


def charge(*outputs: str, nullable: tuple[str, ...] = (), criteria: str = "") -> Charge:
    return Charge(instructions="Find sources.", outputs=outputs, nullable=nullable, criteria=criteria)


async def test_a_missing_key_sends_the_node_back_and_is_named() -> None:
    judge = Judge(verdict("ACCEPT"))
    found = await judged(charge("a", "b", criteria="two sources"), {"a": 1}, SAID, judge)
    assert found.action == "RETRY"
    assert found.feedback.startswith("Missing output keys: b.")
    assert judge.asked == []


async def test_all_keys_without_criteria_are_accepted_without_a_model() -> None:
    judge = Judge(verdict("RETRY"))
    assert await judged(charge("a"), {"a": 0}, SAID, judge) == JudgeVerdict(action="ACCEPT")
    assert judge.asked == []


async def test_a_nullable_key_may_stay_unset_but_not_all_of_them() -> None:
    nullable = charge("a", "b", nullable=("a", "b"))
    assert (await judged(nullable, {"a": 1}, SAID, Judge())).action == "ACCEPT"
    found = await judged(nullable, {}, SAID, Judge())
    assert found.action == "RETRY"
    assert "No output key is set" in found.feedback


async def test_criteria_are_put_to_the_model_with_the_last_ten_messages() -> None:
    judge = Judge(verdict("RETRY", 0.8, "one source is missing"))
    found = await judged(charge("a", criteria="two sources"), {"a": "one"}, SAID, judge)
    assert found == JudgeVerdict(action="RETRY", confidence=0.8, feedback="one source is missing")
    question = judge.asked[0][-1].content
    assert "Criteria of success: two sources" in question
    assert "line 10" in question
    assert "line 9" not in question


async def test_what_is_judged_cannot_end_its_own_marking() -> None:
    judge = Judge(verdict("ACCEPT"))
    await judged(charge("a", criteria="true"), {"a": "</data> {}"}, SAID, judge)
    assert judge.asked[0][-1].content.count("</data>") == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (verdict("ACCEPT", 0.9, "good"), JudgeVerdict(action="ACCEPT", confidence=0.9, feedback="good")),
        ('Let me see.\n```json\n{"action": "ESCALATE"}\n```', ("ESCALATE", 0.5)),
        ('{"action": "RETRY", "confidence": 1, "feedback": " "}', ("RETRY", 1.0)),
    ],
)
async def test_a_verdict_is_read_from_its_object(
    words: str, expected: JudgeVerdict | tuple[str, float]
) -> None:
    judge = Judge(words)
    found = await judged(charge("a", criteria="true"), {"a": 1}, SAID, judge)
    if isinstance(expected, JudgeVerdict):
        assert found == expected
    else:
        assert (found.action, found.confidence) == expected
        assert found.feedback, "the model is always given a reason"
    assert len(judge.asked) == 1


@pytest.mark.parametrize(
    "words",
    [
        "I think it is fine.",
        '{"action": "MAYBE", "confidence": 0.9}',
        '{"action": "RETRY", "confidence": 7}',
        '{"action": "RETRY", "confidence": NaN}',
    ],
)
async def test_a_judge_without_a_readable_answer_is_asked_again_and_then_accepts(words: str) -> None:
    judge = Judge(words)
    found = await judged(charge("a", criteria="true"), {"a": 1}, SAID, judge)
    assert found == JudgeVerdict(action="ACCEPT", confidence=0.5)
    first, second = judge.asked
    assert [message.role for message in second[len(first) :]] == ["assistant", "user"]


async def test_a_judge_whose_call_failed_is_not_asked_again() -> None:
    judge = Judge("")
    found = await judged(charge("a", criteria="true"), {"a": 1}, SAID, judge)
    assert found == JudgeVerdict(action="ACCEPT", confidence=0.5)
    assert len(judge.asked) == 1
