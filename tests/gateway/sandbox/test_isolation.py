"""What a command in the real sandbox can reach: itself, its folder, and programs to read.

Covers: gateway/sandbox/root_folder.py, gateway/sandbox/command.py, gateway/sandbox/command_filter.py.
"""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.sandbox import Box, Ran

_CALLS = """
import ctypes, errno, json, os, platform
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
NUMBERS = {
    "ptrace": 101 if x86 else 117, "mount": 165 if x86 else 40, "unshare": 272 if x86 else 97,
    "setns": 308 if x86 else 268, "chroot": 161 if x86 else 51, "bpf": 321 if x86 else 280,
    "keyctl": 250 if x86 else 219, "add_key": 248 if x86 else 217, "request_key": 249 if x86 else 218,
    "perf_event_open": 298 if x86 else 241, "userfaultfd": 323 if x86 else 282,
    "memfd_create": 319 if x86 else 279, "process_vm_readv": 310 if x86 else 270,
    "open_by_handle_at": 304 if x86 else 265, "syslog": 103 if x86 else 116,
    "io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "mount_setattr": 442, "pidfd_getfd": 438,
}
found = {}
def tried(name, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(*arguments)
    found[name] = "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
for name, number in NUMBERS.items():
    tried(name, number, 0, 0, 0, 0, 0)
tried("clone into a user namespace", 56 if x86 else 220, 0x10000000 | 17, 0, 0, 0, 0)
tried("clone3", 435, 0, 0)
tried("a call of the future", 5000)
tried("a call of the other numbering", 0x40000000 + 41, 2, 1, 0)
read, write = os.pipe()
tried("TIOCSTI", 16 if x86 else 29, read, 0x5412, 0)
tried("TIOCLINUX", 16 if x86 else 29, read, 0x541C, 0)
print(json.dumps(found))
"""
_SOCKETS = """
import json, socket
found = {}
for name, family, kind in (
    ("tcp", socket.AF_INET, socket.SOCK_STREAM), ("udp", socket.AF_INET, socket.SOCK_DGRAM),
    ("tcp6", socket.AF_INET6, socket.SOCK_STREAM), ("raw", socket.AF_INET, socket.SOCK_RAW),
    ("packet", 17, socket.SOCK_RAW), ("netlink", 16, socket.SOCK_RAW), ("vsock", 40, socket.SOCK_STREAM),
):
    try:
        socket.socket(family, kind)
        found[name] = "open"
    except OSError as error:
        found[name] = error.strerror
def connected(address):
    try:
        socket.socket(socket.AF_UNIX).connect(address)
        return "open"
    except OSError as error:
        return error.strerror
found["abstract"] = connected({abstract!r})
found["path"] = connected({path!r})
try:
    socket.getaddrinfo("example.org", 80)
    found["dns"] = "open"
except OSError:
    found["dns"] = "refused"
left, right = socket.socketpair()
left.send(b"x")
found["pair"] = right.recv(1).decode()
print(json.dumps(found))
"""


