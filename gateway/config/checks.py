"""Rules across settings, and whether the secrets that are referred to can be read.

Not here: what a single value may be (`settings`, `values`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.config.problems import Problem, Source
from gateway.config.secrets import SecretUnavailable
from gateway.config.settings import Settings
from gateway.config.values import is_loopback

SourceOf = Callable[[str], Source]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """A rule, told at the setting `path`, that makes sense only if all of `reads` are valid."""

    path: str
    reads: tuple[str, ...]
    broken: Callable[[Settings], bool]
    what: str
    fix: str


_RULES = (
    _Rule(
        path="server.host",
        reads=("server.host", "server.public_origins", "channels.web.enabled"),
        broken=lambda settings: (
            settings.channels.web.enabled
            and not is_loopback(settings.server.host)
            and not settings.server.public_origins
        ),
        what="other machines could connect, but no page outside this machine is allowed",
        fix='set server.public_origins to the origins people use, like ["https://bot.example.org"], or '
        'server.host to "127.0.0.1"',
    ),
    _Rule(
        path="llm.api_key",
        reads=("llm.api_key", "llm.model"),
        broken=lambda settings: settings.llm.model == "local" and settings.llm.api_key is not None,
        what='has no effect, as llm.model is "local"',
        fix="remove it or name another model",
    ),
    _Rule(
        path="llm.api_base",
        reads=("llm.api_base", "llm.model"),
        broken=lambda settings: settings.llm.model == "local" and settings.llm.api_base is not None,
        what='has no effect, as llm.model is "local"',
        fix="remove it or name another model",
    ),
)


def cross_problems(settings: Settings, bad: frozenset[str], source_of: SourceOf) -> list[Problem]:
    """Broken rules, leaving out those that read a setting in `bad`."""
    return [
        Problem(path=rule.path, what=f"{rule.what} ({source_of(rule.path).phrase()})", fix=rule.fix)
        for rule in _RULES
        if bad.isdisjoint(rule.reads) and rule.broken(settings)
    ]


def secret_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """The references that do not resolve now."""
    problems = []
    for path, reference in settings.secret_refs().items():
        try:
            reference.resolve()
        except SecretUnavailable as error:
            what = f"{error.what} (referred to {source_of(path).phrase()})"
            problems.append(Problem(path=path, what=what, fix=error.fix))
    return problems
