"""Links to files: each opens one file of one chat for a week, under its own name, and nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from gateway.files.folder_store import FolderFileStore
from gateway.files.links import LINK_S, FileLinks
from pipeline.domain.clock import ManualClock
from pipeline.domain.files import FileGone, StoredFile
from pipeline.domain.ids import ThreadKey

ANNA = ThreadKey(channel="telegram", account="main", chat="1001")
BERT = ThreadKey(channel="telegram", account="main", chat="1002")


class LinksHarness:
    """Links to a store in a folder."""

    def __init__(self, folder: Path, key: bytes = b"k" * 32) -> None:
        self.clock = ManualClock(1_700_000_000.0)
        self.store = FolderFileStore(folder / "files", keep_days=30, thread_bytes=10_000, clock=self.clock)
        self.links = FileLinks(self.store, key, self.clock, origin="https://bot.example")

    async def put(
        self, name: str = "chart.png", thread: ThreadKey = ANNA, content: bytes = b"x"
    ) -> StoredFile:
        return await self.store.put(thread, content, kind="file", mime="text/plain", name=name)

    async def opens(self, path: str) -> bytes:
        _, kind, token, name = path.split("/")
        assert kind == "f"
        return await self.links.read(token, name)


async def test_a_link_opens_its_file_for_a_week_and_no_longer(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    path = made.links.path(ANNA, await made.put())
    assert await made.opens(path) == b"x"
    await made.clock.advance(LINK_S - 1)
    assert await made.opens(path) == b"x"
    await made.clock.advance(2)
    with pytest.raises(FileGone, match="has expired"):
        await made.opens(path)


async def test_the_public_address_is_the_same_for_the_same_reply_and_names_no_chat(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    file = await made.put()
    address = made.links.public(ANNA, file, 1_700_000_000.0)
    assert address == made.links.public(ANNA, file, 1_700_000_000.0)
    assert address.startswith("https://bot.example/f/")
    assert address.endswith("/chart.png")
    assert "1001" not in address
    assert "telegram" not in address
    assert FileLinks(made.store, b"k" * 32, made.clock).public(ANNA, file, 1.0) == ""


async def test_no_part_of_a_link_can_be_changed(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    mine, theirs = await made.put(), await made.put(thread=BERT, content=b"theirs")
    token = made.links.path(ANNA, mine).split("/")[2]
    raw = bytearray(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    for place in (0, 33, 65, 69, 71, len(raw) - 1):
        forged = bytearray(raw)
        forged[place] ^= 1
        with pytest.raises(FileGone):
            await made.links.read(base64.urlsafe_b64encode(forged).decode().rstrip("="), "chart.png")
    swapped = raw[:32] + bytes.fromhex(theirs.id) + raw[64:]
    for bad, name in (
        (base64.urlsafe_b64encode(swapped).decode(), "chart.png"),
        (token, "other.png"),
        ("", "chart.png"),
        ("é" * 20, "chart.png"),
        (token[:-8], "chart.png"),
    ):
        with pytest.raises(FileGone):
            await made.links.read(bad, name)


async def test_another_gateways_key_opens_nothing(tmp_path: Path) -> None:
    made, other = LinksHarness(tmp_path), LinksHarness(tmp_path, b"o" * 32)
    with pytest.raises(FileGone):
        await other.opens(made.links.path(ANNA, await made.put()))


async def test_a_file_that_was_removed_is_gone_for_its_link_too(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    file = await made.put()
    path = made.links.path(ANNA, file)
    await made.store.discard(ANNA, [file.id])
    with pytest.raises(FileGone, match="no longer stored"):
        await made.opens(path)


async def test_a_long_name_is_shortened_and_keeps_its_ending(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    name = made.links.path(ANNA, await made.put("x" * 90 + ".json")).split("/")[3]
    assert (len(name), name[-5:]) == (30, ".json")


async def test_a_file_off_the_record_ages_within_an_hour_if_nothing_discards_it(tmp_path: Path) -> None:
    made = LinksHarness(tmp_path)
    kept = await made.put()
    scoped = await made.store.put(ANNA, b"otr", kind="file", mime="text/plain", scope="m1", off_record=True)
    await made.clock.advance(3_500)
    assert await made.store.sweep() == 0
    await made.clock.advance(200)
    assert await made.store.sweep() == 1
    with pytest.raises(FileGone):
        await made.store.get(ANNA, scoped.id)
    assert await made.store.get(ANNA, kept.id) == b"x"
