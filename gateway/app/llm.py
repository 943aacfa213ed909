"""Build the model clients and the pipeline settings, for the composition root."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal

from gateway.app.embedded_model import embedded_model
from gateway.config import (
    SecretRef,
    Settings,
    classifier_settings,
    evaluator_settings,
    machine_zone,
    model_limits,
)
from pipeline.domain.chat import ChatMessage, ToolDefinition
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ModelError
from pipeline.llm.backends import OPENAI, resolve_backend
from pipeline.llm.client import LlmClient, LlmRequest
from pipeline.llm.direct_client import DirectClient
from pipeline.llm.litellm_client import LitellmClient
from pipeline.llm.local_model import LocalModel
from pipeline.llm.local_process import ChildSettings
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.settings import PipelineSettings
from voice.transcription.languages import language_name

_WARM_UP_TEXT = "Hello"
_WARM_UP_S = 120.0


class ModelClients:
    """The clients of all agents' models. Two agents with the same model share one: a second process
    of the embedded model would need its memory again."""

    def __init__(self, settings: Settings, clock: Clock, default: LlmClient | None = None) -> None:
        """`default` replaces the client of the model that `settings` name."""
        self._clock = clock
        self._settings = settings
        self._clients: dict[_ClientKey, LlmClient] = {}
        if default is not None:
            self._clients[_key(settings, settings.llm.model)] = default

    def main(self, settings: Settings) -> LlmClient:
        """The client of an agent's model."""
        return self._client(settings, settings.llm.model)

    def cheaper(self) -> LlmClient | None:
        """The client of the model for authors whose budget is nearly spent, the same for all agents; None if
        none is configured. It uses the address and key of [llm]: an agent's may be those of another provider.
        """
        model = self._settings.budget.cheaper_model
        return None if model is None else self._client(self._settings, model)

    def evaluator(self) -> LlmClient | None:
        """The client of the shield's evaluator; None if none is configured."""
        if self._settings.shield.evaluator is None:
            return None
        return self.main(evaluator_settings(self._settings))

    def classifier(self, settings: Settings) -> LlmClient | None:
        """The client of an agent's crisis classifier; None if it has none."""
        found = classifier_settings(settings)
        return None if found is None else self.main(found)

    def _client(self, settings: Settings, model: str) -> LlmClient:
        key = _key(settings, model)
        if key not in self._clients:
            self._clients[key] = _client(settings, model, self._clock)
        return self._clients[key]

    async def close(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            await client.close()


_ClientKey = tuple[str, str | None, SecretRef | None, int, int]


def _key(settings: Settings, model: str) -> _ClientKey:
    """What two agents must have in common to share the client of `model`."""
    llm = settings.llm
    context = model_limits(settings).context_tokens if model == "local" else 0
    return model, llm.api_base, llm.api_key, llm.retries, context


def _client(settings: Settings, model: str, clock: Clock) -> LlmClient:
    llm = settings.llm
    backend = resolve_backend(model, llm.api_base)
    key = llm.api_key.resolve() if llm.api_key is not None else None
    match backend.kind:
        case "scripted":
            return ScriptedLlm.from_spec(backend.model, clock=clock)
        case "local":
            child = ChildSettings(
                model_path=embedded_model(settings).path,
                context_tokens=model_limits(settings).context_tokens,
                threads=llm.local.threads,
            )
            return LocalModel(child, clock=clock)
        case "direct":
            return DirectClient(
                model=backend.model,
                clock=clock,
                api_base=backend.api_base or OPENAI,
                api_key=key,
                retries=llm.retries,
                label=model,
            )
        case "litellm":
            return LitellmClient(
                model=backend.model, clock=clock, api_base=backend.api_base, api_key=key, retries=llm.retries
            )


async def warm_up(llm: LlmClient, tools: Sequence[ToolDefinition]) -> None:
    """Load the model, and let the embedded one read the description of `tools`: otherwise the first message
    would wait for that, 555 tokens. Raises nothing except on cancellation."""
    await llm.warm_up()
    if not isinstance(llm, LocalModel) or not tools:
        return
    hello = ChatMessage(role="user", content=_WARM_UP_TEXT)
    request = LlmRequest(messages=(hello,), tools=tuple(tools), max_tokens=1, timeout_s=_WARM_UP_S)
    with contextlib.suppress(ModelError):
        async with contextlib.aclosing(llm.stream(request)) as items:
            async for _ in items:
                pass


def pipeline_settings(settings: Settings, llm: LlmClient) -> PipelineSettings:
    """The pipeline's limits and texts from the settings, for the model that answers."""
    models = (settings.llm.model, settings.budget.cheaper_model)
    limits = [model_limits(settings, model) for model in models if model is not None]
    return PipelineSettings(
        system_prompt=settings.bot.system_prompt,
        bot_name=settings.bot.name,
        language=_language(settings.agent.language),
        time_zone=settings.bot.time_zone or machine_zone(),
        tool_answers=isinstance(llm, LocalModel),
        judges=not isinstance(llm, LocalModel),
        # The cheaper model must accept the same prompt as the other one.
        max_answer_tokens=min(one.max_tokens for one in limits),
        temperature=settings.llm.temperature,
        llm_timeout_s=settings.llm.timeout_s or (120.0 if settings.llm.model == "local" else 60.0),
        turn_timeout_s=settings.turn.timeout_s,
        context_tokens=min(one.context_tokens for one in limits),
        confirm_below=settings.voice.confirm_below,
        choose_from_s=settings.voice.choose_from_s,
        called=(settings.bot.name, *settings.bot.called),
        vision=all(one.vision for one in limits),
        pictures_shown=settings.files.pictures_shown,
        token_ceiling=settings.agent.history_tokens,
        summarise_above=settings.agent.summarise_above,
        max_rounds=settings.agent.max_rounds,
        max_retries=settings.llm.retries,
        completion=_completion(settings),
        prompt="brief" if _is_small(settings) else "full",
        spam=settings.limits.spam,
        too_fast=settings.limits.too_fast,
        remember_facts=settings.agent.remember_facts,
        link_hosts=tuple(
            host.strip().strip(".").lower() for host in settings.tools.link_hosts if host.strip()
        ),
    )


def _language(tag: str | None) -> str:
    """The language's English name, with the whole tag if that says more; the tag in words where the table has
    no name."""
    if tag is None:
        return ""
    code, _, more = tag.partition("-")
    name = language_name(code)
    if not name:
        return f'the language with the code "{tag}"'
    return f"{name} ({tag})" if more else name


def _completion(settings: Settings) -> Literal["declared", "implicit", "nudged"]:
    """How a turn's end is recognised: small and scripted models declare no completion."""
    if settings.agent.completion != "auto":
        return settings.agent.completion
    return "implicit" if _is_small(settings) else "declared"


def _is_small(settings: Settings) -> bool:
    """Whether the model is the embedded or a scripted one."""
    return resolve_backend(settings.llm.model, settings.llm.api_base).kind in ("local", "scripted")
