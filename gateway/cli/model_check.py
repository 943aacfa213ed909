"""Check a language model for `parlour doctor` and `parlour init` by one short request."""

from __future__ import annotations

from gateway.app.embedded_model import embedded_model
from gateway.cli.findings import Finding
from gateway.config import Settings, model_limits
from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError, ParlourError
from pipeline.llm.backends import resolve_backend
from pipeline.llm.client import LlmClient, LlmRequest, TextDelta

_MODEL_TIMEOUT_S = 120.0


async def model_finding(
    name: str,
    model: str,
    client: LlmClient,
    settings: Settings,
    clock: Clock,
    *,
    timeout_s: float = _MODEL_TIMEOUT_S,
) -> Finding:
    """Whether `model` says something within `timeout_s` seconds, and its limits. Closes `client`."""
    request = LlmRequest(
        messages=(ChatMessage(role="user", content="Say hello in one short sentence."),),
        max_tokens=32,
        timeout_s=timeout_s,
    )
    started = clock.monotonic()
    try:
        parts = [item.text async for item in client.stream(request) if isinstance(item, TextDelta)]
    except ModelError as error:
        said = f" (the provider says: {error.detail})" if error.detail else ""
        return Finding(name=name, good=False, words=str(error) + said)
    except ParlourError as error:
        return Finding(name=name, good=False, words=str(error))
    finally:
        await client.close()
    answer = " ".join("".join(parts).split())
    backend = resolve_backend(model, settings.llm.api_base)
    served = backend.words()
    if backend.kind == "local":
        served += f": {embedded_model(settings).words()}"
    words = f'{served}; said "{answer}" after {clock.monotonic() - started:.1f} s'
    words += f"; {model_limits(settings, model).words()}"
    return Finding(name=name, good=bool(answer), words=words)
