"""Decide whether an answer to a pending interaction is accepted, by the same rule in every store."""

from __future__ import annotations

from gateway.storage.ports import AnswerStatus, Interaction
from pipeline.domain.events import EXPIRED


def judge_answer(
    interaction: Interaction | None,
    *,
    answered: str | None,
    thread: str,
    user: str,
    choice: str,
    now: float,
) -> AnswerStatus:
    """The status of the answer. `interaction` is None if the store has no such id, `answered` is the stored
    choice, if any: EXPIRED if the interaction was closed unanswered.

    An interaction of another thread counts as unknown: an id alone gives no access.
    """
    if interaction is None or interaction.thread != thread:
        return "unknown"
    if answered is not None and answered != EXPIRED:
        return "already_answered"
    if answered == EXPIRED or now >= interaction.expires_at:
        return "expired"
    if user not in interaction.allowed_users:
        return "not_allowed"
    if choice not in interaction.options and not (interaction.asks == "words" and choice):
        return "invalid_choice"
    return "accepted"
