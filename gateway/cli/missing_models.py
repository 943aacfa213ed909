"""Find what the configured models lack before the first message: a file on the disk, an API key.

Reads the settings and the disk; starts no model and calls no provider.
"""

from __future__ import annotations

from gateway.app.embedded_model import EmbeddedModel, embedded_model
from gateway.config import Settings
from pipeline.llm.backends import OPENAI, resolve_backend


def model_gaps(settings: Settings) -> tuple[str, ...]:
    """One sentence for each missing thing without which messages or voice notes cannot be answered; empty if
    none is known. Does not check keys that litellm reads from the environment."""
    gaps = (_language_model(settings), _speech_model(settings))
    return tuple(gap for gap in gaps if gap)


def _language_model(settings: Settings) -> str:
    backend = resolve_backend(settings.llm.model, settings.llm.api_base)
    if backend.kind == "local":
        chosen = embedded_model(settings)
        return "" if chosen.path.is_file() else _no_file(chosen)
    if backend.kind == "direct" and backend.api_base == OPENAI and settings.llm.api_key is None:
        return (
            f"No message can be answered: {settings.llm.model} needs a key. Set llm.api_key, for example to "
            '"env:OPENAI_API_KEY".'
        )
    return ""


def _no_file(chosen: EmbeddedModel) -> str:
    model = chosen.model
    fix = (
        "Correct llm.local.model_path."
        if model is None
        else f"Fetch it with `parlour models get{f' {model.id}' if model.optional else ''}`."
    )
    return f"No message can be answered: the model file {chosen.path} is missing. {fix}"


def _speech_model(settings: Settings) -> str:
    if not settings.voice.enabled or settings.voice.transcriber != "whisper":
        return ""
    if (settings.voice_model_path / "model.bin").is_file():
        return ""
    return (
        f"No voice note can be answered: the speech model in {settings.voice_model_path} is missing. "
        "Fetch it with `parlour models get`."
    )
