"""The fake Slack through the real SDK: what it lets through, what it refuses, how it delivers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from tests.support.platforms.platform import Fault
from tests.support.platforms.slack import FakeSlack


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as platform:
        yield platform


@pytest.fixture
def client(slack: FakeSlack) -> AsyncWebClient:
    return AsyncWebClient(token=slack.bot_token, base_url=f"{slack.base}/api/", retry_handlers=[])


def _dm(slack: FakeSlack) -> str:
    return slack.private_chat(slack.person("ann")).chat


def _sockets(slack: FakeSlack, client: AsyncWebClient, *, reconnects: bool = True) -> Any:
    """Untyped, as the SDK's methods are."""
    return SocketModeClient(app_token=slack.app_token, web_client=client, auto_reconnect_enabled=reconnects)


async def _error(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as raised:
        await call
    data = raised.value.response.data
    return str(data["error"]) if isinstance(data, dict) and "error" in data else "none"


async def test_a_wrong_token_is_invalid(slack: FakeSlack) -> None:
    stranger = AsyncWebClient(token="xoxb-wrong", base_url=f"{slack.base}/api/", retry_handlers=[])
    assert await _error(stranger.auth_test()) == "invalid_auth"


async def test_a_post_is_shown_edited_and_found_with_its_metadata(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    metadata = {"event_type": "parlour_reply", "event_payload": {"key": "k"}}
    place = slack.private_chat(slack.person("ann"))
    posted = await client.chat_postMessage(
        channel=place.chat, text="*hi* &lt;you&gt;", metadata=metadata, unfurl_links=False, unfurl_media=False
    )
    await client.chat_update(channel=place.chat, ts=posted["ts"], text="*bye*")
    history = await client.conversations_history(channel=place.chat, include_all_metadata=True)
    assert history["messages"][0]["metadata"] == metadata
    assert slack.bot_texts(place) == ["bye"]
    assert slack.visible(place)[0].edits == 1
    assert slack.workspace.unfurls == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"text": " "}, "no_text"),
        ({"text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        (
            {"text": "x", "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "y" * 3001}}]},
            "invalid_blocks",
        ),
        (
            {
                "text": "x",
                "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "y" * 2700}}] * 5,
            },
            "msg_blocks_too_long",
        ),
        ({"text": "x", "channel": "C404"}, "channel_not_found"),
    ],
)
async def test_what_the_platform_refuses(
    slack: FakeSlack, client: AsyncWebClient, fields: dict[str, object], error: str
) -> None:
    assert await _error(client.api_call("chat.postMessage", json={"channel": _dm(slack), **fields})) == error


