"""File descriptors run out in a real gateway: few log lines, and it accepts again when some are free."""

from __future__ import annotations

import resource
import socket
from asyncio import timeout
from contextlib import ExitStack
from pathlib import Path

from pipeline.domain.clock import SystemClock
from tests.support.gateway_process import SCRIPTED, GatewayProcess

CONNECTIONS = 30


def leave_few_descriptors(pid: int) -> None:
    """Let the process open five more at most."""
    most = max(int(one.name) for one in Path(f"/proc/{pid}/fd").iterdir()) + 6
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))


async def test_used_up_descriptors_are_one_log_line_and_free_ones_are_used(tmp_path: Path) -> None:
    async with GatewayProcess(tmp_path, overrides=SCRIPTED, executed=True) as gateway:
        await gateway.start()
        leave_few_descriptors(gateway.pid)
        address = gateway.url.removeprefix("http://").rpartition(":")
        with ExitStack() as held:
            for _ in range(CONNECTIONS):
                held.enter_context(socket.create_connection((address[0], int(address[2]))))
            async with timeout(60):
                while "descriptors are used up" not in gateway.log():
                    await SystemClock().sleep(0.01)
        await gateway.wait_ready()
        log = gateway.log()
        assert log.count("descriptors are used up") == 1
        assert "Traceback" not in log
        assert "socket.accept()" not in log
