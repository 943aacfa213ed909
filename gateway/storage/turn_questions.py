"""Collect the questions of a running turn, and those it pauses for, for the record that ends the turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from gateway.storage.ports import Interaction
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, PipelineEvent
from pipeline.domain.timeline import AskedQuestion, question_to_plain

_KEY = "questions"
_PAUSED_FOR = "paused_for"


class TurnQuestions:
    """Records the questions among the events of one turn.

    It records them as people see them. It excludes a paused run's question, which the store lists and which
    is asked after the record is written, and a question answered before the process restarted: only its
    answer is sent again.
    """

    def __init__(self) -> None:
        self._asked: dict[str, AskedQuestion] = {}

    def note(self, event: PipelineEvent) -> None:
        """Record a question or its answer; other events are ignored."""
        if isinstance(event, ApprovalRequired) and not event.paused:
            self._asked[event.interaction_id] = AskedQuestion(
                interaction_id=event.interaction_id,
                tool_name=event.tool_name,
                reasoning=event.reasoning,
                options=event.options,
            )
        elif isinstance(event, ApprovalResolved) and event.interaction_id in self._asked:
            asked = self._asked[event.interaction_id]
            self._asked[event.interaction_id] = replace(asked, choice=event.choice)

    def body(self) -> dict[str, Any]:
        """The part of a record's body that holds the questions; empty without any."""
        return {_KEY: [question_to_plain(one) for one in self._asked.values()]} if self._asked else {}


def questions_of(body: Mapping[str, Any]) -> tuple[AskedQuestion, ...]:
    """The questions that `TurnQuestions.body` put into a record's body, oldest first."""
    plain: Iterable[Mapping[str, Any]] = body.get(_KEY, ())
    return tuple(AskedQuestion(**{**one, "options": tuple(one["options"])}) for one in plain)


def paused_for(questions: Iterable[Interaction]) -> dict[str, Any]:
    """The part of a record's body that lists the questions for which its turn pauses; empty without any."""
    ids = [question.id for question in questions]
    return {_PAUSED_FOR: ids} if ids else {}


def paused_for_of(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the interactions that `paused_for` named in a record's body."""
    return tuple(body.get(_PAUSED_FOR, ()))
