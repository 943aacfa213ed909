"""A command at its limits: each is refused more, or ended, and what it started ends with it.

Covers: gateway/sandbox/first_process.py, gateway/sandbox/usage.py, gateway/sandbox/command.py.
"""

from __future__ import annotations

import os

import pytest

from tests.support.sandbox import MB, Box, processes_with


async def test_a_command_that_ignores_every_signal_is_ended_when_its_time_is_up(sandbox: Box) -> None:
    script = "trap '' HUP INT TERM QUIT; echo begun; while :; do sleep 1; done"
    ran = await sandbox.sh(script, seconds=1.0)
    if not ran.text:  # on a busy machine even a shell may need longer
        ran = await sandbox.sh(script, seconds=30.0)
    assert (ran.end.ending, ran.text) == ("time", "begun\n")
    assert "took longer than allowed" in ran.end.words


async def test_processor_time_is_limited_for_one_process_and_for_all_together(sandbox: Box) -> None:
    one = await sandbox.sh("while :; do :; done", processor_seconds=1)
    assert one.end.ending == "processor"
    several = await sandbox.sh("for i in 1 2 3 4; do (while :; do :; done) & done; wait", processor_seconds=1)
    assert several.end.ending == "processor"


async def test_a_fork_bomb_stays_small_and_ends_with_its_command(sandbox: Box) -> None:
    mark = f"31415926.{os.getpid()}"
    ran = await sandbox.python(
        "import os, time\nfirst, refused, end = os.getpid(), 0, time.monotonic() + 1  # " + mark + "\n"
        "while time.monotonic() < end or os.getpid() == first and not refused:\n"
        "    try: os.fork()\n"
        "    except OSError: refused += 1\n"
        "if os.getpid() == first: print(refused > 0, sum(one.isdecimal() for one in os.listdir('/proc')))"
    )
    refused, processes = ran.text.split()
    assert refused == "True", "the kernel refused more processes"
    assert int(processes) <= 25
    assert processes_with(mark) == []


async def test_processes_are_counted_without_those_of_the_machine(sandbox: Box) -> None:
    ran = await sandbox.sh("sleep 600 & sleep 600 & ls /proc | grep -c '^[0-9]*$'", processes=8)
    assert ran.end.success
    assert ran.end.left_running == 2
    few = await sandbox.sh("sleep 600 & sleep 600 & sleep 600 & echo all", processes=2)
    assert "all" not in few.text


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("x = bytearray(200_000_000)", id="one process"),
        pytest.param(
            "import os, time\nfor i in range(2): os.fork()\nx = bytearray(60_000_000)\nx[::4096] = "
            "bytes(len(x[::4096]))\ntime.sleep(30)",
            id="several processes",
        ),
        pytest.param(
            "import mmap, time\nx = mmap.mmap(-1, 400_000_000)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
            "time.sleep(30)",
            id="shared memory",
        ),
    ],
)
async def test_a_memory_bomb_is_refused_or_ended(sandbox: Box, program: str) -> None:
    ran = await sandbox.python(program)
    assert ran.end.ending == "memory" or "MemoryError" in ran.text


async def test_memory_that_processes_share_is_counted_once(sandbox: Box) -> None:
    ran = await sandbox.python(
        "import os, time\nx = bytearray(40_000_000)\nx[::4096] = bytes(len(x[::4096]))\n"
        "for _ in range(2): os.fork()\ntime.sleep(0.5)\nprint('alive')"
    )
    assert ran.end.ending == "exit"
    assert "alive" in ran.text


async def test_endless_output_is_ended_and_cut(sandbox: Box) -> None:
    ran = await sandbox.sh("yes")
    assert (ran.end.ending, len(ran.output)) == ("output", 100_000)
    quick = await sandbox.sh("head -c 100001 /dev/zero")
    assert (quick.end.ending, len(quick.output)) == ("output", 100_000)
    exact = await sandbox.sh("head -c 100000 /dev/zero")
    assert (exact.end.ending, len(exact.output)) == ("exit", 100_000)


async def test_a_command_that_fills_its_disk_gets_an_error_and_the_disk_outside_does_not_grow(
    sandbox: Box,
) -> None:
    ran = await sandbox.sh(
        "head -c 50000000 /dev/zero > large; for i in 1 2 3; do head -c 9000000 /dev/zero > $i; done;"
        "df -k /home | tail -1; echo x > /tmp/also"
    )
    assert "File size limit exceeded" in ran.text
    assert ran.text.count("No space left") >= 2
    assert ran.end.disk_full
    assert "disk of the conversation is full" in ran.end.words
    assert sum(map(len, sandbox.kept().values())) <= 20 * MB


async def test_deleted_files_that_are_still_open_count_too(sandbox: Box) -> None:
    ran = await sandbox.sh(
        'for i in 3 4 5; do eval "exec $i>gone; rm gone; head -c 9000000 /dev/zero >&$i"; done'
    )
    assert "No space left" in ran.text


async def test_sparse_files_cannot_make_the_kept_files_larger_than_the_disk(sandbox: Box) -> None:
    await sandbox.sh("echo before > kept")
    ran = await sandbox.sh("truncate -s 1T a; for i in 1 2 3; do truncate -s 9M $i; done; echo after > kept")
    assert "File size limit exceeded" in ran.text
    assert "empty parts included" in ran.end.unkept
    assert "not kept" in ran.end.words
    assert sandbox.kept() == {"kept": b"before\n"}


async def test_the_number_of_files_is_limited(sandbox: Box) -> None:
    ran = await sandbox.sh("i=0; while [ $i -lt 300 ]; do : > f$i || exit 3; i=$((i+1)); done")
    assert ran.end.status != 0
    assert "No space left" in ran.text


async def test_folders_that_are_nested_without_end_are_not_kept(sandbox: Box) -> None:
    ran = await sandbox.sh("i=0; while [ $i -lt 60 ]; do mkdir d && cd d; i=$((i+1)); done; echo deep > f")
    assert "nested" in ran.end.unkept
    assert sandbox.kept() == {}


async def test_the_number_of_open_files_is_limited(sandbox: Box) -> None:
    ran = await sandbox.python("files = [open('/dev/null') for _ in range(100)]")
    assert "Too many open files" in ran.text


async def test_background_processes_end_with_their_command(sandbox: Box) -> None:
    ran = await sandbox.sh(
        "sleep 27182818 & (setsid sh -c 'trap \"\" TERM HUP; sleep 27182818' &) ; nohup sleep 27182818 &"
        "echo done"
    )
    assert ran.end.success
    assert ran.end.left_running >= 3
    assert "still running" in ran.end.words
    assert processes_with("27182818") == []


async def test_a_command_that_kills_itself_is_said_to_have_ended_by_the_signal(sandbox: Box) -> None:
    ran = await sandbox.sh("kill -SEGV $$")
    assert (ran.end.ending, ran.end.status) == ("signal", 11)
    assert "Segmentation fault" in ran.end.words
    failed = await sandbox.sh("exit 3")
    assert (failed.end.ending, failed.end.status, failed.end.success) == ("exit", 3, False)
