"""The files of a conversation between commands, and over crashes.

Covers: gateway/sandbox/kept_files.py, gateway/sandbox/folder_copy.py, gateway/sandbox/folders.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.sandbox.folders import CommandFolders
from pipeline.domain.clock import ManualClock
from pipeline.domain.ids import ThreadKey
from pipeline.tools.tool import Refused, ToolFailed
from tests.support.sandbox import Box

THREAD = ThreadKey(channel="web", account="local", chat="c1")
OTHER = ThreadKey(channel="web", account="local", chat="c2")


def _folders(path: Path, clock: ManualClock | None = None) -> CommandFolders:
    return CommandFolders(path / "commands", keep_days=7, clock=clock or ManualClock())


async def test_files_programs_and_links_are_there_again_for_the_next_command(sandbox: Box) -> None:
    first = await sandbox.sh(
        "mkdir -p a/b; echo one > a/b/c; ln -s a/b/c l; printf 'echo run' > p; chmod +x p; echo x > /tmp/t"
    )
    assert dict(first.end.files) == {"a/b/c": 4, "p": 8}
    second = await sandbox.sh("cat l; ./p; ls /tmp; echo two > a/b/c; rm p")
    assert second.text == "one\nrun\n"
    assert second.end.files == (("a/b/c", 4),)
    assert sandbox.kept() == {"a/b/c": b"two\n"}


async def test_names_that_are_no_text_are_kept(sandbox: Box) -> None:
    await sandbox.sh("printf x > \"$(printf 'caf\\351')\"; printf y > 'a\nb'")
    ran = await sandbox.sh("ls | wc -l; cat caf*")
    assert ran.text.split() == ["3", "x"]


async def test_what_a_command_locks_against_itself_is_kept_all_the_same(sandbox: Box) -> None:
    await sandbox.sh("mkdir locked; echo 1 > locked/a; chmod 000 locked/a locked; chmod 000 /home")
    assert sandbox.kept() == {"locked/a": b"1\n"}


@pytest.mark.parametrize("left", ["files.old", "files.new and files.old"])
async def test_a_crash_between_the_renames_leaves_the_files_from_before(sandbox: Box, left: str) -> None:
    await sandbox.sh("echo before > a")
    (sandbox.folder / "files").rename(sandbox.folder / "files.old")
    if "new" in left:
        (sandbox.folder / "files.new").mkdir()
        (sandbox.folder / "files.new" / "half").write_text("half")
        os.chown(sandbox.folder / "files.new", *(_owner(sandbox)))
    ran = await sandbox.sh("cat a; ls")
    assert ran.text == "before\na\n"
    assert sandbox.kept() == {"a": b"before\n"}


def test_each_thread_and_each_conversation_has_a_folder_and_the_earlier_one_is_removed(
    tmp_path: Path,
) -> None:
    folders = _folders(tmp_path)
    first, other = folders.open(THREAD, "ses_1"), folders.open(OTHER, "ses_1")
    assert first != other
    (first / "files").mkdir()
    (first / "files" / "a").write_text("mine")
    assert folders.read(THREAD, "ses_1", "a", 100) == b"mine"
    with pytest.raises(ToolFailed, match="no such file"):
        folders.read(OTHER, "ses_1", "a", 100)
    second = folders.open(THREAD, "ses_2")
    assert second != first
    assert not first.exists()
    assert other.exists()
    folders.remove(THREAD)
    assert not second.parent.exists()


async def test_unused_folders_are_removed_after_the_days_that_files_are_kept(tmp_path: Path) -> None:
    clock = ManualClock()
    folders = _folders(tmp_path, clock)
    old, used = folders.open(THREAD, "ses_1"), folders.open(OTHER, "ses_1")
    await clock.advance(6 * 86_400)
    folders.open(OTHER, "ses_1")
    await clock.advance(2 * 86_400)
    assert folders.sweep() == 1
    assert not old.parent.exists()
    assert used.exists()


def test_a_file_is_read_inside_the_folder_only_and_no_link_is_followed(tmp_path: Path) -> None:
    folders = _folders(tmp_path)
    files = folders.open(THREAD, "ses_1") / "files"
    files.mkdir()
    (tmp_path / "secret").write_text("the secret")
    (files / "link").symlink_to(tmp_path / "secret")
    (files / "folder").symlink_to(tmp_path)
    os.mkfifo(files / "pipe")
    for name in ("link", "folder/secret", "../../../../secret", str(tmp_path / "secret"), "pipe", "a\0b"):
        with pytest.raises(Refused):
            folders.read(THREAD, "ses_1", name, 100)
    (files / "large").write_bytes(bytes(101))
    with pytest.raises(ToolFailed, match="too large"):
        folders.read(THREAD, "ses_1", "large", 100)


def _owner(sandbox: Box) -> tuple[int, int]:
    status = sandbox.folder.stat()
    return status.st_uid, status.st_gid
