"""The media inbox: durable, private, and blind to everything that is not one of its handles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapters.web.media import MediaInbox
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import MediaUnavailable
from pipeline.domain.messages import MediaRef


def _inbox(tmp_path: Path) -> tuple[MediaInbox, Path]:
    directory = tmp_path / "deep" / "media"
    return MediaInbox(directory, ManualClock()), directory


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_stored_bytes_come_back_and_only_the_owner_may_read_them(tmp_path: Path) -> None:
    inbox, directory = _inbox(tmp_path)
    ref = await inbox.store(b"sound", mime="audio/ogg")
    assert (ref.channel, ref.mime, ref.size) == ("web", "audio/ogg", 5)
    assert await inbox.download(ref, max_bytes=5) == b"sound"
    assert (directory / ref.handle).stat().st_mode & 0o777 == 0o600
    assert directory.stat().st_mode & 0o777 == 0o700
    assert _names(directory) == [ref.handle]


async def test_a_note_over_the_limit_is_refused_in_words(tmp_path: Path) -> None:
    inbox, _ = _inbox(tmp_path)
    ref = await inbox.store(b"sound", mime="")
    with pytest.raises(MediaUnavailable, match="It is larger than"):
        await inbox.download(ref, max_bytes=4)


async def test_a_discarded_note_is_gone_and_discarding_again_is_harmless(tmp_path: Path) -> None:
    inbox, directory = _inbox(tmp_path)
    ref = await inbox.store(b"sound", mime="")
    await inbox.discard(ref)
    await inbox.discard(ref)
    with pytest.raises(MediaUnavailable, match="send it again"):
        await inbox.download(ref, max_bytes=5)
    assert _names(directory) == []


@pytest.mark.parametrize(
    "handle",
    [
        "",
        ".",
        "..",
        "../secret",
        "/etc/passwd",
        "v_" + "0" * 31,
        "v_" + "0" * 33,
        "v_" + "G" * 32,
        "v_" + "0" * 32 + "\n",
        "v_" + "0" * 32 + ".part",
        "v_../" + "0" * 28,
        "file:///etc/passwd",
        "v_" + "\u0660" * 32,
    ],
)
async def test_a_handle_that_is_not_ours_is_refused(tmp_path: Path, handle: str) -> None:
    inbox, directory = _inbox(tmp_path)
    await inbox.store(b"sound", mime="")
    (directory.parent / "secret").write_text("secret")
    ref = MediaRef(channel="web", handle=handle)
    with pytest.raises(MediaUnavailable, match="no file of the web channel"):
        await inbox.download(ref, max_bytes=1000)
    with pytest.raises(MediaUnavailable, match="no file of the web channel"):
        await inbox.discard(ref)
    assert (directory.parent / "secret").exists()


async def test_another_channels_reference_is_refused(tmp_path: Path) -> None:
    inbox, _ = _inbox(tmp_path)
    ref = await inbox.store(b"sound", mime="")
    with pytest.raises(MediaUnavailable, match="no file of the web channel"):
        await inbox.download(MediaRef(channel="console", handle=ref.handle), max_bytes=5)


async def test_links_directories_and_pipes_in_a_notes_place_are_not_followed(tmp_path: Path) -> None:
    inbox, directory = _inbox(tmp_path)
    await inbox.store(b"sound", mime="")
    (tmp_path / "secret").write_text("secret")
    link, folder, pipe = (f"v_{digit * 32}" for digit in "abc")
    (directory / link).symlink_to(tmp_path / "secret")
    (directory / folder).mkdir()
    os.mkfifo(directory / pipe)
    for handle in (link, folder, pipe):
        with pytest.raises(MediaUnavailable):
            await inbox.download(MediaRef(channel="web", handle=handle), max_bytes=1000)


async def test_the_sweep_removes_everything_but_what_is_referred_to(tmp_path: Path) -> None:
    inbox, directory = _inbox(tmp_path)
    orphan = await inbox.store(b"orphan", mime="")
    half = directory / (orphan.handle[:-1] + ("0" if orphan.handle[-1] != "0" else "1") + ".part")
    half.write_bytes(b"half")
    foreign = directory / "notes"
    foreign.write_text("keep")
    waiting = await inbox.store(b"waiting", mime="")
    assert await inbox.sweep({waiting.handle}) == 2
    assert _names(directory) == sorted([waiting.handle, "notes"])
    assert await inbox.sweep({waiting.handle}) == 0


async def test_sweeping_before_anything_was_stored_finds_nothing(tmp_path: Path) -> None:
    inbox, directory = _inbox(tmp_path)
    assert await inbox.sweep(()) == 0
    assert not directory.exists()
