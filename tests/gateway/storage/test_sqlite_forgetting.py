"""What is forgotten is in no byte of the file or its log, while the store continues."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gateway.storage.sqlite import SqliteStore
from tests.contracts.store_values import NOW, entry, lease_on, record, reply, turn

WORD = "zebrafish"


def _left(folder: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in folder.iterdir())


async def test_words_of_any_length_between_others_are_written_over(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    await store.open()
    lease = await lease_on(store)
    for number in range(60):
        words = (WORD if number % 3 else "ordinary") * (1 + number * number % 400)
        accepted = await store.accept(entry(str(number), body={"native_id": str(number), "text": words}))
        await store.start_attempt(lease, accepted.seq)
        answer = record("assistant", message=f"msg-{number}", text=words)
        commit = turn(accepted.seq, answer, outbox=(reply(f"r{number}", message=f"msg-{number}"),))
        if number % 3:
            commit = replace(commit, body={"native_id": str(number)})
        committed = await store.commit_turn(lease, commit)
        await store.mark_sending(lease, committed.outbox_ids[0])
        await store.mark_sent(lease, committed.outbox_ids[0], "native", NOW, forget=bool(number % 3))
    await store.close()
    assert not _left(tmp_path)
    await store.open()
    texts = [row.body["text"] for row in await store.read_log(lease.thread)]
    assert sum(bool(text) for text in texts) == 20
    await store.close()


async def test_words_that_were_dictated_are_gone_with_the_message_they_became(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store.db", synchronous="NORMAL")
    await store.open()
    lease = await lease_on(store)
    for speaker in range(5):
        for length in range(1, 30):
            await store.voices.keep_buffer(f"s{speaker}", {"text": WORD * length * speaker}, at=NOW)
    for speaker in range(5):
        accepted = await store.accept(entry(str(speaker), body={"native_id": "n", "text": WORD * 29}))
        await store.voices.drop_buffer(f"s{speaker}")
        await store.commit_turn(lease, replace(turn(accepted.seq), body={"native_id": "n"}))
    await store.close()
    assert not _left(tmp_path)
