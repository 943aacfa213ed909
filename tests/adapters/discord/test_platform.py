"""The fake Discord itself, through a plain discord.py client: what the adapter's tests use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from adapters.discord.sdk import DiscordWebSocket, Route, discord, point_at
from tests.support.platforms.discord import FakeDiscord
from tests.support.platforms.discord_world import read
from tests.support.platforms.platform import FakePlatform, Fault


class PlainBot(discord.Client):
    """A bot as anybody writes one."""

    def __init__(self) -> None:
        intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)
        super().__init__(intents=intents, guild_ready_timeout=0.0)
        self.heard: list[str] = []
        self.resumed = 0

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        return

    async def on_message(self, message: discord.Message) -> None:
        if message.author.id != (self.user.id if self.user else 0):
            self.heard.append(message.content)

    async def on_resumed(self) -> None:
        self.resumed += 1


@pytest.fixture
async def fake() -> AsyncIterator[FakeDiscord]:
    base, gateway = Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY
    async with FakeDiscord() as platform:
        point_at(api_base=platform.api_base, gateway_url=platform.gateway_url)
        yield platform
    Route.BASE, DiscordWebSocket.DEFAULT_GATEWAY = base, gateway


@contextlib.asynccontextmanager
async def connected(fake: FakeDiscord) -> AsyncIterator[PlainBot]:
    async with PlainBot() as bot, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(bot.start(fake.token))
        await fake.until(lambda: fake.gateway.live)
        yield bot
        await bot.close()
        await running


def _is_a_platform(fake: FakeDiscord) -> FakePlatform:
    return fake


async def test_a_plain_bot_hears_direct_chats_and_rooms_and_its_posts_are_seen(fake: FakeDiscord) -> None:
    ada = _is_a_platform(fake).person("ada")
    chat, room = fake.private_chat(ada), fake.room("general", ada)
    async with connected(fake) as bot:
        await fake.say(chat, ada, "hello")
        await fake.say(room, ada, "and here")
        await fake.until(lambda: len(bot.heard) == 2)
        await bot.get_partial_messageable(int(chat.chat)).send("**hi** there")

    assert bot.heard == ["hello", f"<@{fake.world.bot.id}> and here"]
    assert fake.bot_texts(chat) == ["hi there"]
    assert [call.status for call in fake.calls if call.method == "create_message"] == [200]


async def test_a_dropped_socket_is_resumed_and_what_was_said_meanwhile_is_replayed_once(
    fake: FakeDiscord,
) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with connected(fake) as bot:
        await fake.say(chat, ada, "one")
        await fake.until(lambda: bot.heard == ["one"])
        fake.gateway.drop_sockets()
        await fake.say(chat, ada, "two")
        assert fake.unacknowledged() >= 1
        await fake.until(lambda: bot.resumed == 1)
        await fake.until(lambda: len(bot.heard) == 2)

    assert bot.heard == ["one", "two"]
    assert fake.gateway.identifies == 1


async def test_nothing_is_kept_for_a_session_that_was_invalidated(fake: FakeDiscord) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with connected(fake) as bot:
        fake.gateway.forget_sessions()
        fake.gateway.drop_sockets()
        await fake.say(chat, ada, "lost")
        await fake.until(lambda: fake.gateway.identifies == 2 and fake.gateway.live)
        await fake.say(chat, ada, "heard")
        await fake.until(lambda: bool(bot.heard))

    assert bot.heard == ["heard"]


@pytest.mark.parametrize("resumable", [True, False])
async def test_op_9_and_op_7_bring_the_client_back(fake: FakeDiscord, resumable: bool) -> None:
    async with connected(fake) as bot:
        await fake.gateway.invalidate(resumable=resumable)
        if resumable:
            await fake.until(lambda: bot.resumed == 1)
        else:
            await fake.until(lambda: fake.gateway.identifies == 2)
        await fake.until(lambda: fake.gateway.live)
        await fake.gateway.ask_to_reconnect()
        await fake.until(lambda: fake.gateway.resumes == (2 if resumable else 1))

    assert fake.gateway.identifies == (1 if resumable else 2)


async def test_a_wrong_token_is_401_and_a_missing_switch_is_4014(fake: FakeDiscord) -> None:
    async with PlainBot() as stranger:
        with pytest.raises(discord.LoginFailure):
            await stranger.start("wrong")
    fake.gateway.content_intent_granted = False
    async with PlainBot() as bot:
        with pytest.raises(discord.PrivilegedIntentsRequired):
            await bot.start(fake.token)


async def test_the_same_nonce_shows_one_message(fake: FakeDiscord) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with connected(fake) as bot:
        channel = bot.get_partial_messageable(int(chat.chat))
        first = await channel.send("once", nonce="n1")
        again = await channel.send("once", nonce="n1")

    assert first.id == again.id
    assert fake.bot_texts(chat) == ["once"]


async def test_the_sixth_post_within_five_seconds_is_refused_with_retry_after(fake: FakeDiscord) -> None:
    ada = fake.person("ada")
    chat = fake.private_chat(ada)
    async with connected(fake) as bot:
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=chat.chat)
        statuses = []
        waits = []
        # Past the SDK, which would wait by itself.
        session = bot.http._HTTPClient__session  # type: ignore[attr-defined]  # the SDK's own, for this test
        for number in range(6):
            async with session.post(
                route.url, json={"content": str(number)}, headers={"Authorization": f"Bot {fake.token}"}
            ) as response:
                statuses.append(response.status)
                waits.append((await response.json()).get("retry_after"))

    assert statuses == [200] * 5 + [429]
    assert 0 < waits[-1] <= 5


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"content": "x" * 2001}, 50035),
        ({"content": "  "}, 50006),
        ({"content": "x", "nonce": "n" * 26}, 50035),
        ({"content": "x", "components": [{"type": 1, "components": []}]}, 50035),
        ({"content": "x", "components": [{"type": 1, "components": [{}] * 6}]}, 50035),
        (
            {
                "content": "x",
                "components": [
                    {
                        "type": 1,
                        "components": [{"type": 2, "style": 1, "label": "a", "custom_id": "c" * 101}],
                    }
                ],
            },
            50035,
        ),
    ],
)
async def test_what_is_over_a_limit_is_refused(
    fake: FakeDiscord, payload: dict[str, object], code: int
) -> None:
    chat = fake.private_chat(fake.person("ada"))
    async with connected(fake) as bot:
        route = Route("POST", "/channels/{channel_id}/messages", channel_id=chat.chat)
        with pytest.raises(discord.HTTPException) as refused:
            await bot.http.request(route, json=payload)

    assert refused.value.code == code
    assert fake.visible(chat) == ()


async def test_a_mass_mention_that_pings_is_recorded_and_one_that_does_not_is_not(fake: FakeDiscord) -> None:
    chat = fake.room("general", fake.person("ada"))
    async with connected(fake) as bot:
        channel = bot.get_partial_messageable(int(chat.chat))
        quiet = await channel.send("@everyone", allowed_mentions=discord.AllowedMentions.none())
        loud = await channel.send("@everyone")

    assert fake.rest.mass_mentions == [str(loud.id)]
    assert str(quiet.id) not in fake.rest.mass_mentions


async def test_a_fault_after_success_leaves_the_message_and_answers_5xx(fake: FakeDiscord) -> None:
    chat = fake.private_chat(fake.person("ada"))
    fake.faults.script.append(Fault(method="create_message", kind="error_after"))
    async with connected(fake) as bot:
        await bot.get_partial_messageable(int(chat.chat)).send("once", nonce="n")

    assert [call.status for call in fake.calls if call.method == "create_message"] == [500, 200]
    assert fake.bot_texts(chat) == ["once"]


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("**bold** and _slanted_", "bold and slanted"),
        (r"\_kept\_", "_kept_"),
        ("<http://127.0.0.1/f/a__b-_c*/x.txt>", "<http://127.0.0.1/f/a__b-_c*/x.txt>"),
    ],
)
def test_markdown_is_read_but_not_in_an_address(content: str, seen: str) -> None:
    assert read(content) == seen
