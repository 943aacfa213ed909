"""Match a button press, or typed or spoken words, to an open question.

Considers only the open questions of the chat that the answer came from. The store decides whether a matched
answer counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from gateway.storage.codec import details_of
from gateway.storage.ports import Interaction
from pipeline.domain.messages import ApprovalReply, InboundMessage, button_handle

_LONGEST_ANSWER = 200
"""In characters; longer texts are messages, unless they are answers with a note."""
_NOTE_WITHIN = 24
"""Characters from the beginning, within which a colon may be the one before a note."""
_LONGEST_NOTE = 4_000
LONGEST_WORDS = 4_000
"""Characters of an answer in the person's own words; a longer text is a message."""
_NOTE_AFTER = re.compile(r"\s*(?:[:,;.!–—\n]|-\s)\s*")  # noqa: RUF001 - dashes are meant
"""What separates an option from the note behind it: a mark, so that a new message that begins with the same
word is none."""
_SPOKEN_ENDS = " .!?,;:…。！？"  # noqa: RUF001 - the full stops of other scripts are meant


def match_button(
    press: ApprovalReply, questions: Sequence[Interaction]
) -> ApprovalReply | Literal["unknown", "invalid_choice"]:
    """The press with the question's full id and the chosen option's text. `unknown` when no open question has
    that button, `invalid_choice` when the question has no such option."""
    for question in questions:
        if button_handle(question.id) == press.interaction_id:
            if press.option is None or not 0 <= press.option < len(question.options):
                return "invalid_choice"
            return replace(press, interaction_id=question.id, choice=question.options[press.option])
    return "unknown"


def match_text(message: InboundMessage, questions: Sequence[Interaction]) -> ApprovalReply | None:
    """The message as an answer: its words equal an option of a question that its author may answer, or are
    the option's number, from 1; where the question takes notes, a note may follow a colon or another mark.
    None when they match no option or several. Call it if `may_answer`."""
    words = message.text.strip().casefold()
    mine = [one for one in questions if one.options and message.author.id in one.allowed_users]
    meant = [
        (question, option, "")
        for question in mine
        for option in question.options
        if option.strip().casefold() == words
    ]
    meant = [one for one in meant if not lacks_words(one[0], one[1], "")]
    if not meant and len(mine) == 1:
        options = mine[0].options
        meant = [(mine[0], option, "") for number, option in enumerate(options, 1) if str(number) == words]
        meant = [one for one in meant if not lacks_words(one[0], one[1], "")]
    if not meant:
        meant = _with_note(message.text.strip(), mine)
    if len(meant) != 1:
        return None
    return _reply(message, *meant[0])


def _reply(message: InboundMessage, question: Interaction, choice: str, note: str = "") -> ApprovalReply:
    return ApprovalReply(
        message_id=message.message_id,
        native_id=message.native_id,
        thread=message.thread,
        author=message.author,
        received_at=message.received_at,
        interaction_id=question.id,
        choice=choice,
        note=note,
        private=message.private,
    )


def lacks_words(question: Interaction, choice: str, note: str) -> bool:
    """Whether the choice counts only with words behind it, and has none."""
    return not note.strip() and choice in details_of(question).worded


def _with_note(text: str, questions: Sequence[Interaction]) -> list[tuple[Interaction, str, str]]:
    """The questions that the text answers with a note: each with the option and the note."""
    found: list[tuple[Interaction, str, str]] = []
    for question in questions:
        for option in question.options if details_of(question).notes else ():
            if text[: len(option)].casefold() == option.casefold():
                mark = _NOTE_AFTER.match(text, len(option))
                if mark is not None and mark.end() < len(text):
                    found.append((question, option, text[mark.end() :]))
    return found


def match_words(message: InboundMessage, questions: Sequence[Interaction]) -> ApprovalReply | None:
    """The message as the answer to the newest question that any words of its author answer; None without one.
    Call it if `may_be_words`."""
    asked = [one for one in questions if one.asks == "words" and message.author.id in one.allowed_users]
    words = message.text.strip()
    if not asked or not words or len(words) > LONGEST_WORDS or message.if_named or message.may_decline:
        return None
    return _reply(message, asked[-1], words)


def may_be_words(message: InboundMessage) -> bool:
    """Whether the message can answer a question that takes any words: new, written by its author, only text,
    and no command."""
    if message.voice is not None or message.attachments or message.forwarded or message.edited:
        return False
    if message.unusable or message.passed_on:
        return False
    return not message.text.lstrip().startswith("/")


def match_speech(
    message: InboundMessage, words: str, questions: Sequence[Interaction]
) -> ApprovalReply | None:
    """As `match_text`, for a voice note with the transcript `words`, or for live speech. Ignores the full
    stop that transcribers add."""
    if message.forwarded or message.edited or len(words) > _LONGEST_NOTE:
        return None
    if message.voice is not None and message.text.strip():
        return None
    heard = match_text(replace(message, text=words.strip(_SPOKEN_ENDS)), questions)
    return heard or match_words(replace(message, text=words), questions)


def may_answer(message: InboundMessage, *, shows_choices: bool = False) -> bool:
    """Whether the message can be an answer: short, or with what may be a note, new, written by its author,
    and only text. Where the channel `shows_choices`, they are chosen there, and typed words are an answer
    only with a note."""
    if shows_choices and message.speech is None and ":" not in message.text[:_NOTE_WITHIN]:
        return False
    if message.voice is not None or message.attachments or message.forwarded or message.edited:
        return False
    if message.unusable or message.passed_on:
        return False
    return len(message.text) <= (_LONGEST_NOTE if _begins_briefly(message.text) else _LONGEST_ANSWER)


def _begins_briefly(text: str) -> bool:
    """Whether a mark follows a few words at the beginning of a text, as behind an option."""
    return _NOTE_AFTER.search(text, 0, _LONGEST_ANSWER) is not None
