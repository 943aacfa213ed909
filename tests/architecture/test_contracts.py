"""The import contracts are kept, and each of them notices when it is broken.

Covers: pipeline/graph/execution/executor.py.
"""

from __future__ import annotations

import configparser
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.sources import PACKAGES, ROOT

LINT_IMPORTS = str(Path(sys.executable).with_name("lint-imports"))
_SECTION = "importlinter:contract:"

VIOLATIONS = {
    "packages": ("pipeline/service.py", "import gateway.access.policy"),
    "adapters-know-the-vocabulary": ("adapters/identity.py", "import pipeline.intake.cleaning"),
    "adapters-are-strangers": ("adapters/console/screen.py", "import adapters.web.protocol"),
    "pipeline-is-independent": ("pipeline/agent/model_messages.py", "import adapters.channel"),
    "voice-is-independent": ("voice/transcript.py", "import pipeline.domain.ids"),
    "gateway-layers": ("gateway/nowhere.py", '"""A module without a place."""'),
    "gateway-delivery-layers": ("gateway/delivery/rate_limiter.py", "import gateway.delivery.chat_queue"),
    "gateway-turns-layers": ("gateway/turns/sessions.py", "import gateway.turns.journal"),
    "storage-layers": ("gateway/storage/memory/rows.py", "import gateway.storage.sqlite.schema"),
    "adapters-layers": ("adapters/channel.py", "import adapters.web.settings"),
    "pipeline-layers": ("pipeline/tools/__init__.py", '"""Tools."""'),
    "graph-is-an-engine": ("pipeline/graph/execution/edge_selection.py", "import pipeline.llm.client"),
    "graph-layers": ("pipeline/graph/run/state.py", "import pipeline.graph.execution.executor"),
    "voice-layers": ("voice/workers/frames.py", "import voice.transcription.whisper_engine"),
    "no-cycles": ("gateway/storage/ports.py", "import gateway.storage.sqlite"),
    "library-litellm": ("gateway/runtime/logs.py", "import litellm"),
    "library-xllamacpp": ("pipeline/llm/local_process.py", "import xllamacpp"),
    "library-sqlite3": ("gateway/turns/sessions.py", "import sqlite3"),
    "library-faster-whisper": ("voice/transcription/whisper_transcriber.py", "import faster_whisper"),
    "library-onnxruntime": ("voice/transcription/whisper_engine.py", "import onnxruntime"),
    "library-piper": ("voice/synthesis/synthesizer.py", "import piper"),
    "library-av": ("voice/transcription/whisper_engine.py", "import av"),
    "library-aiohttp": ("gateway/ingress/inbox.py", "import aiohttp"),
    "library-prometheus": ("gateway/delivery/outbox.py", "import prometheus_client"),
    "library-structlog": ("pipeline/service.py", "import structlog"),
    "library-pydantic": ("adapters/web/protocol.py", "import pydantic"),
    "library-telegram": ("adapters/identity.py", "import telegram.ext"),
    "library-httpx": ("adapters/slack/calls.py", "import httpx"),
    "library-slack": ("gateway/delivery/outbox.py", "import slack_sdk"),
    "library-discord": ("adapters/slack/adapter.py", "import discord"),
    "library-mcp": ("pipeline/tools/mcp_group.py", "import mcp"),
    "library-markdown-it": ("adapters/web/protocol.py", "import markdown_it"),
    "library-prompt-toolkit": ("gateway/cli/chat.py", "import prompt_toolkit"),
    "library-segno": ("gateway/cli/serve.py", "import segno"),
    "no-library-yet": ("adapters/streaming.py", "import redis"),
}
"""For each contract a file and a line that breaks it."""
ALSO = {"pipeline-layers": ("pipeline/agent/model_messages.py", "import pipeline.tools")}
"""What must be added to make the first line a violation."""


def contract_ids() -> set[str]:
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    return {name.removeprefix(_SECTION) for name in parser.sections() if name.startswith(_SECTION)}


def lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's packages and contracts, in a folder where they may be broken."""
    folder = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "static", "data")
        )
    shutil.copy(ROOT / ".importlinter", folder)
    return folder


@pytest.fixture
def planted(copied: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy with one contract broken, and mended again afterwards."""
    contract = str(request.param)
    lines = [VIOLATIONS[contract], *([ALSO[contract]] if contract in ALSO else [])]
    before = {
        path: path.read_text(encoding="utf-8") if path.exists() else None for path in _paths(copied, lines)
    }
    for name, line in lines:
        path = copied / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{before[path] or ''}\n{line}\n", encoding="utf-8")
    yield copied
    for path, text in before.items():
        if text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")


def _paths(folder: Path, lines: list[tuple[str, str]]) -> list[Path]:
    return [folder / name for name, _ in lines]


def test_every_contract_is_kept() -> None:
    run = lint(ROOT)

    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


def test_every_contract_has_a_violation_that_tries_it() -> None:
    assert set(VIOLATIONS) == contract_ids()


@pytest.mark.parametrize(
    ("planted", "contract"), [(name, name) for name in VIOLATIONS], indirect=["planted"], ids=list(VIOLATIONS)
)
def test_a_broken_contract_is_noticed(planted: Path, contract: str) -> None:
    run = lint(planted, "--contract", contract)

    assert run.returncode == 1, run.stdout + run.stderr
    assert "0 kept, 1 broken" in run.stdout
