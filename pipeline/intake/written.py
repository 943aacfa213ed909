"""The words of a message that was typed or said live, before any model sees it."""

from __future__ import annotations

from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.intake.cleaning import clean_text
from pipeline.intake.quotes import in_context, room_name, with_files
from pipeline.runtime.attachments import Taken
from pipeline.runtime.ports import UserWords


def written_words(message: InboundMessage | ApprovalReply, taken: Taken | None = None) -> UserWords | None:
    """The user's typed or live words; None for a voice note or an empty message. With attachments, what was
    `taken` of them belongs to the words."""
    if isinstance(message, ApprovalReply):
        said = f"{message.choice}: {message.note}" if message.note else message.choice
        return None if message.expired else UserWords(text=said)
    if message.voice is not None or not (asks_something(message) or message.has_other_content):
        return None
    text = in_context(message, message.text, taken)
    words = UserWords(text=text, speech=message.speech, by=room_name(message))
    return words if taken is None else with_files(words, taken)


def asks_something(message: InboundMessage) -> bool:
    """Whether the message has words to answer or a voice note to transcribe."""
    return message.voice is not None or bool(clean_text(message.text) or clean_text(message.passed_on))
