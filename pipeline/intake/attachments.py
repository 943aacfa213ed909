"""Take a message's attachments within a time limit, and say which of them an answer does not use."""

from __future__ import annotations

from pipeline.domain.attachments import NOT_SEEN, left_out_line, named_file, reasons_line
from pipeline.domain.clock import Clock
from pipeline.domain.errors import TurnFailed
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.history.attached_files import pictures_in
from pipeline.intake.written import asks_something
from pipeline.runtime.attachments import Attachments, Taken, Unstored
from pipeline.runtime.ports import UserWords
from pipeline.runtime.services import PipelineServices
from pipeline.runtime.settings import PipelineSettings

MAX_FILE_TOKENS = 4_000
"""The most of the documents of one message that the model is given at once; a tool reads the rest."""
_WINDOW_PARTS = 4
"""At most one of so many parts of the model's window is given to them."""
_TOO_SLOW = (
    "Fetching and reading the files took longer than {seconds} seconds and was given up. "
    "Please send them again, or fewer of them."
)


def takes(services: PipelineServices, message: InboundMessage | ApprovalReply) -> bool:
    """Whether the message has content besides words and a voice note, and the host can take it."""
    if services.attachments is None or not isinstance(message, InboundMessage):
        return False
    return message.has_other_content


async def take_in_time(
    attachments: Attachments | None,
    message: InboundMessage,
    settings: PipelineSettings,
    clock: Clock,
    unstored: dict[str, Unstored] | None,
) -> Taken | None:
    """As `Attachments.take`; None if there is nothing to take. Raises TurnFailed `timeout` after the time of
    a turn."""
    if attachments is None or not message.has_other_content:
        return None
    tokens = min(MAX_FILE_TOKENS, settings.context_tokens // _WINDOW_PARTS)
    try:
        async with clock.timeout(settings.turn_timeout_s):
            return await attachments.take(message, max_tokens=tokens, unstored=unstored)
    except TimeoutError:
        words = _TOO_SLOW.format(seconds=round(settings.turn_timeout_s))
        raise TurnFailed("timeout", words, recoverable=True) from None


def unused_line(
    message: InboundMessage | ApprovalReply,
    words: UserWords | None,
    settings: PipelineSettings,
    *,
    taken: bool,
) -> str:
    """A line for the person about what the answer does not use; empty if it uses everything. `taken` says
    whether the attachments were taken."""
    if not isinstance(message, InboundMessage):
        return ""
    if not taken:
        return left_out_line(message)
    if words is None:
        return ""
    unseen = () if settings.vision else pictures_in(words.files)
    cannot_see = reasons_line({NOT_SEEN: [named_file(file) for file in unseen]})
    return " ".join(part for part in (words.left_out, cannot_see) if part)


def has_content(message: InboundMessage, words: UserWords, settings: PipelineSettings) -> bool:
    """Whether there is anything to answer: words, a voice note, or a file that the model can use."""
    return asks_something(message) or any(file.kind != "image" or settings.vision for file in words.files)
