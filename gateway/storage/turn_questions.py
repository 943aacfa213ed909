"""Collect the questions of a running turn, for the record that ends the turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.storage.log_records import questions_body
from pipeline.domain.events import ApprovalRequired, ApprovalResolved, PipelineEvent
from pipeline.domain.timeline import AskedQuestion


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
        return questions_body(tuple(self._asked.values())) if self._asked else {}
