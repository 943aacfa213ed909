"""Which tests one worker runs together: those of a module, those of the sources, those that load LiteLLM, and
those that share a recogniser.

What one module has loaded is there for the next only in the same worker. The tests of the sources read all of
them into syntax trees, which takes longer than to judge them; LiteLLM takes four seconds of processor time,
and Whisper with its decoder one.
"""

from __future__ import annotations

import pytest

from pipeline.llm import litellm_client

TOGETHER = ("tests/architecture/",)
"""Folders whose modules share what they have read."""
LITELLM = frozenset(
    (
        *(f"tests/end_to_end/test_{name}.py" for name in ("files_in", "files_read", "llm_faults", "memory")),
        *(f"tests/pipeline/llm/test_{name}.py" for name in ("between_words", "contract", "faults")),
        *(f"tests/pipeline/llm/test_litellm_{name}.py" for name in ("client", "embedding")),
        "tests/gateway/app/test_voice.py",
        "tests/gateway/cli/test_doctor.py",
        "tests/pipeline/llm/test_structured.py",
        "tests/voice/transcription/test_remote_transcriber.py",
        "tests/voice/transcription/test_transcriber_contract.py",
    )
)
"""Modules whose tests load LiteLLM into their own process."""
WHISPER = frozenset(
    f"tests/voice/{name}.py"
    for name in ("streaming/test_live_whisper", "synthesis/test_piper_client", "transcription/test_whisper")
)
"""Modules whose tests have sound heard by one transcriber, and leave it as it is (`tests.voice.conftest`)."""


def scope_of(nodeid: str) -> str:
    """The scope of a test: a module, a folder, or a library."""
    for folder in TOGETHER:
        if nodeid.startswith(folder):
            return folder
    module = nodeid.split("::", maxsplit=1)[0]
    if module in WHISPER:
        return "whisper"
    return "litellm" if module in LITELLM else module


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Load LiteLLM before the first test that needs it: on a busy machine that takes longer than the minute
    which the first answer would have for both."""
    if item.nodeid.split("::", maxsplit=1)[0] in LITELLM:
        litellm_client._ignore_its_warnings()
        litellm_client._import_litellm()
