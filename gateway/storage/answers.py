"""The rule by which an answer to a pending interaction counts, the same in every store."""

from __future__ import annotations

from gateway.storage.ports import AnswerStatus, Interaction


def judge_answer(
    interaction: Interaction | None, *, answered: bool, thread: str, user: str, choice: str, now: float
) -> AnswerStatus:
    """What becomes of the answer. `interaction` is None when the store knows no such id.

    An interaction of another thread counts as unknown: an id alone opens nothing.
    """
    if interaction is None or interaction.thread != thread:
        return "unknown"
    if answered:
        return "already_answered"
    if now >= interaction.expires_at:
        return "expired"
    if user not in interaction.allowed_users:
        return "not_allowed"
    if choice not in interaction.options:
        return "invalid_choice"
    return "accepted"
