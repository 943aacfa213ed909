"""The messages that were finished last."""

from __future__ import annotations

from dataclasses import replace

from gateway.storage.ports import Outcome, Store
from tests.contracts.store_values import NOW, OTHER, THREAD, entry, lease_on, turn

_WORDS = {"native_id": "1", "author": "ann", "text": "hello", "reply_handle": "to-1"}


async def _finished(
    store: Store, name: str, at: float, *, thread: str = THREAD, outcome: Outcome = "answered"
) -> None:
    accepted = await store.accept(entry(name, thread=thread, body=_WORDS))
    commit = replace(turn(accepted.seq, outcome=outcome), at=at)
    await store.commit_turn(await lease_on(store, thread), commit)


async def test_the_messages_of_the_last_seconds_are_found_newest_first(store: Store) -> None:
    assert await store.finished.newest(within_s=60) == ()
    await _finished(store, "long ago", NOW - 61)
    await _finished(store, "first", NOW - 60)
    await _finished(store, "other", NOW, thread=OTHER, outcome="error")
    await _finished(store, "declined", NOW, outcome="declined")
    await store.accept(entry("waits", body=_WORDS))
    found = await store.finished.newest(within_s=60)
    assert [one.message_id for one in found] == ["msg-other", "msg-first"]
    assert (found[0].thread.encode(), found[0].reply_handle) == (OTHER, "to-1")


async def test_a_message_whose_words_are_erased_is_left_out(store: Store) -> None:
    accepted = await store.accept(entry("secret", body=_WORDS))
    commit = replace(turn(accepted.seq), body={"native_id": "1"})
    await store.commit_turn(await lease_on(store), commit)
    assert await store.finished.newest(within_s=60) == ()
