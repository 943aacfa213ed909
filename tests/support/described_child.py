"""A process that prints what it has: `python -m tests.support.described_child EXIT_CODE`. It ends with that
code, or stays for ever where none is given."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from gateway.config import environment


def main(arguments: list[str]) -> None:
    found = {
        "session": os.getsid(0) == os.getpid(),
        "folder": str(Path.cwd()),
        "environment": sorted(environment()),
        "threads": threading.active_count(),
        "descriptors": sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1,  # one is that of the listing
        "handled": [
            one.name
            for one in (signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE)
            if callable(signal.getsignal(one))
        ],
    }
    sys.stdout.write(f"{json.dumps(found)}\n")
    if not arguments:
        sys.stdout.write("up\n")
        sys.stdout.flush()
        signal.pause()
    sys.exit(int(arguments[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
