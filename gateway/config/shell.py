"""The settings of commands in a sandbox: [tools.shell]."""

from __future__ import annotations

from gateway.config.section import Section, setting


class ShellSettings(Section):
    """[tools.shell]: the most that one command may use. It has effect with "shell" in tools.groups."""

    seconds: float = setting(60.0, "Seconds on the clock.", ge=1, le=3_600)
    processor_seconds: int = setting(
        60, "Seconds of processor time of all its processes together.", ge=1, le=36_000
    )
    memory_mb: int = setting(
        512, "Memory of all its processes together in MB (MiB), without its files.", ge=32, le=65_536
    )
    processes: int = setting(64, "Processes and threads at the same time.", ge=1, le=4_096)
    open_files: int = setting(256, "Open files of each process.", ge=16, le=65_536)
    file_mb: int = setting(50, "The largest file in MB.", ge=1, le=10_000)
    disk_mb: int = setting(
        100,
        "All files of the conversation, with temporary ones, in MB. They are in memory while a command runs.",
        ge=1,
        le=10_000,
    )
    files: int = setting(5_000, "The number of files and folders of the conversation.", ge=10, le=1_000_000)
    output_kb: int = setting(
        1_000, "Its output in KB. The model sees the beginning and the end of a long one.", ge=1, le=100_000
    )
    at_once: int = setting(
        2, "Commands of all conversations at the same time; others wait for them.", ge=1, le=64
    )
