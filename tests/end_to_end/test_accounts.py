"""Two accounts of Telegram and two of Slack in one gateway: each with its own people, agent and fate.

Covers: gateway/config/channels.py, gateway/app/platforms.py, gateway/channels/registry.py,
gateway/agents/routes.py.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.account_kills import echo_document
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.platforms.platform import FakePlatform, Person, Place
from tests.support.platforms.slack import FakeSlack
from tests.support.platforms.telegram import FakeTelegram

_SHOP = "The shop heard:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """A gateway and its two accounts of each platform: the first is `main`, the second `shop`."""

    harness: GatewayHarness
    first: Sequence[FakePlatform]
    second: Sequence[FakePlatform]

    def status(self) -> dict[tuple[str, str], bool]:
        """Whether each account of a posting channel is up."""
        return {
            (status.channel, status.account): status.up
            for status in self.harness.gateway.channel_statuses()
            if status.channel in ("telegram", "slack")
        }


@asynccontextmanager
async def open_accounts(tmp_path: Path, *overrides: str, broken: bool = False) -> AsyncIterator[Accounts]:
    """Run them; `broken`, the second accounts have tokens that their platforms refuse."""
    async with AsyncExitStack() as stack:
        first: list[FakePlatform] = [FakeTelegram(), FakeSlack()]
        second: list[FakePlatform] = [FakeTelegram(), FakeSlack()]
        settings = []
        for number, platform in enumerate((*first, *second)):
            await stack.enter_async_context(platform)
            (tmp_path / f"secrets{number}").mkdir()
            own = platform.overrides(tmp_path / f"secrets{number}")
            if number >= len(first):
                table = f"channels.{platform.name}"
                own = tuple(line.replace(table, f"{table}.2", 1) for line in own)
                settings.append(f'{table}.2.account="shop"')
            settings += own
        settings.append(f'agents.shop.graph="{echo_document(tmp_path, "shop", _SHOP)}"')
        if broken:
            _break_tokens(tmp_path)
        harness = await stack.enter_async_context(open_gateway(tmp_path / "data", *settings, *overrides))
        accounts = Accounts(harness=harness, first=first, second=second)
        async with asyncio.timeout(60):
            while not all(accounts.status().values()) and not broken:
                await SystemClock().sleep(0.01)
        yield accounts


def _break_tokens(folder: Path) -> None:
    for path in (*folder.glob("secrets2/*"), *folder.glob("secrets3/*bot*")):
        path.write_text(path.read_text(encoding="ascii")[:-4] + "WXYZ", encoding="ascii")


async def _say(platform: FakePlatform, text: str, name: str = "ann") -> list[str]:
    """Say it in the person's private chat, and wait for another message of the bot; all of its texts."""
    person = platform.person(name)
    chat = platform.private_chat(person)
    before = len(platform.bot_texts(chat))
    await platform.say(chat, person, text)
    await platform.until(lambda: len(platform.bot_texts(chat)) > before)
    return platform.bot_texts(chat)


async def test_each_account_answers_its_own_people_with_its_own_agent(tmp_path: Path) -> None:
    agents = ("channels.telegram.2.agent=shop", "channels.slack.2.agent=shop")
    async with open_accounts(tmp_path, *agents) as place:
        for first, second in zip(place.first, place.second, strict=True):
            # The same person writes to both bots, under the same id.
            assert await _say(first, "who are you?") == ["You said: who are you?"]
            assert await _say(second, "who are you?") == [f"{_SHOP} who are you?"]
            assert await _say(first, "and now?") == ["You said: who are you?", "You said: and now?"]
        keys = {thread.split(":")[1] for thread in await _threads(place)}
        assert keys == {"main", "shop"}


