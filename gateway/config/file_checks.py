"""Find problems between settings that are valid one by one, and in the secrets and files they refer to.

Not here: the rules themselves (`cross_checks`, `channel_rules`, `token_formats`) and checks of single values
(`value_checks`).
"""

from __future__ import annotations

from collections.abc import Callable

from gateway.config.channel_rules import channel_rules
from gateway.config.cross_checks import RULES
from gateway.config.memory_rules import MEMORY_RULES
from gateway.config.problems import Problem, SettingSource
from gateway.config.secrets import SecretUnavailable
from gateway.config.settings import Settings
from gateway.config.storage_rules import STORAGE_RULES
from gateway.config.token_formats import shape_problem
from pipeline.domain.errors import ConfigurationError
from pipeline.safety.resources import read_resources, shipped_resources
from pipeline.shield.policy_file import read_policy
from pipeline.tools.mcp_config import read_mcp_file

SourceOf = Callable[[str], SettingSource]

_CLASSIFIER = ("model.onnx", "tokenizer.json")


def cross_problems(settings: Settings, bad: frozenset[str], source_of: SourceOf) -> list[Problem]:
    """The broken rules, without those that read a setting in `bad`."""
    return [
        Problem(
            path=rule.path,
            what=rule.what + _where(source_of(rule.caused_by or rule.path)),
            fix=rule.fix,
        )
        for rule in (*RULES, *STORAGE_RULES, *MEMORY_RULES, *channel_rules(settings))
        if bad.isdisjoint(rule.reads) and rule.broken(settings)
    ]


def _where(source: SettingSource) -> str:
    return "" if source.kind == "default" else f" ({source.phrase()})"


def secret_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """Problems with references that do not resolve now, with secrets of the wrong format, and with a bot's
    token that two accounts have."""
    problems = []
    credentials = {f"{one.path}.{one.settings.needed()}" for one in settings.channels.accounts()}
    users: dict[str, str] = {}
    for path, reference in settings.secret_refs().items():
        try:
            value = reference.resolve()
            wrong = shape_problem(path, value)
            if wrong is None and path in credentials and (other := users.setdefault(value, path)) != path:
                wrong = (f"is the token of {other} too", "use another bot's token for each account")
        except SecretUnavailable as error:
            wrong = (error.what, error.fix)
        if wrong is not None:
            what, fix = wrong
            problems.append(
                Problem(path=path, what=f"{what} (referred to {source_of(path).phrase()})", fix=fix)
            )
    return problems


def policy_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """Problems in the operator's security policy, one for each mistake."""
    path = settings.shield.policy
    if path is None:
        return []
    try:
        read_policy(path)
    except ConfigurationError as error:
        where = f"(referred to {source_of('shield.policy').phrase()})"
        return [
            Problem(
                path="shield.policy", what=f"{line} {where}", fix="correct the file, or remove the setting"
            )
            for line in str(error).splitlines()
        ]
    return []


def classifier_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """Problems with the folder of the operator's classifier. The gateway loads it when it starts, and says
    then whether it can be used."""
    folder = settings.shield.classifier
    if folder is None:
        return []
    if not folder.is_dir():
        what = f"{folder} is no folder"
    elif missing := [name for name in _CLASSIFIER if not (folder / name).is_file()]:
        what = f"{folder} has no {' and no '.join(missing)}"
    else:
        return []
    where = f"(referred to {source_of('shield.classifier').phrase()})"
    fix = f"name a folder with {' and '.join(_CLASSIFIER)}, or remove the setting"
    return [Problem(path="shield.classifier", what=f"{what} {where}", fix=fix)]


def resource_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """Problems in the operator's file of numbers of help, and with the country of people who name none."""
    path, country = settings.safety.resources, settings.safety.country
    book = shipped_resources()
    try:
        book = book if path is None else book.with_own(read_resources(path))
    except ConfigurationError as error:
        what = f"{error} (referred to {source_of('safety.resources').phrase()})"
        return [Problem(path="safety.resources", what=what, fix="correct the file, or remove the setting")]
    if country is None or book.of(country) is not None:
        return []
    what = f"{country!a} is not among the countries{_where(source_of('safety.country'))}"
    fix = f"write one of {', '.join(book.codes)}, or add it to safety.resources"
    return [Problem(path="safety.country", what=what, fix=fix)]


def mcp_problems(settings: Settings, source_of: SourceOf) -> list[Problem]:
    """Problems in the file of MCP servers. Reads a small file; starts nothing."""
    path = settings.tools.mcp_file
    if path is None or not settings.tools.enabled:
        return []
    try:
        read_mcp_file(path)
    except ConfigurationError as error:
        what = f"{error} (referred to {source_of('tools.mcp_file').phrase()})"
        return [Problem(path="tools.mcp_file", what=what, fix="correct the file, or remove the setting")]
    return []
