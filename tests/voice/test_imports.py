"""What the gateway's own process loads when it uses the ears."""

from __future__ import annotations

import subprocess
import sys


def test_decoders_and_recogniser_are_never_loaded_outside_the_worker() -> None:
    program = (
        "import sys, voice.worker, voice.cached, voice.endpoint, voice.intake, voice.scripted;"
        "import voice.piper, voice.scripted_speaker, voice.selftest, voice.wer;"
        "native = {'av', 'piper', 'faster_whisper', 'ctranslate2', 'onnxruntime', 'litellm'};"
        "print(*sorted(native & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
