"""Remove the duplicate of a reply or question that was posted twice because the first post was uncertain.

After the repeat is posted, the first message is searched for. If it is found, the repeat is deleted. If it
does not exist, the repeat loses its label. If the search gives no answer, the label stays. A failure is
harmless: the text is already visible.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from adapters.channel import Part, PostingChannel
from adapters.duplicate_posts import AdoptingChannel
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.platform_calls import MOST_ATTEMPTS, call_with_timeout, classify_failure, may_try_again
from gateway.storage.ports import Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)


async def remove_duplicate(
    adapter: PostingChannel,
    queue: ChatQueue,
    store: Store,
    clock: Clock,
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
    for _ in range(MOST_ATTEMPTS):
        try:
            receipts = await store.receipts(thread.encode())
            ours = {one for receipt in receipts for one in receipt.split(",")}
            look = adapter.adopt(thread, part, repeat=repeat, labels=labels, known=ours | set(known))
            found = await call_with_timeout(look, clock)
            for label in labels:
                await call_with_timeout(adapter.take_back(thread, label), clock)
            if found is None:
                await call_with_timeout(adapter.edit(thread, repeat, part), clock)
                return repeat
            await call_with_timeout(adapter.take_back(thread, repeat), clock)
        except StorageError:
            _log.exception("a possible repeat stays")
            return repeat
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            failure = classify_failure(adapter, error)
            _log.info("a possible repeat stays for now", extra={"reason": failure.message})
            if not await may_try_again(failure, queue.limiter, clock):
                return repeat
        else:
            return found.native_id
    return repeat
