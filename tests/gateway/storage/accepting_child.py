"""A process that accepts entries for ever and prints each one once it is acknowledged."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.storage.sqlite import SqliteStore
from tests.contracts.store_values import entry


async def _accept_for_ever(path: Path, label: str) -> None:
    store = SqliteStore(path)
    await store.open()

    async def one_writer(writer: int) -> None:
        number = 0
        while True:
            key = f"{label}-{writer}-{number}"
            await store.accept(entry(key, thread=f"t:a:{writer}", body={"text": key * 20}))
            sys.stdout.write(key + "\n")
            sys.stdout.flush()
            number += 1

    async with asyncio.TaskGroup() as writers:
        for writer in range(8):
            writers.create_task(one_writer(writer))


if __name__ == "__main__":
    asyncio.run(_accept_for_ever(Path(sys.argv[1]), sys.argv[2]))
