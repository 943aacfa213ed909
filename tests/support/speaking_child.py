"""`python -m tests.support.speaking_child FOLDER CRASH_AT OVERRIDE…`: a gateway that reads answers aloud and
crashes at a label (see `gateway.runtime.crash_labels`). Prints `up` once its channels are up."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.app.bootstrap import Extras
from pipeline.llm.scripted import ScriptedLlm
from tests.support.child_gateway import run_until_killed
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker
from voice.transcription.scripted_transcriber import ScriptedTranscriber


async def main(folder: Path, crash_at: str, *overrides: str) -> None:
    """Run until killed."""
    extras = Extras(
        llm=ScriptedLlm.echo(),
        transcriber=ScriptedTranscriber(),
        speaker=ScriptedSpeaker(),
        crash_at=crash_at,
        http=False,
    )
    await run_until_killed(folder, overrides, extras)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
