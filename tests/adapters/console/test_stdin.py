"""Reading lines from real descriptors: pipes, terminals and files, and stopping in the middle."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from adapters.console.stdin import read_lines


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    try:
        yield reading, writing
    finally:
        for descriptor in (reading, writing):
            try:
                os.close(descriptor)
            except OSError:
                continue


async def test_lines_of_a_pipe_come_one_by_one_and_the_last_needs_no_end() -> None:
    with _pipe() as (reading, writing):
        lines = read_lines(reading)
        os.write(writing, "één\r\ntwo".encode())
        assert await anext(lines) == "één"
        os.write(writing, b" parts\nlast \xff")
        assert await anext(lines) == "two parts"
        os.close(writing)
        assert [line async for line in lines] == ["last \ufffd"]


async def test_a_plain_file_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("a\n\nb\n")
    with path.open("rb") as file:
        assert [line async for line in read_lines(file.fileno())] == ["a", "", "b"]


async def test_a_terminal_is_read_line_by_line_until_control_d() -> None:
    master, terminal = os.openpty()
    lines = read_lines(terminal)
    os.write(master, b"hello\n")
    assert await anext(lines) == "hello"
    os.write(master, b"\x04")
    assert [line async for line in lines] == []
    os.close(master)
    os.close(terminal)


async def test_a_cancelled_reader_returns_at_once_and_takes_no_input_with_it() -> None:
    with _pipe() as (reading, writing):
        lines = read_lines(reading)
        got: list[str] = []

        async def read() -> None:
            got.extend([line async for line in lines])

        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(read())
            for _ in range(5):
                await asyncio.sleep(0)
            task.cancel()
        os.write(writing, b"still there\n")
        assert got == []
        assert os.read(reading, 100) == b"still there\n"
        assert os.get_blocking(reading)


async def test_a_line_without_an_end_comes_in_pieces() -> None:
    with _pipe() as (reading, writing):
        lines = read_lines(reading)

        async def feed() -> None:
            await asyncio.to_thread(_write_all, writing, b"x" * 1_200_000)

        async with asyncio.TaskGroup() as group:
            group.create_task(feed())
            pieces = [len(await anext(lines))]
            pieces += [len(line) async for line in lines]
    assert pieces[0] > 1 << 20
    assert sum(pieces) == 1_200_000


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
    os.close(descriptor)
