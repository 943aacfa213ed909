"""Libraries: declared, imported by one module, and absent from the vocabulary. Complements .importlinter."""

from __future__ import annotations

import re
import sys
import tomllib

from tests.architecture.sources import PACKAGES, ROOT, imported_names, module_name, python_files
from tests.support.scopes import LITELLM

IMPORT_NAMES = {
    "charset-normalizer": "charset_normalizer",
    "discord.py": "discord",
    "faster-whisper": "faster_whisper",
    "markdown-it-py": "markdown_it",
    "pillow": "PIL",
    "pynacl": "nacl",
    "piper-tts": "piper",
    "prometheus-client": "prometheus_client",
    "prompt-toolkit": "prompt_toolkit",
    "python-telegram-bot": "telegram",
    "slack-bolt": "slack_bolt",
    "typing-extensions": "typing_extensions",
}
"""Where the name to import is not the name to install."""
COMES_WITH = {
    "annotated_types": "pydantic",
    "httpx2": "mcp",
    "openai": "litellm",
    "pydantic_core": "pydantic",
    "slack_sdk": "slack_bolt",
    "tokenizers": "faster_whisper",
}
"""Parts of a declared package that are imported under a separate name."""


def third_party(*folders: str) -> dict[str, set[str]]:
    """Imported top-level names that are neither ours nor the standard library's, and who imports them."""
    found: dict[str, set[str]] = {}
    for path in python_files(*folders):
        for name in imported_names(path):
            top = name.partition(".")[0]
            if top not in PACKAGES and top not in sys.stdlib_module_names:
                found.setdefault(top, set()).add(module_name(path))
    return found


def declared() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _import_names(project["dependencies"])


def optional(extra: str) -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return _import_names(project["optional-dependencies"][extra])


def _import_names(requirements: list[str]) -> set[str]:
    names = [re.split(r"[\[<>=~! ]", text, maxsplit=1)[0] for text in requirements]
    return {IMPORT_NAMES.get(name, name) for name in names}


def test_the_packages_import_only_what_the_project_declares() -> None:
    used = {COMES_WITH.get(name, name) for name in third_party(*PACKAGES)}

    extras = [optional(extra) for extra in ("speech", "search", "memory", "postgres", "redis")]
    assert used - declared() == set().union(*extras), (
        "what speaks, searches without a key, makes vectors, and uses Postgres or Redis are extras"
    )


def test_every_declared_dependency_is_used() -> None:
    used = {COMES_WITH.get(name, name) for name in third_party(*PACKAGES)}

    assert declared() - used == set()


def test_the_vocabulary_needs_the_standard_library_only() -> None:
    assert third_party("pipeline/domain") == {}


def test_voice_needs_nothing_but_what_decodes_detects_recognises_and_speaks() -> None:
    assert set(third_party("voice")) == {
        *("av", "ctranslate2", "faster_whisper", "numpy", "onnxruntime"),
        *("litellm", "openai", "piper"),
    }


def test_litellm_is_imported_where_answers_and_transcripts_are_asked_for_and_nowhere_else() -> None:
    assert third_party(*PACKAGES)["litellm"] == {
        "pipeline.llm.litellm_client",
        "voice.transcription.remote_transcriber",
    }


def test_the_mcp_sdk_and_its_http_client_are_imported_by_one_module() -> None:
    found = third_party(*PACKAGES)

    assert found["mcp"] == found["httpx2"] == {"pipeline.tools.mcp_client"}


def test_the_agent_names_neither_tools_nor_security() -> None:
    reached = {name for path in python_files("pipeline/agent") for name in imported_names(path)}

    assert reached
    assert [name for name in reached if name.startswith(("pipeline.tools", "pipeline.security"))] == []


def test_the_modules_that_share_litellm_exist() -> None:
    assert [name for name in sorted(LITELLM) if not (ROOT / name).is_file()] == []
