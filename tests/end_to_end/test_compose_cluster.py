"""The processes of deploy/compose.cluster.yaml, with its settings, on a real Postgres and a real Valkey."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import aiohttp
import asyncpg
import yaml  # type: ignore[import-untyped]  # PyYAML ships no type information

from bench.simulate_cluster import CONNECTIONS
from pipeline.domain.clock import SystemClock
from tests.support.deployment import DEPLOY, settings_in
from tests.support.gateway_process import SCRIPTED, GatewayProcess, free_port
from tests.support.platforms.telegram import FakeTelegram
from tests.support.postgres_fixture import EMPTIER
from tests.support.valkey import Valkey
from tests.support.web_client import WebChat

SERVICES = yaml.safe_load((DEPLOY / "compose.cluster.yaml").read_text(encoding="utf-8"))["services"]


METRICS_TOKEN = "0123456789abcdef0123456789abcdef"
_PATIENCE_S = 120.0
_CLOCK = SystemClock()
_CONNECTIONS = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
        AND application_name <> $1"""


def write_secrets(folder: Path, database: str, bus: str) -> None:
    folder.mkdir()
    for name, text in {"database-url": database, "bus-url": bus, "metrics-token": METRICS_TOKEN}.items():
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o400)


def gateway(name: str, folder: Path, *more: str) -> GatewayProcess:
    """The service, with the settings of the file; the servers' addresses are those of the test."""
    environ = settings_in(SERVICES[name]["environment"])
    port = free_port()
    del environ["PARLOUR__SERVER__PUBLIC_ORIGINS"]
    settings = [
        f"{variable.removeprefix('PARLOUR__').lower().replace('__', '.')}="
        f"{value.replace('/run/secrets', str(folder / 'secrets'))}"
        for variable, value in environ.items()
    ]
    process = GatewayProcess(folder / name, overrides=(*SCRIPTED, *settings, *more), port=port)
    process.data_dir = folder / "data"
    return process


async def test_the_edge_takes_messages_and_workers_answer_also_after_one_died(
    tmp_path: Path, postgres_url: str
) -> None:
    async with Valkey(tmp_path) as valkey:
        write_secrets(tmp_path / "secrets", postgres_url, valkey.url)
        async with (
            gateway("edge", tmp_path) as edge,
            gateway("work1", tmp_path) as first,
            gateway("work2", tmp_path) as second,
            WebChat() as chat,
        ):
            for process in (edge, first, second):
                await process.start()
            await chat.connect(edge.url, edge.token)
            await chat.send_text("c1", "before")
            assert (await chat.answer(await chat.accepted("c1"))).text == "You said: before"
            # Of each one: it writes, reads and listens. The last ones are made after the start.
            async with asyncio.timeout(_PATIENCE_S):
                while await _connections(postgres_url) != 3 * CONNECTIONS:
                    await _CLOCK.sleep(0.05)

            await first.kill()
            # Either worker may have had the thread; the other one takes it when the dead one counts as gone.
            await chat.send_text("c2", "after")
            assert (await chat.answer(await chat.accepted("c2"))).text == "You said: after"
            assert await _turns(second) >= 1
            assert await _page(second) == 404
            assert await second.stop() == 0
            assert await edge.stop() == 0


async def test_workers_answer_on_telegram_and_read_files_without_the_bots_token(
    tmp_path: Path, postgres_url: str
) -> None:
    async with Valkey(tmp_path) as valkey, FakeTelegram() as telegram:
        write_secrets(tmp_path / "secrets", postgres_url, valkey.url)
        bot = telegram.overrides(tmp_path)
        assert any(".token=" in setting for setting in bot)
        async with gateway("edge", tmp_path, *bot) as edge, gateway("work1", tmp_path) as worker:
            await edge.start()
            await worker.start()
            ann = telegram.person("ann")
            chat = telegram.private_chat(ann)
            await telegram.say(chat, ann, "hello")
            await telegram.until(lambda: "You said: hello" in telegram.bot_texts(chat), timeout_s=_PATIENCE_S)
            assert await _turns(worker) == 1
            telegram.send(chat, ann, "document", b"a small file", file_name="a.txt", caption="first")
            await telegram.until(lambda: len(telegram.bot_texts(chat)) == 2, timeout_s=_PATIENCE_S)
            assert "a small file" in telegram.bot_texts(chat)[1]
            assert await worker.stop() == 0
            assert await edge.stop() == 0


async def _connections(url: str) -> int:
    """Connections to Postgres that our processes have."""
    connection = await asyncpg.connect(url)
    count = await connection.fetchval(_CONNECTIONS, EMPTIER)
    await connection.close()
    return int(count)


async def _turns(worker: GatewayProcess) -> float:
    """Turns that the worker has finished, as Prometheus reads it."""
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {METRICS_TOKEN}"}) as session,
        session.get(f"{worker.url}/metrics") as response,
    ):
        assert response.status == 200
        found = re.findall(r"^parlour_turns_total\{.*\} (\S+)$", await response.text(), re.MULTILINE)
        return sum(map(float, found))


async def _page(worker: GatewayProcess) -> int:
    async with aiohttp.ClientSession() as session, session.get(f"{worker.url}/") as response:
        return response.status
