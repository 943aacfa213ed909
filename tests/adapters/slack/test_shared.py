"""Shared messages with files, and messages whose files change: whose words they are, what is asked again."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.slack.inbound import parse_event
from tests.adapters.slack.harness import ME
from tests.adapters.slack.test_parsing import CLIP, TS, event, message


@pytest.mark.parametrize(
    ("payload", "text", "passed_on", "files", "forwarded"),
    [
        (event(text="", attachments=[{"is_share": True, "text": "", "files": [CLIP]}]), "", "", ["F1"], True),
        (
            event(text="for you", attachments=[{"is_share": True, "text": "hear", "files": [CLIP]}]),
            "for you\n\nhear",
            "",
            ["F1"],
            True,
        ),
        (
            event(text="", files=[CLIP], attachments=[{"is_share": True, "text": "old words"}]),
            "",
            "old words",
            ["F1"],
            False,
        ),
        (event(text="", attachments=[{"is_share": True, "files": [{"id": "F7"}]}]), "", "", ["F7"], True),
        (
            event(text="what?", attachments=[{"is_share": True, "files": [{"id": "F7"}]}]),
            "what?",
            "",
            ["F7"],
            False,
        ),
    ],
)
def test_the_clip_of_a_shared_message_is_another_persons_with_the_words_at_it(
    payload: dict[str, Any], text: str, passed_on: str, files: list[str], forwarded: bool
) -> None:
    item = message(payload)
    found = [ref.handle for ref in (item.voice, *item.attachments) if ref is not None]
    assert (item.text, item.passed_on, found, item.forwarded) == (text, passed_on, files, forwarded)


def with_files(*after: dict[str, Any], edited: str = "", earlier: str = "") -> dict[str, Any]:
    """What Slack sends when a message with the files F1 and F2 has those of `after`."""
    base = {"user": "U1", "ts": TS, "text": "hi", "subtype": "file_share"}
    times = [{"edited": {"user": "U1", "ts": one}} if one else {} for one in (edited, earlier)]
    message = {**base, "files": list(after), **times[0]}
    previous = {**base, "files": [{"id": "F1"}, {"id": "F2"}], **times[1]}
    common: dict[str, Any] = {"user": None, "text": None, "ts": "1700000020.000000"}
    return event(subtype="message_changed", message=message, previous_message=previous, **common)


EDITED = "1700000009.000000"
GONE = {"id": "F2", "mode": "tombstone"}


@pytest.mark.parametrize(
    ("payload", "files", "at"),
    [
        (with_files({"id": "F1"}, edited=EDITED), ["F1"], EDITED),
        (with_files({"id": "F1"}, {"id": "F2"}, {"id": "F3"}, edited=EDITED), ["F1", "F2", "F3"], EDITED),
        (with_files({"id": "F1"}, GONE), ["F1"], "1700000020.000000"),
        (with_files({"id": "F1"}, GONE, edited=EDITED, earlier=EDITED), ["F1"], "1700000020.000000"),
    ],
)
def test_a_message_with_other_files_is_an_edited_message(
    payload: dict[str, Any], files: list[str], at: str
) -> None:
    item = message(payload)
    assert [ref.handle for ref in item.attachments] == files
    assert (item.text, item.edited, item.native_id) == ("hi", True, f"D1:{TS}:e{at}")


def test_a_message_with_the_same_files_is_none_of_ours() -> None:
    same = with_files({"id": "F2"}, {"id": "F1", "thumb_64": "x"}, edited=EDITED, earlier=EDITED)
    assert parse_event(same, ME, "main") is None
