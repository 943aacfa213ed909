"""Take back what a process posted after another one had taken the account over.

A process that stood still in the middle of a call of the platform makes the call when it continues, while the
other one, which found no post, has posted the reply. The row says whose post counts.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Protocol

from typing_extensions import TypeIs

from adapters.channel import Channel, Failure, PostingChannel
from adapters.duplicate_posts import RetractingChannel
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.platform_calls import MOST_ATTEMPTS
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

_LOOK_S = 1.0
_LOOKS = 10
"""How often the row is looked at until the other process has sent the reply."""


class _RetractingPoster(PostingChannel, RetractingChannel, Protocol):
    """A posting channel that can delete its posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPosts:
    """What this process posted for a row of the outbox."""

    thread: ThreadKey
    row_id: int
    posted: Collection[str]
    """The ids of the messages."""


async def take_back_late_posts(
    adapter: Channel, queue: ChatQueue, store: Store, clock: Clock, late: RowPosts
) -> None:
    """Delete the posted messages that are not what the row was sent as, once it is sent."""
    if not late.posted or not _retracts(adapter):
        return
    for _ in range(_LOOKS):
        try:
            row = await store.outbox_row(late.row_id)
        except StorageError:
            row = None
        if row is not None and row.state == "sent":
            break
        await clock.sleep(_LOOK_S)
    else:
        _log.info("a late post stays: its reply is not sent", extra={"row": late.row_id})
        return
    for native_id in set(late.posted) - set(row.receipt.split(",")):
        gone = await queue.calls.run(
            partial(adapter.take_back, late.thread, native_id), attempts=MOST_ATTEMPTS, counted=False
        )
        if isinstance(gone, Failure):
            _log.info("a late post stays", extra={"reason": gone.message})


def _retracts(adapter: Channel) -> TypeIs[_RetractingPoster]:
    return isinstance(adapter, RetractingChannel)
