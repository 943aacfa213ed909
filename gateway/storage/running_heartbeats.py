"""Cancel the heartbeats of a chat, which run in another thread than it."""

from __future__ import annotations

from gateway.storage.ports import InboxEntry, Store
from pipeline.domain.ids import ThreadKey, is_heartbeat
from pipeline.domain.messages import HeartbeatDue


async def cancel_heartbeats(store: Store, chat: str, before: int) -> tuple[InboxEntry, ...]:
    """Cancel the unfinished heartbeats whose results the thread `chat` gets and whose number is below
    `before`; those entries. Raises StorageError."""
    found: list[InboxEntry] = []
    for thread in await store.open_threads():
        if not is_heartbeat(ThreadKey.decode(thread)):
            continue
        for entry in await store.open_entries(thread):
            item = entry.item
            if isinstance(item, HeartbeatDue) and item.to == chat and entry.seq < before:
                await store.cancel_open(thread, from_seq=entry.seq, up_to_seq=entry.seq)
                found.append(entry)
    return tuple(found)
