"""Take the words of a voice note, or of a message that a gate has passed, as the answer to an open question.
The journal then ends the turn."""

from __future__ import annotations

from gateway.interactions.answer_matching import match_speech, match_text, match_words
from gateway.storage.codec import GATE, resume_entry_once
from gateway.storage.ports import InboxEntry, Store
from pipeline.domain.messages import InboundMessage


async def answer_question(store: Store, entry: InboxEntry, words: str, *, now: float) -> bool:
    """Answer the question that `words`, those of the message `entry`, match; False if there is none."""
    questions = await store.pending_interactions(entry.thread, now=now)
    open_gates = [question for question in questions if question.kind == GATE]
    if not open_gates or not isinstance(entry.item, InboundMessage):
        return False
    spoken = entry.item.voice is not None or entry.item.speech is not None
    if spoken:
        answer = match_speech(entry.item, words, open_gates)
    else:
        answer = match_text(entry.item, open_gates) or match_words(entry.item, open_gates)
    if answer is None:
        return False
    asked = next(gate for gate in open_gates if gate.id == answer.interaction_id)
    status = await store.answer_interaction(
        answer.interaction_id,
        thread=entry.thread,
        user=answer.author.id,
        choice=answer.choice,
        now=now,
        entry=resume_entry_once(answer, asked),
    )
    return status == "accepted"


async def has_answered_question(store: Store, entry: InboxEntry) -> bool:
    """Whether an earlier attempt took the message `entry` as an answer. Its words would become a separate
    message otherwise."""
    if entry.attempts == 0:
        return False
    # The answer's entry came later, so it waits after this one; it has the id of the message.
    waiting = await store.open_entries(entry.thread)
    return any(one.kind == "approval" and one.message_id == entry.message_id for one in waiting)
