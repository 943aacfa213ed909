"""The port to people who allow actions that the bot may not do by itself."""

from __future__ import annotations

from typing import Literal, Protocol

from pipeline.runtime.scope import TurnScope

ApprovalOutcome = Literal["allowed", "for_conversation", "refused", "expired", "too_many"]
"""A person's answer. `for_conversation` allows such actions in the whole conversation; `too_many`: the person
was not asked, because they were asked too often."""


class Approvals(Protocol):
    """Asks people to allow actions that the bot may not do by itself."""

    async def ask(
        self,
        scope: TurnScope,
        *,
        action_id: str,
        action_hash: str,
        tool_name: str,
        summary: str,
        reasoning: str,
        can_last: bool = False,
    ) -> ApprovalOutcome:
        """Ask only the turn's author to allow one action, and wait for the answer. `can_last` offers to allow
        such actions for the conversation.

        A second call with the same `action_id`, after a crash, continues the same question; an answer for
        another `action_hash` does not count. Raises StorageError if the question cannot be stored.
        """
        ...
