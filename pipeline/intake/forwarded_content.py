"""Find the text in a prompt that other people wrote: forwarded messages, quotes in rooms, tool results."""

from __future__ import annotations

from pipeline.domain.conversation import FORWARDED, Conversation, is_forwarded
from pipeline.domain.hosts import named_hosts
from pipeline.history.attached_files import without_files
from pipeline.intake.quotes import own_words, quotes
from pipeline.runtime.scope import TurnScope

_QUOTED = "a quoted message"


def note_foreign(scope: TurnScope, text: str) -> None:
    """Note in `scope.foreign` the kinds of foreign text in the message's `text`.

    A quote in a private chat is from that chat; in a room any author may have written it.
    """
    if is_forwarded(text):
        scope.foreign.note(FORWARDED)
    if not scope.private and quotes(text):
        scope.foreign.note(_QUOTED)


def note_foreign_history(scope: TurnScope, conversation: Conversation) -> None:
    """As `note_foreign`, for the messages of `conversation`."""
    if conversation.summary is not None:
        scope.foreign.note(conversation.summary.foreign)
    for source in conversation.foreign:
        scope.foreign.note(source)
    if not scope.private and any(quotes(turn.messages[0].content) for turn in conversation.turns):
        scope.foreign.note(_QUOTED)


def hosts_named(scope: TurnScope, conversation: Conversation, text: str) -> frozenset[str]:
    """The hosts, in lower case and without `www.`, that the author of a message has named themselves: in
    `text`, and in a private chat in the earlier messages."""
    asked = [without_files(turn.messages[0].content) for turn in conversation.turns] if scope.private else []
    own = [own_words(words) for words in (*asked, text) if not is_forwarded(words)]
    return frozenset(found.host.removeprefix("www.") for words in own for found in named_hosts(words))
