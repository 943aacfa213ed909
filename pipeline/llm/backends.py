"""Find the backend of a model by its name. The gateway builds the client."""

from __future__ import annotations

from typing import Literal

from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass

OPENAI = "https://api.openai.com/v1"
"""Here, not beside the client: who reads a configuration needs no HTTP client, whose import takes long."""
Kind = Literal["direct", "litellm", "local", "scripted"]
SCRIPTED = "scripted:"
_FORCED = "litellm/"
_OPENAI = "openai/"
_COMPATIBLE = "openai_compatible/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelBackend:
    """The backend of one model: its kind, the model's name there, and the address."""

    kind: Kind
    model: str
    """Its name at the backend: the endpoint's own name, litellm's `provider/name`, the script's spec."""
    api_base: str | None = None
    """The endpoint's address; None: the backend's default."""

    def words(self) -> str:
        """The backend as readable text."""
        match self.kind:
            case "direct":
                return f"{self.model}, straight from {self.api_base}"
            case "litellm":
                return f"{self.model}, through litellm" + (f" at {self.api_base}" if self.api_base else "")
            case "local":
                return "the embedded model, on this machine"
            case "scripted":
                return f"the shipped fake ({self.model}), no real model"


def resolve_backend(model: str, api_base: str | None = None) -> ModelBackend:
    """The backend for `llm.model` with `llm.api_base`.

    `local` and `scripted:…` have their own backends; `openai/NAME` and `openai_compatible/NAME` are called
    directly, at OpenAI or at `api_base`; `litellm/…` and every other name go through litellm. Raises
    ConfigurationError.
    """
    if model == "local":
        return ModelBackend(kind="local", model=model)
    if model.startswith(SCRIPTED):
        return ModelBackend(kind="scripted", model=model.removeprefix(SCRIPTED))
    if model.startswith(_COMPATIBLE) and api_base is None:
        raise ConfigurationError(
            f"llm.api_base: {model!r} names no provider; write the address of the endpoint, for example "
            "http://127.0.0.1:8000/v1"
        )
    for prefix in (_OPENAI, _COMPATIBLE):
        name = model.removeprefix(prefix)
        # `openai/responses/NAME` is litellm's name for another protocol.
        if name != model and name and not name.startswith("responses/"):
            return ModelBackend(kind="direct", model=name, api_base=api_base or OPENAI)
    return ModelBackend(kind="litellm", model=model.removeprefix(_FORCED), api_base=api_base)
