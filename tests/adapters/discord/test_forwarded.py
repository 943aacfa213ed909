"""Forwarded voice messages: whose words they are."""

from __future__ import annotations

import pytest

from tests.adapters.discord.payloads import attachment, message
from tests.adapters.discord.test_parsing import heard


@pytest.mark.parametrize(("own", "theirs", "text"), [("", "", ""), ("for you", "hear", "for you\n\nhear")])
def test_a_forwarded_voice_message_is_another_persons_with_all_words_at_it(
    own: str, theirs: str, text: str
) -> None:
    note = attachment("audio/ogg", filename="voice-message.ogg", duration_secs=2.5, waveform="AAAA")
    snapshot = {"content": theirs, "flags": 8192, "attachments": [note]}
    reference = {"message_reference": {"type": 1, "message_id": "7"}, "flags": 1 << 14}
    item = heard(message(own, **reference, message_snapshots=[{"message": snapshot}]))

    assert item.voice is not None
    assert (item.text, item.passed_on, item.forwarded) == (text, "", True)
