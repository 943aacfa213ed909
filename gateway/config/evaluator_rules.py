"""Find the problems of the shield's evaluator across settings: it must not judge its own proposals."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gateway.config.agent_settings import agent_settings, evaluator_settings
from gateway.config.problems import Problem, SettingSource
from gateway.config.settings import Settings
from pipeline.llm.backends import resolve_backend

_FORCED = "litellm/"
_COMPATIBLE = "openai_compatible/"
_ANY_ADDRESS = "http://127.0.0.1"
_READS = ("shield.", "llm.", "agents.", "budget.")


def evaluator_problems(
    settings: Settings, bad: Collection[str], source_of: Callable[[str], SettingSource]
) -> list[Problem]:
    """The problems; none where a setting that they are about has a bad value."""
    if any(path.startswith(_READS) for path in bad):
        return []
    shield = settings.shield
    found = []
    if shield.evaluator is None:
        for path in ("shield.evaluator_api_base", "shield.evaluator_api_key"):
            if getattr(shield, path.removeprefix("shield.")) is not None:
                what = f"has no effect, as shield.evaluator is not set{_where(path, source_of)}"
                found.append(
                    Problem(path=path, what=what, fix="remove it or name a model in shield.evaluator")
                )
        return found
    where = _where("shield.evaluator", source_of)
    if what := _problem(settings, shield.evaluator):
        fix = "name another model, or remove the setting"
        found.append(Problem(path="shield.evaluator", what=what + where, fix=fix))
    if shield.evaluator.startswith(_COMPATIBLE) and evaluator_settings(settings).llm.api_base is None:
        what = f"is missing, as shield.evaluator names no provider{where}"
        found.append(
            Problem(path="shield.evaluator_api_base", what=what, fix="write the address of the endpoint")
        )
    return found


def _problem(settings: Settings, evaluator: str) -> str:
    """Why that model cannot be the evaluator; empty if it can."""
    if evaluator == "local":
        return "is the embedded model, which is too small to judge actions"
    same = next((path for path, model in _proposing(settings) if _name(model) == _name(evaluator)), None)
    return f"is also {same}, which proposes actions, and a model must not judge itself" if same else ""


def _proposing(settings: Settings) -> Iterator[tuple[str, str]]:
    """The models that may answer, each with its setting."""
    yield "llm.model", settings.llm.model
    for model in settings.llm.choices:
        yield "one of llm.choices", model
    if settings.budget.cheaper_model is not None:
        yield "budget.cheaper_model", settings.budget.cheaper_model
    for name in settings.agents:
        llm = agent_settings(settings, name).llm
        yield f"agents.{name}.model", llm.model
        for model in llm.choices:
            yield f"one of agents.{name}.choices", model


def _name(model: str) -> tuple[str, str]:
    """What two names of one model have in common, whatever the address."""
    backend = resolve_backend(model.removeprefix(_FORCED), _ANY_ADDRESS)
    return backend.kind, backend.model.casefold()


def _where(path: str, source_of: Callable[[str], SettingSource]) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
