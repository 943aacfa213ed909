"""Check rules across the settings of the memory."""

from __future__ import annotations

from gateway.config.cross_checks import CrossCheck
from gateway.config.settings import Settings
from pipeline.memory.local_embedder import is_installed

_COMPATIBLE = "openai_compatible/"


def _is_hosted(settings: Settings) -> bool:
    return settings.memory.embedding not in ("none", "local")


MEMORY_RULES = (
    CrossCheck(
        path="memory.embedding",
        reads=("memory.embedding",),
        broken=lambda settings: settings.memory.embedding == "local" and not is_installed(),
        what="is local, and the model is not installed",
        fix="run: pip install 'parlour[memory]'",
    ),
    CrossCheck(
        path="memory.embedding_api_base",
        reads=("memory.embedding", "memory.embedding_api_base"),
        broken=lambda settings: (
            settings.memory.embedding.startswith(_COMPATIBLE) and settings.memory.embedding_api_base is None
        ),
        what="is missing, as memory.embedding names no provider",
        fix="write the address of the endpoint",
        caused_by="memory.embedding",
    ),
    CrossCheck(
        path="memory.embedding_api_base",
        reads=("memory.embedding", "memory.embedding_api_base"),
        broken=lambda settings: not _is_hosted(settings) and settings.memory.embedding_api_base is not None,
        what="has no effect, as memory.embedding names no model of an API",
        fix="remove it or name a model in memory.embedding",
    ),
    CrossCheck(
        path="memory.embedding_api_key",
        reads=("memory.embedding", "memory.embedding_api_key"),
        broken=lambda settings: not _is_hosted(settings) and settings.memory.embedding_api_key is not None,
        what="has no effect, as memory.embedding names no model of an API",
        fix="remove it or name a model in memory.embedding",
    ),
)
