"""Words and payloads that come from further away than they look."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.slack.inbound import parse_event
from pipeline.domain.messages import InboundMessage
from tests.adapters.slack.harness import ME


def event(**fields: Any) -> dict[str, Any]:
    whole = {"type": "message", "channel": "D1", "channel_type": "im", "user": "U9", "ts": "1.2", **fields}
    return {"type": "event_callback", "event": whole}


@pytest.mark.parametrize("text", ["/new", "/stop", "/help"])
def test_a_forwarded_command_is_a_message(text: str) -> None:
    shared = [{"is_share": True, "text": text, "author_id": "U666"}]
    item = parse_event(event(text="", attachments=shared), ME, "main")
    assert isinstance(item, InboundMessage)
    assert (item.text, item.forwarded) == (text, True)


def test_a_file_with_the_words_of_a_command_is_not_lost() -> None:
    files = [{"id": "F1", "mimetype": "audio/mp4", "subtype": "slack_audio"}]
    item = parse_event(event(text="/help", files=files, subtype="file_share"), ME, "main")
    assert isinstance(item, InboundMessage)
    assert item.voice is not None
