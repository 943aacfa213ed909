"""`parlour init` in a real terminal: a typed token is not shown, and Ctrl-C leaves nothing behind."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.test_line_editing import Terminal

ROOT = Path(__file__).parents[2]
TOKEN = "123456789:AAEabcdefghijklmnopqrstuvwxyz0123456"
_CTRL_C = b"\x03"


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[Terminal]:
    """`parlour init` in its controlling terminal, which Ctrl-C and hidden input need."""
    env = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TERM": "xterm", "XDG_DATA_HOME": str(folder)}
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _CHILD, *arguments],
        cwd=folder,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(master, process)
    finally:
        process.kill()
        process.wait()
        os.close(master)


_CHILD = """
import fcntl, signal, sys, termios
# A test run in the background hands on that SIGINT is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from gateway.cli.main import main
sys.exit(main(["init", *sys.argv[1:]]))
"""


def test_a_token_that_is_typed_is_not_shown_and_lands_in_a_file_for_this_user_alone(tmp_path: Path) -> None:
    with started(tmp_path, "--unchecked") as terminal:
        terminal.until("[web]: ")
        terminal.type(b"telegram\n")
        terminal.until("The bot's token (not shown")
        terminal.type(f"{TOKEN}\n".encode())
        terminal.until("Model [local]: ")
        terminal.type(b"\n")
        assert terminal.end() == 0
    assert TOKEN not in terminal.text
    assert (tmp_path / "secrets/telegram-token").read_text() == f"{TOKEN}\n"
    assert (tmp_path / "secrets/telegram-token").stat().st_mode & 0o777 == 0o600
    assert 'token = "file:secrets/telegram-token"' in (tmp_path / "parlour.toml").read_text()


def test_ctrl_c_in_the_middle_leaves_no_file_and_says_so(tmp_path: Path) -> None:
    with started(tmp_path, "--unchecked") as terminal:
        terminal.until("[web]: ")
        terminal.type(b"telegram\n")
        terminal.until("The bot's token (not shown")
        terminal.asleep()
        terminal.type(_CTRL_C)
        assert terminal.end() == 130
    assert "Interrupted. Nothing is written." in terminal.text
    assert list(tmp_path.iterdir()) == []
