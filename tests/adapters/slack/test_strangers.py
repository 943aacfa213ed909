"""Words and payloads that come from further away than they look."""

from __future__ import annotations

from typing import Any

import pytest

from adapters.channel import Acceptance
from adapters.slack.inbound import parse_event
from pipeline.domain.messages import InboundMessage
from tests.adapters.slack.harness import ME, ask, running
from tests.support.platforms.slack import FakeSlack

OTHER = "T0OTHER"


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


async def test_a_socket_brings_nothing_in_from_another_workspace() -> None:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        mine = slack.workspace.event(event(channel="D1", text="mine")["event"])
        theirs = slack.workspace.event(event(channel="D2", ts="1.3", text="theirs")["event"])
        theirs |= {"team_id": OTHER, "authorizations": [{"team_id": OTHER}]}
        shared = slack.workspace.event(event(channel="C3", ts="1.4", text="shared")["event"])
        shared |= {"team_id": OTHER}
        for payload in (theirs, shared, mine):
            slack.delivery.offer("events_api", payload)
        await live.heard_all()
        assert sorted(live.inbox.texts()) == ["mine", "shared"]


async def test_words_for_the_presser_alone_show_no_preview_of_their_links() -> None:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        ann = slack.person("ann")
        place = slack.private_chat(ann)
        live.inbox.verdict = Acceptance(
            status="refused", message_id="m_1", reason="see https://evil.example/?d=1"
        )
        await slack.press(place, ann, await ask(live, place.chat), "No")
        await live.until(lambda: any(call.method == "response_url" for call in slack.calls))
        reported = next(call.payload for call in slack.calls if call.method == "response_url")
        assert (reported.get("unfurl_links"), reported.get("unfurl_media")) == (False, False)
