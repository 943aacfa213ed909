"""The limits of the programs that meet strangers' bytes, tried from inside."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's")


def inside(program: str) -> str:
    """What `program` prints; its attempts are made after `lock_down`."""
    prelude = """
        import ctypes, os, resource, socket, subprocess, threading
        from voice.workers.sandbox import allow_cpu, lock_down
        def outcome(attempt):
            try:
                attempt()
            except BaseException as error:
                return type(error).__name__ + ":" + str(getattr(error, "errno", ""))
            return "done"
        lock_down()
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(program)
    run = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False, cwd=ROOT, timeout=60
    )
    return run.stdout.strip() or f"ended {run.returncode}"


@pytest.mark.parametrize(
    "attempt",
    [
        "open('/etc/passwd')",
        "open('/tmp/written', 'w')",
        "socket.socket()",
        "socket.socket(socket.AF_UNIX)",
        "os.pipe()",
        "os.listdir('/')",
        "subprocess.run(['true'])",
    ],
)
def test_nothing_can_be_opened_any_more(attempt: str) -> None:
    assert inside(f"print(outcome(lambda: {attempt}))") == "OSError:24"


@pytest.mark.parametrize("limit", ["RLIMIT_NOFILE", "RLIMIT_AS", "RLIMIT_FSIZE", "RLIMIT_CORE"])
def test_a_limit_cannot_be_lifted_again_not_even_by_root(limit: str) -> None:
    lifted = f"resource.setrlimit(resource.{limit}, (1 << 40, 1 << 40))"
    assert inside(f"print(outcome(lambda: {lifted}))") in {"ValueError:", "PermissionError:1"}


def test_memory_ends_at_half_a_gigabyte() -> None:
    assert inside("print(outcome(lambda: bytearray(300 << 20)))") == "done"
    assert inside("print(outcome(lambda: bytearray(600 << 20)))") == "MemoryError:"


def test_a_job_that_never_ends_is_stopped_by_the_kernel() -> None:
    assert inside("allow_cpu(1)\nwhile True: pass") == "ended -24"


def test_privileges_cannot_be_gained_again() -> None:
    # PR_GET_NO_NEW_PRIVS, and PR_CAPBSET_DROP, for which a capability is needed.
    assert inside("print(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0))") == "1"
    assert inside("print(ctypes.CDLL(None).prctl(24, 0, 0, 0, 0))") == "-1"
