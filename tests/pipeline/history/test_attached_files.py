"""What the model is shown of files in a conversation: the newest pictures, and a line for the others."""

from __future__ import annotations

from pipeline.domain.chat import PICTURE_TOKENS, ChatMessage
from pipeline.domain.conversation import Conversation, PastTurn
from pipeline.domain.files import StoredFile
from pipeline.domain.messages import MediaKind
from pipeline.history.attached_files import (
    ATTACHED_FILE,
    ATTACHED_PICTURE,
    NEVER_SHOWN,
    NO_LONGER_SHOWN,
    asked_message,
    with_newest_pictures,
)


def file(number: int, kind: MediaKind = "image") -> StoredFile:
    return StoredFile(id=f"{number:064x}", kind=kind, mime="", size=1)


def turn(number: int, *files: StoredFile, attached: str = "") -> PastTurn:
    asked = asked_message(f"question {number}", files, attached)
    return PastTurn(id=number, messages=(asked, ChatMessage(role="assistant", content="answer")))


def shown(conversation: Conversation) -> list[int]:
    return [int(one.id, 16) for each in conversation.turns for one in each.messages[0].pictures]


def test_a_conversation_without_pictures_is_left_as_it_is() -> None:
    plain = Conversation(turns=(turn(1), turn(2, file(1, "file"), attached="text")))
    assert with_newest_pictures(plain, 4) is plain
    assert plain.turns[1].foreign == ATTACHED_FILE


def test_the_newest_pictures_stay_and_older_messages_say_that_theirs_are_gone() -> None:
    all_of_it = Conversation(turns=(turn(1, file(1)), turn(2, file(2), file(3)), turn(3), turn(4, file(4))))
    kept = with_newest_pictures(all_of_it, 3)
    assert shown(kept) == [2, 3, 4]
    assert kept.turns[0].messages[0].content == f"question 1\n{NO_LONGER_SHOWN}"
    assert shown(with_newest_pictures(all_of_it, 2)) == [4]
    assert shown(with_newest_pictures(all_of_it, 0)) == []


def test_pictures_count_in_the_budget_only_while_they_are_shown() -> None:
    all_of_it = Conversation(turns=(turn(1, file(1)), turn(2, file(2))))
    assert all_of_it.tokens > 2 * PICTURE_TOKENS
    assert PICTURE_TOKENS < with_newest_pictures(all_of_it, 1).tokens < 2 * PICTURE_TOKENS


def test_pictures_are_a_source_of_foreign_words_for_a_model_that_sees_them() -> None:
    conversation = Conversation(turns=(turn(1, file(1)), turn(2, file(2))))
    assert [one.foreign for one in with_newest_pictures(conversation, 1).turns] == [ATTACHED_PICTURE] * 2
    blind = with_newest_pictures(conversation, None)
    assert [one.foreign for one in blind.turns] == ["", ""]
    assert blind.turns[1].messages[0].content == f"question 2\n{NEVER_SHOWN}"
