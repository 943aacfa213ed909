"""Choose the file of the embedded model: the configured one, or the larger one where the machine can run it.

Not here: fetching the files (`gateway.models`) and running them (`pipeline.llm.local_model`).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gateway.config import Settings
from gateway.models import fetch
from gateway.models.manifest import CHAT, LARGER_CHAT, Model
from gateway.runtime.machine import Machine, this_machine
from pipeline.domain.frozen import dataclass

LARGER_FREE_BYTES = 3_000_000_000
LARGER_CORES = 4
"""The least for the larger model in "auto": ADR 0069 has the measurements."""
MODELS = {"0.5b": CHAT, "1.5b": LARGER_CHAT}
"""The models that llm.local.model names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedModel:
    """The chosen file, and the reason for people."""

    path: Path
    reason: str
    model: Model | None = None
    """None for the file of llm.local.model_path."""

    def words(self) -> str:
        """The choice as one line for people."""
        return f"{self.path.name if self.model is None else self.model.id} ({self.reason})"


def embedded_model(settings: Settings, machine: Callable[[], Machine] = this_machine) -> EmbeddedModel:
    """The embedded model of `settings`. The file need not exist. `machine` is called only for "auto" with the
    larger model fetched."""
    local = settings.llm.local
    if local.model_path is not None:
        return EmbeddedModel(path=local.model_path, reason="llm.local.model_path")
    folder = settings.models_path
    if local.model != "auto":
        model, reason = MODELS[local.model], f'llm.local.model = "{local.model}"'
    else:
        model, reason = _automatic(folder, machine)
    return EmbeddedModel(path=model.path(folder), reason=reason, model=model)


def _automatic(folder: Path, machine: Callable[[], Machine]) -> tuple[Model, str]:
    if fetch.state(LARGER_CHAT, folder) not in ("ready", "not verified"):
        return CHAT, f"auto: {LARGER_CHAT.id} is not fetched"
    here = machine()
    has = f"{here.free_bytes / 1e9:.1f} GB of memory free, {_cores(here.cores)}"
    if here.free_bytes < LARGER_FREE_BYTES or here.cores < LARGER_CORES:
        needs = f"{LARGER_FREE_BYTES / 1e9:g} GB and {_cores(LARGER_CORES)}"
        return CHAT, f"auto: {has}; {LARGER_CHAT.id} needs {needs}"
    return LARGER_CHAT, f"auto: {has}"


def _cores(count: int) -> str:
    return "1 core" if count == 1 else f"{count} cores"
