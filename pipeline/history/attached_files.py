"""What the model is shown of the files in a conversation: their notes and texts, and the newest pictures.

Not here: the bytes of pictures, which are loaded for each call of the model (`pipeline.agent.pictures`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipeline.domain.attachments import NOTE_BEGINS
from pipeline.domain.chat import ChatMessage
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.files import StoredFile

ATTACHED_FILE = "an attached file"
"""The source of the words in a document or recording, as `ChatMessage.foreign`."""
ATTACHED_PICTURE = "an attached picture"
"""The same for pictures, which can contain text."""
NO_LONGER_SHOWN = "[The picture is no longer shown to you.]"
NEVER_SHOWN = "[You cannot see pictures. The user knows that.]"


def asked_message(words: str, files: Iterable[StoredFile], attached: str) -> ChatMessage:
    """The user's message as a later turn shows it: cleaned `words`, what the model reads of the files, and
    the pictures."""
    kept = tuple(files)
    return ChatMessage(
        role="user",
        content="\n\n".join(part for part in (words, attached) if part),
        foreign=source_of(kept),
        pictures=pictures_in(kept),
    )


def without_files(content: str) -> str:
    """The author's words in a message that `asked_message` made: what is above the notes and texts."""
    return content.partition(NOTE_BEGINS)[0]


def pictures_in(files: Iterable[StoredFile]) -> tuple[StoredFile, ...]:
    """The pictures among `files`."""
    return tuple([file for file in files if file.kind == "image"])


def source_of(files: Iterable[StoredFile]) -> str:
    """The source of foreign words in the texts of `files`; empty if there are only pictures."""
    return ATTACHED_FILE if any(file.kind != "image" for file in files) else ""


def with_newest_pictures(conversation: Conversation, most: int | None) -> Conversation:
    """`conversation` with its newest `most` pictures, and a line for the others; None: the model sees no
    pictures. The same object where there are none."""
    if not conversation.pictures:
        return conversation
    left, turns = most or 0, list(conversation.turns)
    for index in range(len(turns) - 1, -1, -1):
        if count := turns[index].pictures:
            turns[index] = _with_pictures(turns[index], left, seen=most is not None)
            left = max(0, left - count)
    return replace(conversation, turns=tuple(turns))


def without_pictures(message: ChatMessage, line: str) -> ChatMessage:
    """`message` with `line` in place of its pictures."""
    content = f"{message.content}\n{line}" if message.content else line
    return replace(message, content=content, pictures=())


def _with_pictures(turn: PastTurn, most: int, *, seen: bool) -> PastTurn:
    asked, *others = turn.messages
    if seen and len(asked.pictures) <= most:
        return _noted(turn)
    shown = without_pictures(asked, NO_LONGER_SHOWN if seen else NEVER_SHOWN)
    if seen and not shown.foreign:
        # The answer to a picture may repeat words in it.
        shown = replace(shown, foreign=ATTACHED_PICTURE)
    return replace(turn, messages=(shown, *others), brief=None)


def _noted(turn: PastTurn) -> PastTurn:
    """The turn with its pictures marked as a source of foreign words."""
    asked, *others = turn.messages
    if asked.foreign:
        return turn
    return replace(turn, messages=(replace(asked, foreign=ATTACHED_PICTURE), *others), brief=None)
