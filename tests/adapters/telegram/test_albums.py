"""Edits of albums: Telegram reports one picture, and the message has all of them."""

from __future__ import annotations

import pytest

from adapters.telegram.inbound import parse_update
from adapters.telegram.media_groups import Albums, Update
from pipeline.domain.messages import InboundMessage
from tests.adapters.telegram.payloads import CONTEXT, message


def part(number: int, caption: str = "", *, kind: str = "message", photo: str = "", at: int = 0) -> Update:
    """One picture of the album 77."""
    pictures = [{"file_id": photo or f"photo{number}", "width": 90, "height": 60}]
    fields = {"text": None, "media_group_id": "77", "photo": pictures, "caption": caption or None}
    return {**message(kind, message_id=number, **fields), "update_id": at or 100 + number}


def taken(albums: Albums, *updates: Update) -> InboundMessage:
    items = [item for update in updates if (item := parse_update(update, CONTEXT)) is not None]
    (item,) = albums.together(updates, items)
    assert isinstance(item, InboundMessage)
    return item


@pytest.mark.parametrize("edited", [1, 2, 3])
def test_an_edit_of_one_picture_is_an_edit_of_the_whole_album(edited: int) -> None:
    albums = Albums()
    before = taken(albums, part(1, "the trip"), part(2), part(3))
    words = "the tour" if edited == 1 else ""
    edit = part(edited, words, kind="edited_message", photo="another", at=200)
    after = taken(albums, edit)
    handles = [ref.handle for ref in after.attachments]
    assert handles == ["another" if number == edited else f"photo{number}" for number in (1, 2, 3)]
    assert after.text == (words or "the trip")
    assert (after.place, after.reply_handle, after.edited) == (before.place, before.reply_handle, True)
    assert after.native_id == "u200" != before.native_id
    again = taken(albums, part(2, kind="edited_message", photo="more", at=201))
    assert [ref.handle for ref in again.attachments][1] == "more"
    assert ("another" in str(again.attachments)) is (edited != 2)


def test_an_edit_of_an_album_that_is_not_known_has_its_own_picture() -> None:
    albums = Albums()
    after = taken(albums, part(2, "what?", kind="edited_message"))
    assert (after.text, after.place, len(after.attachments)) == ("what?", "2", 1)
    taken(albums, part(4), part(5))
    assert len(taken(albums, part(2, "what?", kind="edited_message", at=300)).attachments) == 1
