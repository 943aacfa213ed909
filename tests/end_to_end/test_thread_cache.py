"""A conversation continues from the cache in Redis, and from the store while the cache is away or empty.

Covers: gateway/turns/cached_sessions.py, gateway/cluster/redis_cache.py, gateway/app/bus.py.
"""

from __future__ import annotations

from pathlib import Path

from redis.asyncio import Redis

from gateway.storage.sqlite import SqliteStore
from pipeline.llm.scripted import ScriptedLlm
from tests.end_to_end.test_off_the_record import say
from tests.support.harness import open_gateway
from tests.support.valkey import Valkey


def settings(folder: Path, server: Valkey) -> tuple[str, ...]:
    url = folder / "url"
    url.write_text(server.url)
    url.chmod(0o600)
    return 'bus.kind="redis"', f'bus.url="file:{url}"'


class WatchedStore(SqliteStore):
    """Counts how often a session was looked for."""

    looked = 0

    async def current_session(self, thread: str) -> str | None:
        self.looked += 1
        return await super().current_session(thread)


async def one_turn(folder: Path, server: Valkey, text: str, number: int) -> tuple[list[str], bool]:
    """Start a gateway, say it, and stop: what the model saw, and whether the store was read for it."""
    llm, store = ScriptedLlm.echo(), WatchedStore(folder / "data" / "parlour.sqlite3", synchronous="NORMAL")
    given = settings(folder, server)
    async with open_gateway(folder / "data", *given, llm=llm, store=store) as harness:
        await say(harness, text, number)
    seen = [message.content for message in llm.requests[-1].messages if message.role != "system"]
    return seen, store.looked > 0


class Talk:
    """Turns of one conversation, each in another process."""

    def __init__(self, folder: Path, server: Valkey) -> None:
        self._folder = folder
        self._server = server
        self._said: list[str] = []

    async def turn(self) -> bool:
        """Say one thing more; whether the store was read. The model must see all that was said before."""
        self._said.append(f"thing {len(self._said)}")
        seen, read = await one_turn(self._folder, self._server, self._said[-1], len(self._said))
        assert seen[::2] == self._said
        return read

    async def turns_until_taken(self) -> None:
        """Say things until one is answered from the cache: on a busy machine Valkey may answer too late."""
        while await self.turn():
            pass


async def test_a_conversation_continues_whatever_the_cache_does(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server:
        talk = Talk(tmp_path, server)
        assert await talk.turn()
        await talk.turns_until_taken()
        async with Redis.from_url(server.url) as client:
            await client.flushall()
        assert await talk.turn()
        await server.kill()
        assert await talk.turn()
        await server.start()
        assert await talk.turn()
        await talk.turns_until_taken()


async def test_nothing_off_the_record_is_in_the_cache(tmp_path: Path) -> None:
    async with Valkey(tmp_path) as server:
        await one_turn(tmp_path, server, "kept", 1)
        async with open_gateway(tmp_path / "data", *settings(tmp_path, server)) as harness:
            await say(harness, "/otr", 2)
            await say(harness, "zebrafish", 3)
        async with Redis.from_url(server.url) as client:
            assert await client.keys("*") == []
