"""What the gateway's own process loads when it transcribes."""

from __future__ import annotations

import subprocess
import sys


def test_decoders_and_recogniser_are_never_loaded_outside_the_worker() -> None:
    program = (
        "import sys, voice.selftest, voice.wer;"
        "import voice.synthesis.piper_client, voice.synthesis.scripted_synthesizer;"
        "import voice.transcription.cached_transcriber, voice.transcription.remote_transcriber;"
        "import voice.transcription.scripted_transcriber, voice.transcription.voice_note;"
        "import voice.transcription.whisper_transcriber;"
        "native = {'av', 'piper', 'faster_whisper', 'ctranslate2', 'onnxruntime', 'litellm'};"
        "print(*sorted(native & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
