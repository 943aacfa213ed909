"""Find the problems of the crisis classifier and of the operator's notices across settings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from gateway.config.agent_settings import classifier_settings
from gateway.config.problems import Problem, Source
from gateway.config.settings import Settings

_COMPATIBLE = "openai_compatible/"
_READS = ("safety.", "llm.", "agents.", "channels.")


def safety_problems(
    settings: Settings, bad: Collection[str], source_of: Callable[[str], Source]
) -> list[Problem]:
    """The problems; none where a setting that they are about has a bad value."""
    if any(path.startswith(_READS) for path in bad):
        return []
    return [*_classifier(settings, source_of), *_notice(settings, source_of)]


def _classifier(settings: Settings, source_of: Callable[[str], Source]) -> Iterator[Problem]:
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


def _notice(settings: Settings, source_of: Callable[[str], Source]) -> Iterator[Problem]:
    notice = settings.safety.notice
    for given, missing in (("channel", "chat"), ("chat", "channel"), ("account", "channel")):
        if getattr(notice, given) is not None and getattr(notice, missing) is None:
            path = f"safety.notice.{missing}"
            what = f"is missing, as safety.notice.{given} is set{_where(f'safety.notice.{given}', source_of)}"
            yield Problem(path=path, what=what, fix="name the channel and the chat, or neither")
            return
    if notice.channel is None:
        return
    where = _where("safety.notice.channel", source_of)
    known = [one for one in settings.channels.accounts() if one.settings.active]
    accounts = [one.settings.account for one in known if one.channel == notice.channel]
    if not accounts:
        names = ", ".join(dict.fromkeys(one.channel for one in known)) or "none"
        what = f"{notice.channel!a} is no channel that is on and can post{where}; there are: {names}"
        yield Problem(path="safety.notice.channel", what=what, fix="name one of these, or turn it on")
    elif notice.account is None and len(accounts) > 1:
        what = f"is missing, as {notice.channel} has several accounts{where}"
        yield Problem(path="safety.notice.account", what=what, fix=f"write one of {', '.join(accounts)}")
    elif notice.account is not None and notice.account not in accounts:
        what = f"{notice.account!a} is no account of {notice.channel} that is on{where}"
        yield Problem(path="safety.notice.account", what=what, fix=f"write one of {', '.join(accounts)}")


def _where(path: str, source_of: Callable[[str], Source]) -> str:
    source = source_of(path)
    return "" if source.kind == "default" else f" ({source.phrase()})"
