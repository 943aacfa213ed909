"""The files of a reply: after its text, in order, once each, or a line in words."""

from __future__ import annotations

import pytest

from adapters.channel import Resolution
from gateway.delivery.poster import REPEAT_LABEL
from tests.gateway.delivery_harness import DeliveryHarness, open_delivery, restarted
from tests.support.pictures import MP3, png
from tests.support.posting_channel import MemoryPosts, refusal

PICTURE = png(64, 48)
LABEL = REPEAT_LABEL.strip()


def posts(resolution: Resolution = "lookup", file_bytes: int = 10_000) -> MemoryPosts:
    return MemoryPosts(resolution=resolution, file_bytes=file_bytes)


def shown(out: DeliveryHarness) -> list[tuple[str, str]]:
    """Each message's text and file name."""
    return [(message.text, message.file_name) for message in out.channel.messages]


async def test_files_follow_the_text_in_order_each_with_its_caption_and_key() -> None:
    async with open_delivery(posts()) as out:
        chart = await out.put(PICTURE, "chart.png", "June")
        sound = await out.put(MP3, "song.mp3")
        row = await out.send("Here they are.", files=(chart, sound))
        assert shown(out) == [("Here they are.", ""), ("June", "chart.png"), ("", "song.mp3")]
        assert [message.file for message in out.channel.messages] == [b"", PICTURE, MP3]
        assert [message.key for message in out.channel.messages] == ["m1:0", "m1:1", "m1:2"]
        assert (row.state, row.receipt) == ("sent", "n1,n2,n3")


async def test_a_preview_becomes_the_text_and_the_file_follows_it() -> None:
    async with open_delivery(posts()) as out:
        await out.begin("Here it")
        await out.send("Here it is.", files=(await out.put(PICTURE, "chart.png"),))
        assert shown(out) == [("Here it is.", ""), ("", "chart.png")]


async def test_a_channel_without_files_gets_the_link_instead() -> None:
    async with open_delivery(posts(file_bytes=0)) as out:
        file = await out.put(PICTURE, "chart.png")
        row = await out.send("Here.", files=(file,))
        # The words and the link do not fit into one of this channel's messages: the link alone does.
        assert shown(out) == [("Here.", ""), (f"<https://b.example/{file.id[:6]}>", "")]
        assert row.state == "sent"


async def test_a_file_that_is_too_large_for_the_channel_becomes_a_link() -> None:
    async with open_delivery(posts(file_bytes=100)) as out:
        large, small = await out.put(PICTURE, "chart.png"), await out.put(b"x", "x.txt")
        await out.send("Here.", files=(large, small))
        assert shown(out)[1:] == [(f"<https://b.example/{large.id[:6]}>", ""), ("", "x.txt")]


async def test_without_a_public_address_the_line_has_no_link() -> None:
    async with open_delivery(posts(file_bytes=100)) as out:
        out.files.public = False
        await out.send("Here.", files=(await out.put(PICTURE, "chart.png"),))
        assert shown(out)[1][0].startswith("The file `chart.png`")


async def test_a_file_that_is_gone_becomes_a_line_and_the_reply_ends() -> None:
    async with open_delivery(posts()) as out:
        file = await out.put(PICTURE, "chart.png")
        await out.files.discard(out.channel.thread(), [file.id])
        row = await out.send("Here.", files=(file,))
        assert shown(out)[1][0].startswith("The file `chart.png` is no longer")
        assert row.state == "sent"


async def test_a_file_that_the_platform_refuses_becomes_a_line() -> None:
    async with open_delivery(posts()) as out:
        out.channel.failures.extend([None, refusal("permission")])
        file = await out.put(PICTURE, "chart.png")
        row = await out.send("Here.", files=(file,))
        assert shown(out) == [("Here.", ""), (f"<https://b.example/{file.id[:6]}>", "")]
        assert row.state == "sent"


