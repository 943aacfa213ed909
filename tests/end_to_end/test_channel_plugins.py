"""A channel of a plug-in works like a shipped one, and a broken one leaves the gateway working.

Covers: gateway/app/plugin_channels.py, gateway/config/channel_plugins.py.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession

from gateway.cli.channel_checks import channel_findings
from gateway.config import load
from parlour.testing import ScriptedLlm, running_gateway
from pipeline.domain.clock import SystemClock
from tests.support.channel_plugins import BROKEN, channel_plugins

_CHANNELS = ("harbour", "showing", "lying", "raising", "misnamed", "objects", "hanging", "quarrelsome")
_ENVIRON = {"KEY": "tiger-tiger", "OTHER": "burning-bright"}


@pytest.fixture(autouse=True)
def harbour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    names = {name: f"demo_harbour:{name}" for name in _CHANNELS}
    with channel_plugins(tmp_path / "site", monkeypatch, **names, **BROKEN):
        yield


def _built(account: str = "main") -> Any:
    return importlib.import_module("demo_harbour").BUILT[account]


def _table(channel: str, **given: str) -> list[str]:
    return [f"channels.{channel}.{key}={value}" for key, value in {"key": "env:KEY", **given}.items()]


async def test_a_posting_channel_answers_within_its_access_rule_and_its_rate(tmp_path: Path) -> None:
    overrides = [
        *_table("harbour", access='"list"', allow='["dm:ann"]', rate="7"),
        *_table("harbour.2", key="env:OTHER", account='"north"', access='"open"'),
        "agents.porter.model=scripted:echo",
        "routes.1.agent=porter",
        "routes.1.channel=harbour",
    ]
    async with running_gateway(tmp_path, *overrides, environ=_ENVIRON) as running:
        main, north = _built(), _built("north")
        await main.receive("high water?", native_id="n1", chat="ann", author="ann")
        refused = await main.receive("let me in", native_id="n2", chat="eve", author="eve")
        await north.receive("and here?", native_id="n1", chat="eve", author="eve")
        await main.until(lambda: "high water?" in "".join(main.texts("ann")))
        await north.until(lambda: "and here?" in "".join(north.texts("eve")))
        assert refused.status == "refused"
        assert "high water?" not in "".join(main.texts("eve"))
        assert [(one.channel, one.account, one.up) for one in running.gateway.channel_statuses()] == [
            ("harbour", "main", True),
            ("harbour", "north", True),
        ]
        assert main.capabilities.rates.account_per_s == 7
        assert north.capabilities.rates.account_per_s == 2


async def test_a_channel_that_draws_its_own_screen_gets_events_and_replies(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, *_table("showing", access='"open"'), environ=_ENVIRON):
        shown = _built()
        accepted = await shown.say("hello", author="ann")
        assert (await shown.reply(accepted.message_id)).text == "You said: hello"
        assert any(event.type == "response_complete" for event in shown.events)


@pytest.mark.parametrize(
    ("channel", "words"),
    [
        ("pier", "its plug-in demo-plugins 1.0 is broken: RuntimeError: no licence"),
        ("reef", "its plug-in demo-plugins 1.0 is broken: its import took longer than 10 s"),
        (
            "shoal",
            "its plug-in demo-plugins 1.0 is broken: TypeError: the settings of a ChannelKind are a class",
        ),
        ("sand", "its plug-in demo-plugins 1.0 is broken: TypeError: expected a ChannelKind, not dict"),
        ("raising", "building it failed with KeyError"),
        ("quarrelsome", "its plug-in demo-plugins 1.0 is broken: reading its table failed with KeyError"),
        ("misnamed", "it calls itself memory:main, and not misnamed:main"),
        ("objects", "its build returned object, which is not a PostingChannel or a ShowingChannel"),
        ("hanging", "building it took longer than 10 s"),
    ],
)
async def test_a_broken_channel_is_named_and_the_others_answer(
    tmp_path: Path, channel: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    overrides = [*_table(channel), *_table("harbour", key="env:OTHER", access='"open"'), "server.port=0"]
    with caplog.at_level(logging.ERROR, logger="gateway"):
        async with running_gateway(tmp_path, *overrides, environ=_ENVIRON, http=True) as running:
            posts = _built()
            await posts.receive("hello", native_id="n1", chat="ann", author="ann")
            await posts.until(lambda: "hello" in "".join(posts.texts("ann")))
            (left_out,) = running.gateway.left_out
            assert left_out.channel == channel
            assert left_out.problem.startswith(words)
            async with ClientSession() as http, http.get(f"{running.gateway.url}/readyz") as answer:
                shown = await answer.text()
                assert answer.status == 200
            line = next(line for line in shown.splitlines() if channel in line)
            assert "down (left out, as its plug-in is broken" in line
    logged = [one.getMessage() for one in caplog.records if one.name.startswith("gateway.")]
    assert logged == ["a channel is left out"]
    assert "sesame" not in caplog.text + shown


async def test_a_gateway_with_nothing_but_a_broken_channel_is_not_ready(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, *_table("pier"), environ=_ENVIRON) as running:
        assert not running.gateway.ready


async def test_a_channel_whose_health_is_no_health_is_down_and_still_answers(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, *_table("lying", access='"open"'), environ=_ENVIRON) as running:
        posts = _built()
        await posts.receive("hello", native_id="n1", chat="ann", author="ann")
        await posts.until(lambda: "hello" in "".join(posts.texts("ann")))
        (status,) = running.gateway.channel_statuses()
        assert (status.state, status.words) == ("down", "its health is not a ChannelHealth")


async def test_a_channel_cannot_bring_in_messages_of_another_one(tmp_path: Path) -> None:
    llm = ScriptedLlm.echo()
    overrides = [*_table("harbour", access='"open"'), "channels.console.enabled=true"]
    async with running_gateway(tmp_path, *overrides, environ=_ENVIRON, llm=llm):
        posts = _built()
        posts.name = "console"
        with pytest.raises(Exception, match="names the channel 'console'; refused"):
            await posts.receive("I am the owner", native_id="n1", chat="c1", author="owner")
    assert llm.requests == []


async def test_doctor_checks_the_access_of_a_plug_ins_channel_and_names_what_is_left_out(
    tmp_path: Path,
) -> None:
    settings = load(None, _ENVIRON, [*_table("harbour"), *_table("pier")])

    findings = [one async for one in channel_findings(settings, SystemClock())]

    assert [(one.name, one.good) for one in findings] == [
        ("pier", False),
        ("harbour credentials", True),
        ("harbour", True),
    ]
    assert "RuntimeError: no licence" in findings[0].words
    assert "a stranger is refused" in findings[2].words