async def test_a_mention_of_everybody_is_noticed_unless_escaped(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    await client.chat_postMessage(channel=_dm(slack), text="&lt;!channel&gt;")
    assert slack.workspace.mass_mentions == []
    await client.chat_postMessage(channel=_dm(slack), text="<!channel> look")
    assert slack.workspace.mass_mentions == ["<!channel>"]


async def test_the_sixth_post_of_a_moment_has_to_wait(slack: FakeSlack, client: AsyncWebClient) -> None:
    for _ in range(5):
        await client.chat_postMessage(channel=_dm(slack), text="x")
    with pytest.raises(SlackApiError) as raised:
        await client.chat_postMessage(channel=_dm(slack), text="x")
    assert raised.value.response.status_code == 429
    assert raised.value.response.headers["Retry-After"] == "1"


async def test_an_error_after_success_has_posted(slack: FakeSlack, client: AsyncWebClient) -> None:
    slack.faults.script.append(Fault(method="chat.postMessage", kind="error_after"))
    assert await _error(client.chat_postMessage(channel=_dm(slack), text="x")) == "none"
    assert slack.bot_texts(slack.private_chat(slack.person("ann"))) == ["x"]


async def test_a_stream_grows_and_cannot_be_edited_before_it_stops(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    place = slack.room("general", slack.person("ann"))
    first = await slack.say(place, slack.person("ann"), "hello")
    ts = first.partition(":")[2]
    refused = client.chat_startStream(channel=place.chat, thread_ts=ts)
    assert await _error(refused) == "missing_recipient_user_id"
    stream = await client.chat_startStream(
        channel=place.chat,
        thread_ts=ts,
        recipient_user_id="U1",
        recipient_team_id="T0PARLOUR",
        markdown_text="a",
    )
    await client.chat_appendStream(channel=place.chat, ts=stream["ts"], markdown_text="b")
    assert (
        await _error(client.chat_update(channel=place.chat, ts=stream["ts"], text="c"))
        == "streaming_state_conflict"
    )
    await client.chat_stopStream(channel=place.chat, ts=stream["ts"])
    assert slack.bot_texts(place) == ["ab"]


async def test_a_file_needs_the_token_and_shows_a_login_page_without(slack: FakeSlack) -> None:
    ann = slack.person("ann")
    await slack.speak(slack.private_chat(ann), ann, b"sound")
    url = slack.workspace.messages[0].files[0]["url_private_download"]
    async with aiohttp.ClientSession() as session:
        async with session.get(url) as answer:
            assert (answer.status, answer.content_type) == (200, "text/html")
        async with session.get(url, headers={"Authorization": f"Bearer {slack.bot_token}"}) as answer:
            assert await answer.read() == b"sound"


async def test_an_upload_becomes_a_message_with_a_file(slack: FakeSlack, client: AsyncWebClient) -> None:
    await client.files_upload_v2(channel=_dm(slack), content=b"# long", filename="answer.md", title="answer")
    shown = slack.visible(slack.private_chat(slack.person("ann")))
    assert [one.file_name for one in shown] == ["answer.md"]


async def test_over_a_socket_a_mention_comes_twice_and_what_is_not_acked_comes_again(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.delivery.ack_deadline_s = 0.05
    seen: list[tuple[str, int]] = []
    kinds: set[str] = set()

    async def hear(socket: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        seen.append((request.envelope_id, request.retry_attempt or 0))
        kinds.add(request.payload["event"]["type"])
        if request.retry_attempt:
            await socket.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))

    sockets = _sockets(slack, client)
    sockets.socket_mode_request_listeners.append(hear)
    await sockets.connect()
    ann = slack.person("ann")
    await slack.say(slack.room("general", ann), ann, "hello")
    await slack.until(lambda: slack.unacknowledged() == 0)
    assert kinds == {"message", "app_mention"}
    assert {retries for _, retries in seen} == {0, 1}
    await sockets.close()
    assert slack.delivery.given_up == []


async def test_an_event_that_no_one_acknowledges_is_given_up_after_three_retries(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    slack.delivery.ack_deadline_s = 0.02
    sockets = _sockets(slack, client)
    await sockets.connect()
    ann = slack.person("ann")
    await slack.say(slack.private_chat(ann), ann, "hello")
    await slack.until(lambda: slack.unacknowledged() == 0)
    assert [envelope.retries for envelope in slack.delivery.given_up] == [3]
    await sockets.close()


async def test_a_dropped_socket_gives_its_events_to_the_next(
    slack: FakeSlack, client: AsyncWebClient
) -> None:
    ann = slack.person("ann")
    deaf = _sockets(slack, client, reconnects=False)
    await deaf.connect()
    await slack.say(slack.private_chat(ann), ann, "hello")
    heard = asyncio.Event()

    async def hear(socket: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        await socket.send_socket_mode_response(SocketModeResponse(envelope_id=request.envelope_id))
        heard.set()

    slack.delivery.drop()
    await slack.until(lambda: not slack.delivery.sockets)
    sockets = _sockets(slack, client)
    sockets.socket_mode_request_listeners.append(hear)
    await sockets.connect()
    await heard.wait()
    await slack.until(lambda: slack.unacknowledged() == 0)
    assert slack.delivery.given_up == []
    await sockets.close()
    await deaf.close()
