"""Downloads: the token goes to the platform's own hosts only, and what comes back is bounded and checked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from adapters.slack.adapter import SlackAdapter
from adapters.slack.calls import Calls
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import MediaRef
from tests.adapters.slack.harness import settings_for
from tests.support.platforms.slack import FakeSlack


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as slack:
        yield slack


@pytest.fixture
async def trap() -> AsyncIterator[tuple[str, list[str]]]:
    """Somebody else's server, and the Authorization headers that it was given."""
    given: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        given.append(request.headers.get("Authorization", ""))
        return web.Response(body=b"trap")

    app = web.Application()
    app.router.add_get("/{any:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/file", given
    await runner.cleanup()


async def shared(slack: FakeSlack, content: bytes = b"sound", **fields: Any) -> MediaRef:
    ann = slack.person("ann")
    await slack.share(slack.private_chat(ann), ann, content, mime="audio/mp4", **fields)
    return MediaRef(channel="slack", handle=slack.workspace.messages[-1].files[0]["id"])


async def refused(slack: FakeSlack, ref: MediaRef, *, max_bytes: int = 1000) -> str:
    return str(await refusal(slack, ref, max_bytes=max_bytes))


async def refusal(slack: FakeSlack, ref: MediaRef, *, max_bytes: int = 1000) -> MediaUnavailable:
    adapter = SlackAdapter(settings_for(slack), SystemClock())
    with pytest.raises(MediaUnavailable) as raised:
        await adapter.download(ref, max_bytes=max_bytes)
    assert slack.bot_token not in str(raised.value) + raised.value.detail
    return raised.value


async def test_the_bytes_come_with_the_token(slack: FakeSlack) -> None:
    adapter = SlackAdapter(settings_for(slack), SystemClock())
    assert await adapter.download(await shared(slack), max_bytes=5) == b"sound"


async def test_a_foreign_host_gets_no_token(slack: FakeSlack, trap: tuple[str, list[str]]) -> None:
    url, given = trap
    assert "host" in await refused(slack, await shared(slack, url_private=url, url_private_download=url))
    assert given == []


async def test_a_redirect_is_not_followed(slack: FakeSlack, trap: tuple[str, list[str]]) -> None:
    url, given = trap
    slack.web.redirect_files_to = url
    assert "302" in await refused(slack, await shared(slack))
    assert given == []


async def test_the_login_page_names_the_missing_scope_to_the_operator(slack: FakeSlack) -> None:
    slack.web.file_token = "another"
    error = await refusal(slack, await shared(slack))
    assert str(error) == "Slack does not give the file out."
    assert "files:read" in error.detail


async def test_the_size_is_checked_before_and_while_reading(slack: FakeSlack) -> None:
    before = len(slack.calls)
    assert "larger" in await refused(slack, await shared(slack, b"x" * 1001))
    assert [call.method for call in slack.calls[before:]] == ["files.info"]
    assert "larger" in await refused(slack, await shared(slack, b"x" * 200_000, size=5))


@pytest.mark.parametrize("handle", ["F404", "../etc/passwd", "https://files.slack.com/x", ""])
async def test_what_is_no_file_is_unavailable(slack: FakeSlack, handle: str) -> None:
    assert await refused(slack, MediaRef(channel="slack", handle=handle))


async def test_another_channels_file_is_not_ours(slack: FakeSlack) -> None:
    assert await refused(slack, MediaRef(channel="web", handle="F1"))


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("https://files.slack.com/files-pri/T1-F1/x", True),
        ("https://hooks.slack.com/actions/T1/1/x", True),
        ("https://slack.com/x", True),
        ("http://files.slack.com/x", False),
        ("https://files.slack.com:8443/x", False),
        ("https://files.slack.com.evil.example/x", False),
        ("https://evilslack.com/x", False),
        ("https://files.slack.com@evil.example/x", False),
        ("https://user:pass@files.slack.com/x", False),
        ("https://evil.example/files.slack.com", False),
        ("file:///etc/passwd", False),
        ("https://[bad", False),
        ("", False),
    ],
)
async def test_which_hosts_are_the_platforms(slack: FakeSlack, url: str, ours: bool) -> None:
    assert Calls(settings_for(slack), SystemClock()).ours(url) is ours