async def test_a_route_goes_before_the_agent_of_an_account(tmp_path: Path) -> None:
    agents = ("channels.telegram.2.agent=shop", "channels.slack.2.agent=shop")
    route = ("routes.1.account=shop", "routes.1.channel=slack", "routes.1.agent=default")
    async with open_accounts(tmp_path, *agents, *route) as place:
        telegram, slack = place.second
        assert await _say(telegram, "hi") == [f"{_SHOP} hi"]
        assert await _say(slack, "hi") == ["You said: hi"]


async def test_each_key_of_a_route_chooses_the_agent_on_every_account(tmp_path: Path) -> None:
    known = FakeSlack()
    _, ben_on_slack = (known.person(name).id for name in ("ann", "ben"))
    lounge = FakeTelegram().room("lounge").chat
    # Each route has one key; the first that matches counts.
    keys = {"room": lounge, "kind": "room", "person": ben_on_slack, "account": "shop", "channel": "slack"}
    settings = []
    for number, (key, value) in enumerate(keys.items(), 1):
        graph = echo_document(tmp_path, f"by-{key}", f"By {key}:")
        settings += [
            f'agents.by-{key}.graph="{graph}"',
            f"routes.{number}.agent=by-{key}",
            f'routes.{number}.{key}="{value}"',
        ]
    async with open_accounts(tmp_path, *settings) as place:
        telegram, slack = place.first
        shop_telegram, shop_slack = place.second
        for platform, private, shared in (
            (telegram, {"ann": "You said:", "ben": "You said:"}, {"lounge": "By room:", "hall": "By kind:"}),
            (shop_telegram, {"ann": "By account:"}, {"lounge": "By room:", "hall": "By kind:"}),
            (slack, {"ann": "By channel:", "ben": "By person:"}, {"lounge": "By kind:"}),
            (shop_slack, {"ann": "By account:", "ben": "By person:"}, {"lounge": "By kind:"}),
        ):
            people = {name: platform.person(name) for name in ("ann", "ben")}
            for name, says in private.items():
                await _answered(platform, platform.private_chat(people[name]), people[name], says)
            for name, says in shared.items():
                await _answered(platform, platform.room(name, *people.values()), people["ann"], says)


async def _answered(platform: FakePlatform, chat: Place, person: Person, says: str) -> None:
    """The person writes, and is answered by the agent whose answers begin with `says`."""
    await platform.say(chat, person, "hello")
    await platform.until(lambda: [text for text in platform.bot_texts(chat) if text.endswith("hello")] != [])
    assert platform.bot_texts(chat) == [f"{says} hello"]


async def test_who_may_write_to_one_account_may_not_write_to_the_other(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        ids = {
            name: platform.person("ann").id
            for name, platform in (("telegram", FakeTelegram()), ("slack", FakeSlack()))
        }
        lists = [
            setting
            for name, person in ids.items()
            for setting in (
                f"channels.{name}.access=list",
                f"channels.{name}.allow={json.dumps([f'dm:{person}'])}",
                f"channels.{name}.2.access=list",
            )
        ]
        place = await stack.enter_async_context(open_accounts(tmp_path, *lists))
        for first, second in zip(place.first, place.second, strict=True):
            assert await _say(first, "may I?") == ["You said: may I?"]
            (refusal,) = await _say(second, "may I?")
            assert "You said" not in refusal


async def test_an_account_whose_token_is_refused_leaves_the_others_working(tmp_path: Path) -> None:
    async with open_accounts(tmp_path, broken=True) as place:
        for platform in place.first:
            assert await _say(platform, "still there?") == ["You said: still there?"]
        lines = place.harness.gateway.channel_lines()
        assert [line.split()[0] for line in lines if " up" not in line] == ["telegram:shop", "slack:shop"]
        up = {"main": True, "shop": False}
        assert place.status() == {(name, one): up[one] for name in ("telegram", "slack") for one in up}


async def _threads(place: Accounts) -> list[str]:
    entries = await place.harness.store.newest_entries(limit=20)
    return [thread for thread, _ in entries]
