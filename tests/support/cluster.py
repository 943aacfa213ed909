"""A cluster of real processes for tests, the bench and `make cluster`: gateways that hold accounts and
gateways that run turns, on a real Postgres and a real Valkey from wheels."""

from __future__ import annotations

from asyncio import open_unix_connection
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.support.gateway_process import SCRIPTED, GatewayProcess, free_port
from tests.support.partition import Partition
from tests.support.postgres_server import MortalServer, mortal_server
from tests.support.valkey import Valkey


@dataclass(slots=True)
class Cluster:
    """The servers and the gateways, by name. Each gateway can be killed and started again."""

    folder: Path
    postgres: MortalServer
    valkey: Valkey
    settings: tuple[str, ...]
    gateways: dict[str, GatewayProcess] = field(default_factory=dict)
    partitions: dict[str, Partition] = field(default_factory=dict)
    """Between Postgres and the gateways that were added by `add_apart`."""

    async def add_apart(self, stack: AsyncExitStack, name: str, role: str) -> GatewayProcess:
        """A gateway that reaches Postgres through a `Partition`, which ends with `stack`."""
        proxy = Partition(partial(open_unix_connection, self.postgres.socket))
        self.partitions[name] = await stack.enter_async_context(proxy)
        place = self.folder / f"postgres-{name}.url"
        _keep_secret(place, f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable")
        return self.add(name, role, f'storage.url="file:{place}"')

    def add(
        self, name: str, role: str, *settings: str, executed: bool = False, release: str = ""
    ) -> GatewayProcess:
        """A gateway with the role, which is not started yet. All share one data folder. `release` is one of
        `upgrade_child`."""
        overrides = (
            *self.settings,
            'storage.kind="postgres"',
            f'storage.url="file:{self.folder / "postgres.url"}"',
            'bus.kind="redis"',
            f'bus.url="file:{self.folder / "redis.url"}"',
            f'cluster.role="{role}"',
            f'cluster.name="{name}"',
            *settings,
        )
        gateway = self.gateways[name] = GatewayProcess(
            self.folder / name,
            overrides=overrides,
            port=free_port(),
            executed=executed,
            data_dir=self.folder / "data",
            release=release,
        )
        return gateway


@asynccontextmanager
async def cluster(
    folder: Path, *, settings: Sequence[str] = SCRIPTED, on_disk: Path | None = None
) -> AsyncIterator[Cluster]:
    """The servers, without gateways; those that are added are killed at the end. Raises NoServer."""
    _prepare(folder)
    async with AsyncExitStack() as stack:
        postgres = stack.enter_context(mortal_server(on_disk=on_disk))
        valkey = await stack.enter_async_context(Valkey(folder / "valkey"))
        _keep_secret(folder / "postgres.url", postgres.url)
        _keep_secret(folder / "redis.url", valkey.url)
        made = Cluster(folder=folder, postgres=postgres, valkey=valkey, settings=tuple(settings))
        try:
            yield made
        finally:
            for gateway in made.gateways.values():
                await gateway.__aexit__(None, None, None)


def _prepare(folder: Path) -> None:
    (folder / "valkey").mkdir(parents=True)


def _keep_secret(place: Path, url: str) -> None:
    place.write_text(url, encoding="utf-8")
    place.chmod(0o600)
