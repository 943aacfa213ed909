"""The life of sockets: refreshed without a gap, replaced when dropped or silent, closed without a trace."""

from __future__ import annotations

import asyncio
import logging

import pytest

from adapters.slack.adapter import SlackAdapter
from adapters.slack.socket import SocketLost
from pipeline.domain.clock import SystemClock
from pipeline.domain.errors import ConfigurationError
from tests.adapters.slack.harness import Inbox, running, settings_for
from tests.support.platforms.slack import FakeSlack


async def test_during_a_refresh_everything_arrives_once_and_a_socket_is_always_open() -> None:
    async with FakeSlack() as slack, running(slack) as live:
        ann = slack.person("ann")
        place = slack.private_chat(ann)
        for number in range(60):
            await slack.say(place, ann, f"message {number}")
            if number == 30:
                # A refresh is for the socket that has taken the place of the first.
                await live.until(lambda: slack.delivery.opened == 2 and len(slack.delivery.sockets) == 1)
            if number in (10, 30):
                await slack.delivery.refresh()
            await asyncio.sleep(0)
        await live.heard_all()
        await live.until(lambda: slack.delivery.opened == 3 and len(slack.delivery.sockets) == 1)
        assert sorted(live.inbox.texts()) == sorted(f"message {number}" for number in range(60))
        assert slack.delivery.gaps == 0
        assert slack.delivery.given_up == []
        assert live.adapter.health().state == "up"


async def test_a_dropped_socket_is_replaced_at_once_and_nothing_is_lost() -> None:
    async with FakeSlack() as slack, running(slack) as live:
        ann = slack.person("ann")
        place = slack.private_chat(ann)
        for number in range(30):
            await slack.say(place, ann, f"message {number}")
            if number % 10 == 5:
                slack.delivery.drop()
                await live.until(lambda: slack.delivery.opened >= 2 + number // 10)  # noqa: B023 - used at once
        await live.heard_all()
        assert sorted(live.inbox.texts()) == sorted(f"message {number}" for number in range(30))


async def test_a_socket_that_is_open_and_deaf_is_noticed_and_replaced() -> None:
    async with FakeSlack() as slack, running(slack, ping_s=0.1) as live:
        slack.delivery.freeze()
        ann = slack.person("ann")
        await slack.say(slack.private_chat(ann), ann, "anybody there?")
        await live.heard_all()
        assert live.inbox.texts() == ["anybody there?"]


async def test_sockets_of_somebody_else_are_noticed(caplog: pytest.LogCaptureFixture) -> None:
    async with FakeSlack() as slack, running(slack) as first:
        assert "another program" not in caplog.text
        async with running(slack) as second:
            assert "another program" in caplog.text
            assert first.adapter.health().state == second.adapter.health().state == "up"


async def test_a_quiet_socket_shows_signs_of_life() -> None:
    async with FakeSlack() as slack, running(slack, ping_s=1.0) as live:
        first = live.adapter.health().received_at
        assert first is not None

        def later() -> bool:
            now = live.adapter.health().received_at
            return now is not None and now > first

        async with asyncio.timeout(30):
            while not later():  # noqa: ASYNC110 - health is asked, it does not call
                await asyncio.sleep(0.01)
        assert slack.delivery.opened == 1


async def test_when_no_socket_can_be_had_the_run_ends_with_an_error() -> None:
    async with FakeSlack() as slack:
        adapter = SlackAdapter(settings_for(slack), SystemClock())
        slack.web.tickets_good = False
        with pytest.raises(SocketLost, match="could not be opened") as raised:
            await adapter.run(Inbox())
        assert "ticket" not in str(raised.value)
        assert adapter.health().state == "down"
        slack.web.tickets_good = True
        async with asyncio.TaskGroup() as tasks:
            again = tasks.create_task(adapter.run(Inbox()))
            await slack.until(lambda: len(slack.delivery.sockets) == 1)
            again.cancel()


async def test_socket_mode_switched_off_is_said_in_words() -> None:
    async with FakeSlack() as slack:
        adapter = SlackAdapter(settings_for(slack), SystemClock())
        async with asyncio.TaskGroup() as tasks:
            failing = tasks.create_task(_failure(adapter))
            await slack.until(lambda: len(slack.delivery.sockets) == 1)
            await slack.delivery.refresh(reason="link_disabled")
        assert "Socket Mode" in str(failing.result())


async def _failure(adapter: SlackAdapter) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as raised:
        await adapter.run(Inbox())
    return raised.value


@pytest.mark.parametrize("http", [False, True])
async def test_cancelling_leaves_no_task_and_no_socket(http: bool) -> None:
    async with FakeSlack(http=http) as slack:
        before = asyncio.all_tasks()
        async with running(slack) as live:
            live.inbox.gate = asyncio.Event()
            ann = slack.person("ann")
            await slack.say(slack.private_chat(ann), ann, "hello")
            await live.inbox.entered.wait()
            if http:
                live.inbox.gate.set()
                await live.heard_all()
        await slack.until(lambda: not slack.delivery.sockets)
        left = {task for task in asyncio.all_tasks() - before if "adapters" in repr(task.get_coro())}
        assert left == set()
        assert live.adapter.health().state == "down"


async def test_secrets_are_in_no_log_line_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with FakeSlack() as slack:
        async with running(slack) as live:
            ann = slack.person("ann")
            await slack.say(slack.private_chat(ann), ann, "hello")
            await live.heard_all()
            await slack.delivery.refresh()
            await live.until(lambda: slack.delivery.opened == 2)
        slack.web.bot_token = slack.web.app_token = "changed"
        errors = []
        for changes in ({}, {"bot_token": lambda: "secret-token"}, {"app_token": lambda: "secret-token"}):
            adapter = SlackAdapter(settings_for(slack, **changes), SystemClock())
            with pytest.raises(ConfigurationError) as raised:
                await adapter.run(Inbox())
            errors.append(str(raised.value))
        for secret in (slack.bot_token, slack.app_token, slack.signing_secret, "secret-token", "ticket="):
            assert secret not in caplog.text
            assert all(secret not in error for error in errors)
        assert [error.split()[0] for error in errors] == [
            "Slack",
            "channels.slack.bot_token",
            "channels.slack.app_token",
        ]


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"bot_token": lambda: "xoxp-1"}, "channels.slack.bot_token"),
        ({"bot_token": lambda: "xoxb-unknown"}, "channels.slack.bot_token"),
        ({"app_token": None}, "channels.slack.app_token"),
        ({"app_token": lambda: "xoxb-1"}, "channels.slack.app_token"),
        ({"app_token": lambda: "xapp-1-A0-unknown"}, "channels.slack.app_token"),
        ({"mode": "http", "signing_secret": lambda: "  "}, "channels.slack.signing_secret"),
        ({"mode": "http", "signing_secret": None}, "channels.slack.signing_secret"),
    ],
)
async def test_a_wrong_secret_names_its_setting(changes: dict[str, object], names: str) -> None:
    async with FakeSlack() as slack:
        adapter = SlackAdapter(settings_for(slack, **changes), SystemClock())
        with pytest.raises(ConfigurationError, match=names):
            await adapter.run(Inbox())
