"""Post a notice in a chat: a few attempts, nothing is stored."""

from __future__ import annotations

import logging
from functools import partial

from adapters.channel import Failure, Outgoing, Part, PostingChannel, Receipt
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.platform_calls import MOST_ATTEMPTS
from pipeline.domain.ids import ThreadKey, new_id

_log = logging.getLogger(__name__)


async def post_notice(adapter: PostingChannel, queue: ChatQueue, thread: ThreadKey, words: str) -> None:
    """Post the words. A part is posted again only if the platform certainly did not accept it."""
    for part in adapter.render(Outgoing(text=words)):
        posted = await queue.calls.run(
            partial(_post, adapter, thread, part),
            attempts=MOST_ATTEMPTS,
            may_repeat=lambda failure: failure.kind == "rate_limit" or not failure.maybe_delivered,
        )
        if isinstance(posted, Failure):
            _log.info("a notice was not posted", extra={"reason": posted.message})


async def _post(adapter: PostingChannel, thread: ThreadKey, part: Part) -> Receipt:
    # A fresh key: the platform must not take a repeat for the post that it refused.
    return await adapter.post(thread, part, key=new_id("say"))
