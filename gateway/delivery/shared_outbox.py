"""Find the replies that other processes have committed for the accounts that this one sends from.

A signal names the newest of them; a look into the store finds them all, each `LOOK_S` also without a signal.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import NoReturn

from gateway.delivery.outbox import Delivery
from gateway.storage.copies import LOOK_S
from gateway.storage.ports import Store
from gateway.storage.shared_leases import SharedAccounts
from pipeline.domain.clock import Clock, within
from pipeline.domain.errors import FenceLost, StorageError
from pipeline.domain.ids import AccountKey, ThreadKey

_log = logging.getLogger(__name__)


class SharedOutbox:
    """The open replies of this process's accounts. Run `run` as a supervised task."""

    def __init__(self, store: Store, accounts: SharedAccounts, delivery: Delivery, clock: Clock) -> None:
        self._store = store
        self._accounts = accounts
        self._delivery = delivery
        self._clock = clock
        self._ready = asyncio.Event()
        self._looking = asyncio.Lock()

    def ready(self, _account: AccountKey, _row_id: int) -> None:
        """Look for the replies of an account now."""
        self._ready.set()

    async def run(self) -> NoReturn:
        """Look at each signal, and each `LOOK_S`, until cancelled."""
        while True:
            with suppress(TimeoutError):
                await within(self._clock, LOOK_S, self._ready.wait())
            self._ready.clear()
            try:
                await self.look()
            except StorageError as error:
                _log.warning("replies wait for the store", extra={"reason": str(error)})

    async def look(self) -> None:
        """Queue every reply of this process's accounts that is not queued yet. Raises StorageError."""
        async with self._looking:
            if not self._accounts.held:
                return
            self._delivery.ended.clear()
            for row in await self._store.outbox_open():
                if ThreadKey.decode(row.thread).account_key not in self._accounts.held:
                    continue
                try:
                    await self._delivery.take(row)
                except FenceLost:
                    # The account was lost meanwhile: its new process reads the row.
                    continue
