"""Get the settings of one agent: those of the default one, with what its table [agents.NAME] replaces. Also
those of a model that another setting names."""

from __future__ import annotations

from gateway.config.agents import DEFAULT_AGENT, AgentProfile
from gateway.config.settings import LlmSettings, Settings

_FORCED = "litellm/"


def agent_settings(settings: Settings, name: str) -> Settings:
    """All settings as they are for the agent `name`. Raises KeyError for an unknown one."""
    if name == DEFAULT_AGENT:
        return settings
    profile = settings.agents[name]
    tools = settings.tools
    if profile.tools is not None:
        groups = tuple(group for group in tools.groups if group in profile.tools)
        tools = tools.model_copy(update={"groups": groups, "enabled": tools.enabled and bool(groups)})
    return settings.model_copy(
        update={
            "llm": _llm(settings.llm, profile),
            "bot": settings.bot.model_copy(update=_given(profile, "system_prompt")),
            "agent": settings.agent.model_copy(
                update={
                    **_given(
                        profile,
                        "graph",
                        "gate",
                        "max_rounds",
                        "summarise_above",
                        "history_tokens",
                        "session_idle_s",
                        "language",
                        "voice",
                    ),
                    "workspace": profile.workspace or settings.agent.workspace,
                }
            ),
            "tools": tools,
            "safety": settings.safety.model_copy(
                update={} if profile.crisis_gate is None else {"gate": profile.crisis_gate}
            ),
        }
    )


def model_settings(settings: Settings, model: str) -> Settings:
    """The settings with another language model, which a person chose."""
    return settings.model_copy(update={"llm": _llm(settings.llm, AgentProfile(model=model))})


def evaluator_settings(settings: Settings) -> Settings:
    """The settings with the shield's evaluator as the language model. Call it only if there is one."""
    shield = settings.shield
    profile = AgentProfile.model_construct(
        model=shield.evaluator, api_base=shield.evaluator_api_base, api_key=shield.evaluator_api_key
    )
    return settings.model_copy(update={"llm": _llm(settings.llm, profile)})


def classifier_settings(settings: Settings) -> Settings | None:
    """The settings of an agent with its crisis classifier as the language model; None if it has none."""
    safety = settings.safety
    if safety.gate == "off" or safety.classifier is None:
        return None
    if safety.classifier == "agent":
        return None if settings.llm.model == "local" else settings
    profile = AgentProfile.model_construct(
        model=safety.classifier, api_base=safety.classifier_api_base, api_key=safety.classifier_api_key
    )
    return settings.model_copy(update={"llm": _llm(settings.llm, profile)})


def _llm(llm: LlmSettings, profile: AgentProfile) -> LlmSettings:
    """The model's settings. An address and its key belong together: a key is not sent to another provider or
    address, and limits are those of one model."""
    changed = _given(
        profile, "model", "choices", "timeout_s", "max_tokens", "context_tokens", "temperature", "vision"
    )
    if profile.model is not None and profile.model != llm.model:
        changed = {"max_tokens": None, "context_tokens": None, "vision": None, **changed}
        if _provider(profile.model) != _provider(llm.model):
            changed |= {"api_base": None, "api_key": None}
    if profile.api_base is not None and profile.api_base != llm.api_base:
        changed |= {"api_base": profile.api_base, "api_key": None}
    if profile.api_key is not None:
        changed["api_key"] = profile.api_key
    return llm.model_copy(update=changed)


def _given(profile: AgentProfile, *keys: str) -> dict[str, object]:
    """Those of the profile's settings that are set."""
    values = {key: getattr(profile, key) for key in keys}
    return {key: value for key, value in values.items() if value is not None}


def _provider(model: str) -> str:
    name = model.removeprefix(_FORCED)
    return name.partition(":")[0] if name.startswith("scripted:") else name.partition("/")[0]
