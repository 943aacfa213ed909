"""A cluster on this machine, to try it: one process that holds the accounts, two that run turns, Postgres and
Valkey from wheels, and the page.

    python -m tools.cluster [--workers N] [--set SECTION.KEY=VALUE ...]

A process that ends is started again. Everything is in build/ and is removed at the end; Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.report import ROOT, scratch_folder
from gateway.cli.sign_in_link import sign_in_link
from tests.support.cluster import Cluster, cluster
from tests.support.gateway_process import GatewayProcess
from tests.support.postgres_server import NoServer

_AGAIN_S = 1.0
_LOOK_S = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until Ctrl-C; 0 then, and 1 with a line that says why if it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster", description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=2, help="processes that run turns (2)")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="a setting")
    wanted = parser.parse_args(arguments)
    try:
        asyncio.run(_run(wanted.workers, wanted.set))
    except NoServer as error:
        _say(f"the cluster needs a Postgres server: {error}")
        return 1
    return 0


async def _run(workers: int, settings: Sequence[str]) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopping.set)
    with scratch_folder() as folder:
        models = ROOT / "models"
        shared = (*settings, *([f'models.dir="{models}"'] if models.is_dir() else []))
        async with cluster(folder / "cluster", settings=shared, on_disk=ROOT / "build") as made:
            await _start(made, workers)
            async with asyncio.TaskGroup() as group:
                watches = [
                    group.create_task(_keep(name, gateway, stopping))
                    for name, gateway in made.gateways.items()
                ]
                await stopping.wait()
                _say("Stopping.")
                await asyncio.wait(watches)


async def _start(made: Cluster, workers: int) -> None:
    edge = made.add("edge", "edge", executed=True)
    for number in range(1, workers + 1):
        made.add(f"work{number}", "work", executed=True)
    for name, gateway in made.gateways.items():
        await gateway.start()
        _say(f"{name}: process {gateway.pid}, {gateway.url}/readyz, log {_short(gateway.log_path)}")
    _say(f"Postgres: {made.postgres.url}")
    _say(f"Valkey: {made.valkey.url}")
    _say(f"page: {sign_in_link(edge.url, edge.token)}")
    _say("Kill a process, or Valkey, while you talk. Ctrl-C stops.")


async def _keep(name: str, gateway: GatewayProcess, stopping: asyncio.Event) -> None:
    """Start the gateway again whenever it ends, until it is to stop."""
    while not stopping.is_set():
        try:
            async with asyncio.timeout(_LOOK_S):
                await stopping.wait()
        except TimeoutError:
            pass
        if not stopping.is_set() and gateway.returncode is not None:
            _say(f"{name}: ended with {gateway.returncode}, starts again")
            await asyncio.sleep(_AGAIN_S)
            await gateway.start()
            _say(f"{name}: process {gateway.pid}")
    if gateway.returncode is None:
        await gateway.stop()


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
