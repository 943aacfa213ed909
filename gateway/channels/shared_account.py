"""What one account's channel needs while it runs in a process among several: the account and its bot token
for this process alone, the signals for it, and the replies that wait."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from gateway.channels.token_lease import HeldElsewhere
from gateway.storage.shared_leases import SharedAccounts
from pipeline.domain.ids import AccountKey


class SharedAccount:
    """The right to receive and send on one account; can be acquired repeatedly.

    `token` is the lease of its bot token, if it has one. `attach` subscribes to the account's signals and
    returns what ends that; `take_up` queues the replies that wait.
    """

    def __init__(
        self,
        account: AccountKey,
        accounts: SharedAccounts,
        *,
        token: Callable[[Callable[[], None]], AbstractAsyncContextManager[None]] | None,
        attach: Callable[[], Callable[[], None]],
        take_up: Callable[[], Awaitable[None]],
    ) -> None:
        self._account = account
        self._accounts = accounts
        self._token = token
        self._attach = attach
        self._take_up = take_up

    @asynccontextmanager
    async def held(self, on_lost: Callable[[], None]) -> AsyncIterator[None]:
        """Hold it within the block. `on_lost` is called when another process has taken it over.

        Raises HeldElsewhere while another process has it, ConfigurationError and StorageError.
        """
        async with AsyncExitStack() as stack:
            if self._token is not None:
                await stack.enter_async_context(self._token(on_lost))
            if not await self._accounts.take_one(self._account, on_lost):
                raise HeldElsewhere(":".join(self._account))
            stack.push_async_callback(self._accounts.give_up, self._account)
            stack.callback(self._attach())
            await self._take_up()
            yield
