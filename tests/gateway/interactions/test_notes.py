"""An answer may have a note behind the word, where the question takes one, and a new message is no answer."""

from __future__ import annotations

import pytest

from gateway.interactions.answer_matching import match_speech, match_text, may_answer
from gateway.storage.inbox_items import item_of, to_body
from gateway.storage.ports import Interaction
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, InboundMessage

THREAD = ThreadKey(channel="memory", account="main", chat="c1")


def _question(*, notes: bool = True, name: str = "g1") -> Interaction:
    return Interaction(
        id=name,
        thread=THREAD.encode(),
        session_id="s",
        kind="gate",
        options=("approve", "reject"),
        allowed_users=("ann",),
        action_hash="",
        created_at=0.0,
        expires_at=1.0,
        body={"notes": True} if notes else {},
    )


def _message(text: str) -> InboundMessage:
    return InboundMessage(
        message_id="m1", native_id="n1", thread=THREAD, author=Author(id="ann"), received_at=0.0, text=text
    )


@pytest.mark.parametrize(
    ("text", "choice", "note"),
    [
        ("Approve", "approve", ""),
        ("reject: too long", "reject", "too long"),
        ("Reject, too: long", "reject", "too: long"),
        ("reject\nToo long.\nReally.", "reject", "Too long.\nReally."),
        ("APPROVE - fine", "approve", "fine"),
        ("reject — no", "reject", "no"),
    ],
)
def test_a_note_follows_the_word_and_a_mark(text: str, choice: str, note: str) -> None:
    found = match_text(_message(text), [_question()])
    assert found is not None
    assert (found.choice, found.note) == (choice, note)


@pytest.mark.parametrize(
    "text", ["approve my account", "rejected: no", "reject:", "so reject: no", "approve-all"]
)
def test_a_message_that_only_begins_like_an_answer_is_none(text: str) -> None:
    assert match_text(_message(text), [_question()]) is None


def test_without_notes_or_with_two_questions_a_note_is_no_answer() -> None:
    assert match_text(_message("reject: no"), [_question(notes=False)]) is None
    assert match_text(_message("reject: no"), [_question(), _question(name="g2")]) is None


def test_a_spoken_note_counts_too() -> None:
    found = match_speech(_message("?"), "Reject. It is too long.", [_question()])
    assert found is not None
    assert (found.choice, found.note) == ("reject", "It is too long")


def test_where_choices_are_shown_typed_words_count_only_with_a_colon() -> None:
    assert not may_answer(_message("reject"), shows_choices=True)
    assert not may_answer(_message("Hello, there is a long text: this"), shows_choices=True)
    assert may_answer(_message("reject: no"), shows_choices=True)
    assert may_answer(_message("reject"))


@pytest.mark.parametrize(
    ("text", "holds"), [("x" * 201, False), (f"reject: {'x' * 300}", True), ("y: " + "x" * 4001, False)]
)
def test_a_note_may_be_longer_than_an_answer(text: str, *, holds: bool) -> None:
    assert may_answer(_message(text)) is holds


def test_a_note_and_who_answered_are_kept_in_the_inbox() -> None:
    reply = ApprovalReply(
        message_id="m1",
        native_id="n1",
        thread=THREAD,
        author=Author(id="ann"),
        received_at=0.0,
        interaction_id="g1",
        choice="reject",
        note="too long",
        by="boss",
    )
    body = to_body(reply)
    assert (body["note"], body["by"]) == ("too long", "boss")
    assert item_of("approval", THREAD.encode(), "m1", 0.0, body) == reply
