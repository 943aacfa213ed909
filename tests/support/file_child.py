"""`python -m tests.support.file_child FOLDER CRASH_AT OVERRIDE…`: a gateway that reads files and crashes.

It crashes at a label (see `gateway.runtime.crash_labels`), or with `read:N` before it reads the N-th file. It
prints `up` once its channels are up.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from gateway.app.bootstrap import Extras
from pipeline.llm.scripted import ScriptedLlm
from tests.support.child_gateway import run_until_killed
from tests.support.file_reader import FakeFileReader
from voice.transcription.scripted_transcriber import ScriptedTranscriber

_READ = "read:"
_KILLED = 137


async def main(folder: Path, crash_at: str, *overrides: str) -> None:
    """Run until killed."""
    left = int(crash_at.removeprefix(_READ)) if crash_at.startswith(_READ) else 0

    def count() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            # No exit handlers, no flushing: as a power failure.
            os._exit(_KILLED)

    extras = Extras(
        llm=ScriptedLlm.echo(),
        transcriber=ScriptedTranscriber(),
        file_reader=FakeFileReader(on_read=count),
        crash_at=None if left else crash_at,
        http=False,
    )
    await run_until_killed(folder, overrides, extras)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