async def test_what_only_calls_itself_a_picture_is_posted_as_a_file() -> None:
    async with open_delivery(posts()) as out:
        file = await out.files.put(
            out.channel.thread(), b"<svg/>", kind="image", mime="image/png", name="photo.png"
        )
        await out.send("Here.", files=(file,))
        assert shown(out)[1] == ("", "photo.png.txt")


@pytest.mark.parametrize("resolution", ["lookup", "nonce"])
async def test_an_unconfirmed_file_is_there_once_where_that_can_be_found_out(resolution: Resolution) -> None:
    async with open_delivery(posts(resolution)) as out:
        out.channel.failures.extend([None, refusal("transient", done=True)])
        files = (await out.put(PICTURE, "a.png"), await out.put(png(9, 9), "b.png"))
        assert (await out.send("Here.", files=files)).state == "sent"
        assert shown(out) == [("Here.", ""), ("", "a.png"), ("", "b.png")]


@pytest.mark.parametrize("resolution", ["none", "placeholder"])
async def test_an_unconfirmed_file_is_labelled_where_no_one_can_tell(resolution: Resolution) -> None:
    async with open_delivery(posts(resolution)) as out:
        out.channel.failures.extend([None] * (1 if resolution == "none" else 2))
        out.channel.failures.append(refusal("transient", done=True))
        files = (await out.put(PICTURE, "a.png"), await out.put(png(9, 9), "b.png"))
        await out.send("Here.", files=files)
        assert shown(out) == [("Here.", ""), ("", "a.png"), (LABEL, ""), ("", "a.png"), ("", "b.png")]


@pytest.mark.parametrize("resolution", ["lookup", "nonce"])
@pytest.mark.parametrize("after", [1, 2, 3])
async def test_after_a_kill_the_next_process_continues_behind_the_last_file(
    resolution: Resolution, after: int
) -> None:
    async with open_delivery(posts(resolution)) as out:
        files = (await out.put(PICTURE, "a.png"), await out.put(png(9, 9), "b.png"))
        # Carried out and never confirmed: as if the process ended right after.
        out.channel.failures.extend([*[None] * (after - 1), refusal("transient", done=True)])
        out.channel.lookup_failures.extend(refusal("transient") for _ in range(50))
        reply = await out.reply("Here.", files=files)
        out.delivery.enqueue(out.row_id, reply)
        await out.clock.advance(1)
        out.channel.lookup_failures.clear()
        later = await restarted(out, after_s=10)
        await later.delivery.recover()
        await later.clock.advance(60)
        assert shown(later) == [("Here.", ""), ("", "a.png"), ("", "b.png")]
        assert (await later.row()).state == "sent"
        await later.supervisor.close()


async def test_files_off_the_record_are_discarded_once_they_are_posted() -> None:
    async with open_delivery(posts()) as out:
        file = await out.put(PICTURE, "chart.png")
        kept = await out.put(png(9, 9), "kept.png")
        await out.send("Kept.", files=(kept,))
        await out.send("Here.", files=(file,), message_id="m2", off_record=True)
        assert shown(out)[-1] == ("", "chart.png")
        assert [found for _, found in out.files.contents] == [kept.id]


async def test_files_off_the_record_are_discarded_when_the_reply_is_given_up() -> None:
    async with open_delivery(posts()) as out:
        out.channel.failures.extend([refusal("permission")] * 3)
        row = await out.send("Here.", files=(await out.put(PICTURE, "chart.png"),), off_record=True)
        assert row.state == "failed"
        assert out.files.contents == {}


async def test_off_the_record_a_line_has_no_link_to_a_file_that_goes() -> None:
    async with open_delivery(posts(file_bytes=100)) as out:
        await out.send("Here.", files=(await out.put(PICTURE, "chart.png"),), off_record=True)
        assert shown(out)[1][0].startswith("The file `chart.png`")
        assert out.files.contents == {}
