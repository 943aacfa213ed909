"""`python -m tests.support.speaking_child FOLDER CRASH_AT OVERRIDE…`: a gateway that reads answers aloud and
crashes at a label (see `gateway.runtime.failpoints`). Prints `up` once its channels are up."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.app.bootstrap import Extras, build
from gateway.config import Secrets, load
from pipeline.domain.clock import SystemClock
from pipeline.llm.scripted import ScriptedLlm
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker
from voice.transcription.scripted_transcriber import ScriptedTranscriber


async def main(folder: Path, crash_at: str, *overrides: str) -> None:
    """Run until killed."""
    settings = load(None, {}, ["channels.web.enabled=false", f'data.dir="{folder}"', *overrides])
    extras = Extras(
        llm=ScriptedLlm.echo(),
        transcriber=ScriptedTranscriber(),
        speaker=ScriptedSpeaker(),
        crash_at=crash_at,
        http=False,
    )
    gateway = build(settings, Secrets(()), extras)
    await gateway.start()
    while not all(status.up for status in gateway.channel_statuses()):
        await SystemClock().sleep(0.01)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
