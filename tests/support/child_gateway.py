"""Run a gateway in a child process of a test until it is killed or crashes at a label."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.app.bootstrap import Extras, build
from gateway.config import Secrets, load
from pipeline.domain.clock import SystemClock
from tests.support.default_store import default_storage


async def run_until_killed(folder: Path, overrides: tuple[str, ...], extras: Extras) -> None:
    """Run a gateway without a page on the data folder `folder`. Prints `up` once its channels are up."""
    place = (f'data.dir="{folder}"', *await default_storage(folder))
    settings = load(None, {}, ["channels.web.enabled=false", *place, *overrides])
    gateway = build(settings, Secrets(()), extras)
    await gateway.start()
    while not all(status.up for status in gateway.channel_statuses()):
        await SystemClock().sleep(0.01)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    await asyncio.Event().wait()
