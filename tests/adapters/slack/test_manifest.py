"""The app manifest asks for exactly what the code uses, and the guide names it all."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from adapters.slack.inbound import parse_event
from adapters.slack.reaction_events import KINDS
from adapters.slack.settings import SlackOptions
from gateway.cli.channel_checks import channel_findings
from gateway.config import load
from pipeline.domain.clock import SystemClock
from pipeline.domain.commands import COMMAND_NAMES
from tests.adapters.slack.harness import ME
from tests.support.platforms.slack import FakeSlack

ROOT = Path(__file__).parents[3]
HISTORIES = ("channels:history", "groups:history", "im:history", "mpim:history")
SCOPES: dict[str, tuple[str, ...]] = {
    "auth_test": (),
    "apps_connections_open": (),  # the app-level token's connections:write
    "assistant_threads_setStatus": ("chat:write",),
    "bots_info": ("users:read",),
    "chat_appendStream": ("chat:write",),
    "chat_delete": ("chat:write",),
    "chat_postMessage": ("chat:write",),
    "chat_startStream": ("chat:write",),
    "chat_stopStream": ("chat:write",),
    "chat_update": ("chat:write",),
    "conversations_history": HISTORIES,
    "conversations_replies": HISTORIES,
    "files_info": ("files:read",),
    "files_upload_v2": ("files:write",),
    "reactions_add": ("reactions:write",),
    "reactions_remove": ("reactions:write",),
    "users_info": ("users:read",),
}
"""What Slack's reference demands for each method that the adapter calls."""
EVENTS = {
    "app_mention": ("app_mentions:read", "app_mention", "C1", ""),
    "message.channels": ("channels:history", "message", "C1", "channel"),
    "message.groups": ("groups:history", "message", "G1", "group"),
    "message.im": ("im:history", "message", "D1", "im"),
    "message.mpim": ("mpim:history", "message", "G2", "mpim"),
}
"""Subscription: its scope, and the event that comes of it (type, channel, channel_type)."""


@pytest.fixture(scope="module")
def manifest() -> dict[str, Any]:
    found = yaml.safe_load((ROOT / "adapters/slack/manifest.yaml").read_text())
    assert isinstance(found, dict)
    return found


def called_methods() -> Iterator[str]:
    """The SDK's methods that the adapter's code calls on a client."""
    for path in (ROOT / "adapters/slack").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "client"
            ):
                yield node.attr


def test_the_scopes_are_those_of_the_methods_and_events_that_are_used(manifest: dict[str, Any]) -> None:
    methods = set(called_methods()) - {"send", "session", "token"}
    assert methods == set(SCOPES)
    needed = {scope for method in methods for scope in SCOPES[method]}
    needed |= {scope for scope, *_ in EVENTS.values()} | {"commands", "reactions:read"}
    assert set(manifest["oauth_config"]["scopes"]["bot"]) == needed


async def test_the_doctor_asks_for_exactly_the_scopes_of_the_manifest(
    tmp_path: Path, manifest: dict[str, Any]
) -> None:
    async with FakeSlack() as slack:
        slack.workspace.scopes = set()
        overrides = slack.overrides(tmp_path)
        settings = load(Path("/dev/null"), {}, overrides)
        found = [one async for one in channel_findings(settings, SystemClock())]

    asked = {
        words.words.removeprefix("optional: ").split()[2]
        for words in found
        if words.name == "slack permissions"
    }
    assert asked == set(manifest["oauth_config"]["scopes"]["bot"])


def test_the_events_are_those_that_the_parser_takes(manifest: dict[str, Any]) -> None:
    assert set(manifest["settings"]["event_subscriptions"]["bot_events"]) == {*EVENTS, *KINDS}
    for _, kind, channel, channel_type in EVENTS.values():
        event = {"type": kind, "channel": channel, "channel_type": channel_type, "user": "U1", "ts": "1.2"}
        assert parse_event({"event": {**event, "text": "hi"}}, ME, "main") is not None


def test_buttons_commands_and_direct_chats_are_switched_on(manifest: dict[str, Any]) -> None:
    assert manifest["settings"]["interactivity"]["is_enabled"] is True
    assert manifest["settings"]["socket_mode_enabled"] is True
    assert manifest["settings"]["token_rotation_enabled"] is False
    assert manifest["features"]["app_home"]["messages_tab_enabled"] is True
    assert manifest["features"]["app_home"]["messages_tab_read_only_enabled"] is False
    (command,) = manifest["features"]["slash_commands"]
    assert command["command"] == "/parlour"
    assert command["usage_hint"] == " | ".join(COMMAND_NAMES)


def test_the_guide_and_the_manifest_name_the_route_and_every_scope_and_event(
    manifest: dict[str, Any],
) -> None:
    guide = (ROOT / "docs/guides/slack.md").read_text()
    path = SlackOptions(bot_token=lambda: "", mode="http").path
    assert f"https://bot.example.org{path}" in guide
    assert (ROOT / "adapters/slack/manifest.yaml").read_text().count(f"https://bot.example.org{path}") == 3
    for name in (*manifest["oauth_config"]["scopes"]["bot"], *EVENTS, *KINDS, "connections:write"):
        assert f"`{name}`" in guide, name
