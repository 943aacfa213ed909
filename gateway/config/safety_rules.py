"""Find the problems of the crisis classifier, the vectors and the operator's notices across settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gateway.config.agent_settings import classifier_settings
from gateway.config.chat_place_rules import place_problems
from gateway.config.problems import Problem, SettingSource
from gateway.config.settings import Settings
from pipeline.memory.local_embedder import is_installed

_COMPATIBLE = "openai_compatible/"
_READS = ("safety.", "llm.", "agents.", "channels.")


def safety_problems(
    settings: Settings, bad: Collection[str], source_of: Callable[[str], SettingSource]
) -> list[Problem]:
    """The problems; none where a setting that they are about has a bad value."""
    if any(path.startswith(_READS) for path in bad):
        return []
    return [
        *_classifier(settings, source_of),
        *_vectors(settings, source_of),
        *place_problems("safety.notice", settings, settings.safety.notice, source_of),
    ]


def _classifier(settings: Settings, source_of: Callable[[str], SettingSource]) -> Iterator[Problem]:
    safety = settings.safety
    if safety.classifier in (None, "agent"):
        why = "is not set" if safety.classifier is None else 'is "agent"'
        for key in ("classifier_api_base", "classifier_api_key"):
            if getattr(safety, key) is not None:
                path = f"safety.{key}"
                what = f"has no effect, as safety.classifier {why}{_where(path, source_of)}"
                yield Problem(path=path, what=what, fix="remove it or name a model in safety.classifier")
        return
    where = _where("safety.classifier", source_of)
    if safety.classifier == "local":
        what = "is the embedded model, which is too small and too slow to judge every message"
        fix = "name a hosted model, or remove the setting"
        yield Problem(path="safety.classifier", what=what + where, fix=fix)
    elif str(safety.classifier).startswith(_COMPATIBLE):
        found = classifier_settings(settings)
        if found is not None and found.llm.api_base is None:
            what = f"is missing, as safety.classifier names no provider{where}"
            fix = "write the address of the endpoint"
            yield Problem(path="safety.classifier_api_base", what=what, fix=fix)


def _vectors(settings: Settings, source_of: Callable[[str], SettingSource]) -> Iterator[Problem]:
    if settings.safety.vectors == "local" and not is_installed():
        what = f"is local, and the model is not installed{_where('safety.vectors', source_of)}"
        yield Problem(path="safety.vectors", what=what, fix="run: pip install 'parlour[memory]'")


def _where(path: str, source_of: Callable[[str], SettingSource]) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