async def test_a_command_sees_system_folders_and_its_own_and_nothing_else(
    sandbox: Box, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    top = await sandbox.sh("ls /")
    system = {"bin", "lib", "lib32", "lib64", "libx32", "sbin", "usr"}
    assert set(top.text.split()) - system == {"dev", "etc", "home", "proc", "tmp"}
    ran = await sandbox.sh(f"cat {secret} {__file__} /etc/shadow /etc/hostname; ls /root /var; ls /home /tmp")
    assert ran.text.count("No such file") == 6
    assert "the secret" not in ran.text


async def test_a_command_can_change_nothing_but_its_folder_and_its_temporary_files(sandbox: Box) -> None:
    places = "/x /usr/x /usr/bin/x /etc/x /etc/passwd /dev/x /proc/x /proc/sys/kernel/hostname /bin/sh"
    ran = await sandbox.sh(
        f"for one in {places}; do echo 1 2>/dev/null > $one && echo wrote $one; done; rm -f /usr/bin/env;"
        "chmod u+w /usr; mkdir /usr/y; ln -s a /y; echo 1 > here; echo 1 > /tmp/there; cat here /tmp/there"
    )
    assert "wrote" not in ran.text
    assert ran.text.endswith("1\n1\n")
    assert sandbox.kept() == {"here": b"1\n"}


async def test_every_system_folder_is_mounted_to_be_read_without_set_user_id_programs(sandbox: Box) -> None:
    mounts = [line.split() for line in (await sandbox.sh("cat /proc/mounts")).text.splitlines()]
    flags = {mount[1]: set(mount[3].split(",")) for mount in mounts if not mount[1].startswith("/dev/")}
    assert {"/", "/usr", "/home", "/tmp", "/proc"} <= set(flags)
    assert {place for place, found in flags.items() if "rw" in found} == {"/home", "/tmp", "/proc"}
    assert {place for place, found in flags.items() if "nosuid" not in found} == set()


async def test_hidden_folders_and_files_are_empty_also_below_a_system_folder(sandbox: Box) -> None:
    hiding = replace(sandbox, hidden=("/usr/share", "/usr/bin/env", "/does/not/exist"))
    ran = await hiding.sh("ls /usr/share | wc -l; wc -c < /usr/bin/env; ls /usr/bin | head -1 | wc -l")
    assert ran.text.split() == ["0", "0", "1"]


async def test_the_environment_has_no_variable_of_the_gateway(
    sandbox: Box, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARLOUR_SECRET", "the secret")
    ran = await sandbox.sh("env; cat /proc/*/environ | tr '\\0' '\\n'")
    names = {line.partition("=")[0] for line in ran.text.splitlines() if "=" in line}
    assert names == {"PATH", "HOME", "LANG", "LOGNAME", "SHELL", "TERM", "TMPDIR", "USER", "PWD"}


async def test_a_command_has_no_descriptor_but_its_input_and_output(sandbox: Box) -> None:
    ran = await sandbox.sh("ls /proc/self/fd; readlink /proc/self/fd/0; cat; tty")
    # The fourth is the folder that `ls` reads.
    assert ran.text == "0\n1\n2\n3\n/dev/null\nnot a tty\n"


async def test_a_command_reaches_no_network_and_no_socket_of_the_machine(
    sandbox: Box, tmp_path: Path
) -> None:
    calls = 0

    def called(*_streams: object) -> None:
        nonlocal calls
        calls += 1

    server = await asyncio.start_server(called, "127.0.0.1", 0)
    local = await asyncio.start_unix_server(called, tmp_path / "s")
    name = f"\0parlour-{tmp_path.name}"
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(name)
    abstract.listen()
    program = _SOCKETS.replace("{abstract!r}", repr(name)).replace("{path!r}", repr(str(tmp_path / "s")))
    async with server, local:
        port = server.sockets[0].getsockname()[1]
        ran = await sandbox.python(program)
        shell = await sandbox.sh(f"bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'; cat /proc/net/dev")
    abstract.close()
    found = json.loads(ran.text)
    unsupported = "Address family not supported by protocol"
    assert {found.pop(kind) for kind in ("tcp", "udp", "tcp6", "raw", "packet", "netlink", "vsock")} == {
        unsupported
    }
    assert found == {
        "abstract": "Connection refused",
        "path": "No such file or directory",
        "dns": "refused",
        # Python's asyncio and multiprocessing need these, and they lead nowhere.
        "pair": "x",
    }
    assert [line.split(":")[0].strip() for line in shell.text.splitlines() if ":" in line][-1] == "lo"
    assert calls == 0


async def test_the_kernel_refuses_calls_that_could_reach_out(sandbox: Box) -> None:
    ran = await sandbox.python(_CALLS)
    found = json.loads(ran.text)
    missing = {"clone3", "a call of the future", "a call of the other numbering"}
    assert {name for name, how in found.items() if how == "ENOSYS"} == missing
    assert {how for name, how in found.items() if name not in missing} == {"EPERM"}, found


async def test_proc_shows_only_processes_of_the_sandbox_and_the_first_one_is_closed(sandbox: Box) -> None:
    ran = await sandbox.sh(
        "ls /proc | grep -c '^[0-9]*$'; ls /proc/1/root/ /proc/1/fd/; cat /proc/1/environ /proc/1/mem;"
        "readlink /proc/1/root /proc/1/cwd /proc/1/exe;"
        "for s in KILL TERM STOP; do kill -$s 1; done; echo still here"
    )
    lines = ran.text.splitlines()
    assert int(lines[0]) <= 4
    assert lines[-1] == "still here"
    refused = [line for line in lines if "Permission denied" in line or "not permitted" in line]
    assert len(refused) >= 4
    assert ran.end.success


async def test_a_command_cannot_write_into_the_memory_of_another(sandbox: Box) -> None:
    ran = await sandbox.python(
        "import os, time\n"
        "child = os.fork()\n"
        "if child == 0: time.sleep(60)\n"
        "for name in ('mem', 'maps'):\n"
        "    try:\n"
        "        open(f'/proc/1/{name}', 'r+b' if name == 'mem' else 'rb'); print('open')\n"
        "    except OSError as error: print(error.strerror)\n"
        "print(open('/proc/self/status').read().count('NoNewPrivs:\\t1'))\n"
    )
    assert ran.text == "Permission denied\nPermission denied\n1\n"
    assert ran.end.left_running == 1


async def test_set_user_id_programs_give_no_rights(sandbox: Box) -> None:
    ran = await sandbox.sh(
        "cp /bin/sh mine && chmod 6755 mine && ./mine -p -c 'cat /proc/self/status' | grep -E '^(Uid|Cap)';"
        "find /usr/bin -perm -4000 | head -1 | wc -l; su -c id; umount /proc; id -u"
    )
    words = ran.text.split()
    assert words[:5] == ["Uid:", "1000", "1000", "1000", "1000"]
    capabilities = [line.split()[1] for line in ran.text.splitlines() if line.startswith("Cap")]
    assert set(capabilities) == {"0000000000000000"}
    assert words[-1] == "1000"


async def test_devices_mounts_and_keyrings_are_refused(sandbox: Box) -> None:
    ran = await sandbox.sh(
        "mknod d b 8 0; mknod c c 1 1; mkdir m; mount -t tmpfs x m; mount --bind /usr m; unshare -r id;"
        "ls /dev | tr '\\n' ' '; cat /proc/keys | wc -l; cat /dev/vda /dev/sda /dev/mem /dev/kmsg | wc -c"
    )
    assert ran.text.count("not permitted") + ran.text.count("must be superuser") >= 5
    assert "fd full null random shm stderr stdin stdout urandom zero" in ran.text
    assert ran.text.split()[-1] == "0"


async def test_a_link_out_of_the_folder_leads_nowhere_inside_and_stays_a_link_outside(
    sandbox: Box, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("the secret")
    target = tmp_path / "secret"
    first = await sandbox.sh(f"ln -s {target} out; ln -s / all; mkdir d; ln -s ../../../.. d/up; cat out")
    second = await sandbox.sh("cat out d/up/etc/shadow; ls all/root; echo x > out; mkfifo pipe; readlink out")
    assert "the secret" not in first.text + second.text
    assert target.read_text() == "the secret"
    assert second.text.endswith(f"{target}\n")
    assert (sandbox.folder / "files" / "out").is_symlink()
    assert not (sandbox.folder / "files" / "pipe").exists(), "special files are not kept"


async def test_a_program_that_is_not_there_is_said_to_be_missing(sandbox: Box) -> None:
    ends: list[Ran] = [await sandbox.run("no-such-program"), await sandbox.run("/etc/passwd")]
    assert {ran.end.ending for ran in ends} == {"not_found"}
    assert all("no such program" in ran.end.problem for ran in ends)
