"""The reader's children: what they answer, when they start and end, and what happens when they fail."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.reading.limits import ReadingLimits
from gateway.reading.reader_client import SandboxedReader
from pipeline.domain.clock import ManualClock, SystemClock
from pipeline.domain.readings import DocumentText, FileUnreadable, Picture
from tests.gateway.reading import reader_child
from tests.gateway.reading.files import encoded, pdf, screenshot
from voice.workers.child import command

SHIPPED = ReadingLimits()
PROGRAM = command(reader_child.__name__)


@pytest.fixture
async def reader() -> AsyncIterator[SandboxedReader]:
    reader = SandboxedReader(ReadingLimits(max_bytes=100_000, max_pages=2), SystemClock())
    yield reader
    await reader.close()


@pytest.fixture
async def taken_over() -> AsyncIterator[SandboxedReader]:
    reader = SandboxedReader(SHIPPED, SystemClock(), program=PROGRAM)
    yield reader
    await reader.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def liar() -> AsyncIterator[SandboxedReader]:
    """One that was taken over, for the tests that leave it with a child that answers, or with none."""
    reader = SandboxedReader(SHIPPED, SystemClock(), program=PROGRAM)
    yield reader
    await reader.close()


async def read(reader: SandboxedReader, wish: bytes) -> Picture | DocumentText:
    if b"picture" in wish:
        return await reader.picture(wish, max_side=100, max_bytes=1_000)
    return await reader.document(wish, name="", mime="")


async def refused(reader: SandboxedReader, wish: bytes) -> FileUnreadable:
    with pytest.raises(FileUnreadable) as caught:
        await read(reader, wish)
    return caught.value


async def text_of(reader: SandboxedReader, wish: bytes) -> tuple[str, ...]:
    return (await reader.document(wish, name="", mime="")).pages


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await SystemClock().sleep(0.01)


async def test_files_are_read_one_after_the_other_by_one_child(reader: SandboxedReader) -> None:
    assert not reader.pids
    picture = await reader.picture(encoded(screenshot(), "PNG"), max_side=100, max_bytes=10_000)
    (pid,) = reader.pids
    assert (picture.width, picture.height, picture.mime) == (100, 63, "image/png")
    document = await reader.document(pdf(["One", "", "Three"], title="T"), name="a.docx", mime="text/html")
    assert (document.kind, document.pages, document.title, document.cut) == ("pdf", ("One", ""), "T", True)
    assert document.notes == (
        "only the first 2 of 3 pages were read",
        "1 page has no text; it is a picture",
    )
    assert reader.pids == (pid,)


async def test_two_files_are_read_at_the_same_time_and_a_third_one_waits(reader: SandboxedReader) -> None:
    texts = [f"Text {number}" for number in range(5)]
    found = await asyncio.gather(*(reader.document(text.encode(), name="", mime="") for text in texts))
    assert [one.pages for one in found] == [(text,) for text in texts]
    assert len(reader.pids) == 2


async def test_an_empty_and_a_too_large_file_start_no_child(reader: SandboxedReader) -> None:
    assert str(await refused(reader, b"")) == "The file is empty. Please send it again."
    large = await refused(reader, bytes(100_001))
    assert str(large) == ("The file has 100 KB; I read files of up to 100 KB. Please send a smaller one.")
    assert large.reason == "too_large"
    assert not reader.pids


@pytest.mark.skipif(sys.platform != "linux", reason="reads the kernel's account of the child")
async def test_the_child_has_no_secret_and_no_file_of_the_gateway(
    reader: SandboxedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "a secret of the gateway")
    await reader.warm_up()
    (pid,) = reader.pids
    folder = Path("/proc", str(pid))
    assert b"secret" not in (folder / "environ").read_bytes()
    assert all(str(path.readlink()).startswith(("pipe:", "socket:")) for path in (folder / "fd").iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the child")
async def test_a_child_has_nothing_of_a_file_in_its_memory_afterwards(reader: SandboxedReader) -> None:
    words = [f"{'the words' if number % 2 else 'one word'} of person {number}" for number in range(20)]
    for text in words:
        assert await text_of(reader, text.encode()) == (text,)
    (pid,) = reader.pids
    memory = memory_of(pid)
    assert not [text for text in words if text.encode() in memory]
    assert b"A trial that this process can be copied" in memory


def memory_of(pid: int) -> bytes:
    """All that a process has written to its memory."""
    found = bytearray()
    with Path(f"/proc/{pid}/mem").open("rb") as memory:
        for row in Path(f"/proc/{pid}/maps").read_text().splitlines():
            start, end = (int(number, 16) for number in row.split()[0].split("-"))
            if row.split()[1].startswith("rw"):
                memory.seek(start)
                found += memory.read(end - start)
    return bytes(found)


async def test_an_unused_child_ends_and_a_new_one_starts_with_the_next_file() -> None:
    clock = ManualClock()
    reader = SandboxedReader(SHIPPED, clock, idle_s=60.0)
    assert await text_of(reader, b"One") == ("One",)
    first = reader.pids
    await clock.advance(59.0)
    assert await text_of(reader, b"Two") == ("Two",)
    await clock.advance(59.0)
    assert reader.pids == first
    await clock.advance(1.0)
    assert not reader.pids
    assert await text_of(reader, b"Three") == ("Three",)
    assert len(reader.pids) == 1
    assert reader.pids != first
    await reader.close()
    assert not is_alive(first[0])


async def test_a_child_that_dies_is_replaced(reader: SandboxedReader) -> None:
    await reader.warm_up()
    first = reader.pids
    os.kill(first[0], signal.SIGKILL)
    await until(lambda: not reader.pids)
    assert await text_of(reader, b"Text") == ("Text",)
    assert reader.pids != first


async def test_a_child_that_dies_with_a_file_is_replaced(taken_over: SandboxedReader) -> None:
    error = await refused(taken_over, b"die")
    assert error.reason == "unavailable"
    assert str(error) == "I cannot read files at the moment. Please try again later."
    assert await text_of(taken_over, b"a good document") == ("text",)


async def test_a_child_that_is_too_slow_is_replaced() -> None:
    clock = ManualClock()
    reader = SandboxedReader(SHIPPED, clock, program=PROGRAM)
    await reader.warm_up()
    first = reader.pids
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(refused(reader, b"sleep"))
        await clock.advance(3 * SHIPPED.seconds)
    assert reading.result().reason == "too_slow"
    assert str(reading.result()) == "Reading the file took too long. Please send a shorter one."
    assert await text_of(reader, b"a good document") == ("text",)
    assert reader.pids != first
    await reader.close()
    assert not is_alive(first[0])


async def test_a_cancelled_call_ends_its_child(taken_over: SandboxedReader) -> None:
    await taken_over.warm_up()
    first = taken_over.pids
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(read(taken_over, b"sleep"))
        await asyncio.sleep(0)  # it waits for the answer now
        reading.cancel()
    assert reading.cancelled()
    assert not taken_over.pids
    assert await text_of(taken_over, b"a good document") == ("text",)
    await taken_over.close()
    assert not is_alive(first[0])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wish", sorted(reader_child.TRUTHS))
async def test_a_good_answer_is_taken(liar: SandboxedReader, wish: bytes) -> None:
    found = await read(liar, wish)
    assert (found.content if isinstance(found, Picture) else found.pages) in (b"1234", ("text",))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("wish", [*sorted(reader_child.LIES), b"nonsense", b"brackets", b"too much"])
async def test_nothing_that_a_child_says_is_trusted(liar: SandboxedReader, wish: bytes) -> None:
    error = await refused(liar, wish)
    assert error.reason in ("damaged", "unavailable")
    assert "password" not in str(error)
    assert await text_of(liar, b"a good document") == ("text",)


@pytest.mark.parametrize("start", ["unavailable", "late", "missing"])
async def test_a_reader_that_does_not_start_says_so(start: str, caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    program = ("/no/such/program",) if start == "missing" else (*PROGRAM, "--start", start)
    reader = SandboxedReader(SHIPPED, clock, program=program)
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(refused(reader, b"Text"))
        if start == "late":
            await until(lambda: bool(reader.pids))
            await clock.advance(60.0)
    assert reading.result().reason == "unavailable"
    assert "the file reader does not start" in caplog.messages
    assert not reader.pids
    await reader.close()


async def test_closing_ends_the_children_and_what_they_read() -> None:
    reader = SandboxedReader(SHIPPED, SystemClock(), program=PROGRAM)
    await reader.warm_up()
    first = reader.pids
    async with asyncio.TaskGroup() as group:
        reading = group.create_task(refused(reader, b"sleep"))
        await asyncio.sleep(0)  # it waits for the answer now
        await reader.close()
    assert reading.result().reason == "unavailable"
    assert not is_alive(first[0])
    assert (await refused(reader, b"a good document")).reason == "unavailable"
