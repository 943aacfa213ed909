"""Remove the duplicate of a reply or question that was posted twice because the first post was uncertain.

After the repeat is posted, the first message is searched for. If it is found, the repeat is deleted. If it
does not exist, the repeat loses its label. If the search gives no answer, the label stays. A failure is
harmless: the text is already visible.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Protocol

from adapters.channel import Failure, Part, PostingChannel
from adapters.duplicate_posts import AdoptingChannel
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.platform_calls import MOST_ATTEMPTS
from gateway.storage.ports import Store
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


class _AdoptingPoster(PostingChannel, AdoptingChannel, Protocol):
    """A posting channel that can search for a post."""


async def remove_duplicate(
    adapter: PostingChannel,
    queue: ChatQueue,
    store: Store,
    *,
    thread: ThreadKey,
    part: Part,
    repeat: str,
    labels: Collection[str],
    known: Collection[str],
) -> str:
    """The id of the message that shows `part` afterwards: the first one if it exists, else `repeat`.

    `repeat` is the labelled message. `labels` are separate messages that hold only the label. `known` are
    messages of the chat that show something else."""
    if not adapter.capabilities.adopts or not isinstance(adapter, AdoptingChannel):
        return repeat
    try:
        receipts = await store.receipts(thread.encode())
    except StorageError:
        _log.exception("a possible repeat stays")
        return repeat
    ours = {one for receipt in receipts for one in receipt.split(",")} | set(known)
    keep = partial(_keep_one, adapter, thread, part, repeat=repeat, labels=labels, known=ours)
    kept = await queue.calls.run(keep, attempts=MOST_ATTEMPTS, counted=False)
    if isinstance(kept, Failure):
        _log.info("a possible repeat stays", extra={"reason": kept.message})
        return repeat
    return kept


async def _keep_one(
    adapter: _AdoptingPoster,
    thread: ThreadKey,
    part: Part,
    *,
    repeat: str,
    labels: Collection[str],
    known: Collection[str],
) -> str:
    """Search once, delete what is superfluous, and return the id of the message that stays."""
    found = await adapter.adopt(thread, part, repeat=repeat, labels=labels, known=known)
    for label in labels:
        await adapter.take_back(thread, label)
    if found is None:
        await adapter.edit(thread, repeat, part)
        return repeat
    await adapter.take_back(thread, repeat)
    return found.native_id
