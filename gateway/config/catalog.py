"""List all settings, derived from the models: path, kind, default, bounds as text, explanation.

Not here: the models themselves (`settings`) and the given values (`sources`).
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gateway.config.agents import AgentProfile, RouteSettings
from gateway.config.api import ApiToken, ApiWebhook
from gateway.config.channels import MORE, POSTING
from gateway.config.secrets import SecretRef
from gateway.config.settings import Settings
from pipeline.domain.frozen import dataclass

Kind = Literal["flag", "integer", "number", "text", "choice", "path", "list", "secret"]

_ACCOUNT = re.compile(r"[2-9]|[1-9][0-9]{1,2}")
_ACCOUNT_DEPTH = 3
"""The parts of the path of a further table of a posting channel, such as channels.telegram.2."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LONGEST_KEY = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingInfo:
    """The documentation of one setting."""

    path: str
    kind: Kind
    default: object
    """The model's default; None for a setting that is absent by default."""
    example: object
    """A valid value: the default, or for an absent one the value that the documentation shows."""
    expected: str
    """The accepted values, as text that fits after "expected"."""
    choices: tuple[str, ...]
    description: str

    @property
    def section(self) -> str:
        return self.path.rpartition(".")[0]

    @property
    def key(self) -> str:
        return self.path.rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedTable:
    """A table that the file may have several times: by name, or in an array."""

    header: str
    """As in the file: `[agents.NAME]`."""
    title: str
    name: re.Pattern[str]
    """What a table may be called; in an array, its number from 1."""
    name_fix: str
    settings: Mapping[str, SettingInfo]
    """By key; the path of each is that of the documentation."""


def dotted(path: tuple[str, ...]) -> str:
    """`path` in TOML: parts that are not bare keys are quoted, long ones shortened."""
    return ".".join(_key(part) for part in path)


def toml_value(value: object) -> str:
    """A setting's value as TOML. A secret is written as its reference."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case tuple() | list():
            return "[" + ", ".join(toml_value(item) for item in value) + "]"
        case str() | Path() | SecretRef():
            return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            raise TypeError(f"no setting holds a {type(value).__name__}")


def find_setting(path: tuple[str, ...]) -> SettingInfo | None:
    """The setting at `path`, also one of a table that repeats."""
    if is_account(path[:_ACCOUNT_DEPTH]):
        first = SETTINGS.get(dotted(_of_first(path)))
        is_one = first is not None and len(path) == _ACCOUNT_DEPTH + 1
        return replace(first, path=dotted(path)) if is_one and first is not None else None
    root = repeated_at(path)
    if not root:
        return SETTINGS.get(dotted(path))
    if not is_repeated_table(path[:-1]):
        return None
    known = REPEATED[root].settings.get(path[-1])
    return None if known is None else replace(known, path=dotted(path))


def is_section(path: tuple[str, ...]) -> bool:
    """Whether there is a table at `path`, or tables below it."""
    if is_account(path):
        return True
    root = repeated_at(path)
    if not root:
        return dotted(path) in SECTIONS
    return root == dotted(path) or is_repeated_table(path)


def repeated_at(path: tuple[str, ...]) -> str:
    """The key in REPEATED of the tables in which `path` is; empty where it is in none."""
    return next((name for end in (1, 2) if (name := ".".join(path[:end])) in REPEATED), "")


def is_repeated_table(path: tuple[str, ...]) -> bool:
    """Whether `path` is that of a table that repeats, such as agents.support."""
    root = repeated_at(path)
    is_one = bool(root) and len(path) == _depth(root) + 1
    return is_one and REPEATED[root].name.fullmatch(path[-1]) is not None


def _depth(root: str) -> int:
    return root.count(".") + 1


def is_account(path: tuple[str, ...]) -> bool:
    """Whether `path` is that of a second or further table of a posting channel."""
    is_channel = path[:1] == ("channels",) and len(path) == _ACCOUNT_DEPTH and path[1] in POSTING
    return is_channel and _ACCOUNT.fullmatch(path[2]) is not None


def _of_first(path: tuple[str, ...]) -> tuple[str, ...]:
    """The path of the same setting in the channel's first table."""
    return path[: _ACCOUNT_DEPTH - 1] + path[_ACCOUNT_DEPTH:]


def remedy_for_unknown(path: tuple[str, ...]) -> str:
    """A hint for the unknown `path`: the nearest setting, else the keys that exist there."""
    if repeated_at(path):
        return _remedy_in_repeated(path)
    if is_account(path[:_ACCOUNT_DEPTH]):
        path = _of_first(path)
    parent = dotted(path[:-1])
    if parent in SETTINGS:
        return f"did you mean {parent}?"
    section = _nearest_section(path)
    prefix = f"{section}." if section else ""
    known = [*SETTINGS, *(name for name in SECTIONS if name), *REPEATED]
    below = {name.removeprefix(prefix): name for name in known if name.startswith(prefix)}
    # Compared up to a length, because the time of a comparison grows with its square.
    given = ".".join(path).removeprefix(prefix)[:_LONGEST_KEY]
    close = [below[name] for name in difflib.get_close_matches(given, below, n=1, cutoff=0.7)]
    close = close or [name for name in known if name.rpartition(".")[2] == path[-1]]
    if close:
        return f"did you mean {close[0]}?"
    keys = ", ".join(name for name in below if "." not in name)
    return f"known in {section}: {keys}" if section else f"known sections: {keys}"


def _remedy_in_repeated(path: tuple[str, ...]) -> str:
    root = repeated_at(path)
    table, depth = REPEATED[root], _depth(root)
    if len(path) > depth and not table.name.fullmatch(path[depth]):
        return table.name_fix
    if len(path) < depth + 2:
        return f"write the tables {table.header}"
    close = difflib.get_close_matches(path[-1][:_LONGEST_KEY], table.settings, n=1, cutoff=0.7)
    return f"did you mean {close[0]}?" if close else f"known in {table.header}: {', '.join(table.settings)}"


def _key(part: str) -> str:
    shown = part if len(part) <= _LONGEST_KEY else part[:_LONGEST_KEY] + "…"
    return shown if _BARE_KEY.fullmatch(shown) else json.dumps(shown)


def _nearest_section(path: tuple[str, ...]) -> str:
    section = ""
    for length in range(1, len(path)):
        name = dotted(path[:length])
        if name not in SECTIONS:
            break
        section = name
    return section


def _fields_of(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, FieldInfo | type[BaseModel]]]:
    yield prefix, model
    sections = []
    # Inherited settings come after the section's own.
    shared = {name for base in model.__bases__ for name in getattr(base, "model_fields", {})}
    for name, info in sorted(model.model_fields.items(), key=lambda field: field[0] in shared):
        path = f"{prefix}.{name}".lstrip(".")
        if path in _REPEATED_MODELS:
            continue
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            sections.append((path, info.annotation))
        else:
            yield path, info
    for path, section in sections:
        yield from _fields_of(section, path)


def described(model: type[BaseModel], path: str) -> dict[str, SettingInfo]:
    """The settings of a table by key, those of the class itself before the inherited ones. Raises TypeError
    that names the setting whose type or bounds no table can have."""
    shared = {name for base in model.__bases__ for name in getattr(base, "model_fields", {})}
    found = {}
    for key, info in sorted(model.model_fields.items(), key=lambda field: field[0] in shared):
        try:
            found[key] = _describe(f"{path}.{key}", info)
        except (KeyError, TypeError, ValueError) as error:
            needs = "a type that a table can hold, and a number or text its bounds"
            raise TypeError(f"{model.__name__}.{key} needs {needs}") from error
    return found


def _repeated(model: type[BaseModel], *, header: str, path: str, name: str, name_fix: str) -> RepeatedTable:
    settings = {key: _describe(f"{path}.{key}", info) for key, info in model.model_fields.items()}
    title = " ".join((model.__doc__ or "").split())
    return RepeatedTable(
        header=header, title=title, name=re.compile(name), name_fix=name_fix, settings=settings
    )


def _describe(path: str, info: FieldInfo) -> SettingInfo:
    annotation = _without_none(info.annotation)
    kind = _kind(annotation)
    choices = get_args(annotation) if kind == "choice" else ()
    extra = info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}
    default = info.default
    return SettingInfo(
        path=path,
        kind=kind,
        default=default,
        example=info.examples[0] if info.examples else default,
        expected=str(extra.get("expected") or _expected(kind, choices, info)),
        choices=choices,
        description=info.description or "",
    )


def _without_none(annotation: object) -> object:
    if get_origin(annotation) in (Union, UnionType):
        [annotation] = [member for member in get_args(annotation) if member is not NoneType]
    # An Annotated within an optional type keeps its metadata; the plain type is its first argument.
    return (
        getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    )


def _kind(annotation: object) -> Kind:
    kinds: dict[object, Kind] = {
        bool: "flag",
        int: "integer",
        float: "number",
        str: "text",
        Path: "path",
        SecretRef: "secret",
    }
    if get_origin(annotation) is Literal:
        return "choice"
    return "list" if get_origin(annotation) is tuple else kinds[annotation]


def _expected(kind: Kind, choices: tuple[str, ...], info: FieldInfo) -> str:
    bounds: dict[type, object] = {type(item): item for item in info.metadata}
    match kind:
        case "flag":
            return "true or false"
        case "integer" | "number":
            low, high = bounds[Ge], bounds[Le]
            noun = "a whole number" if kind == "integer" else "a number"
            return f"{noun} from {getattr(low, 'ge', None)} to {getattr(high, 'le', None)}"
        case "text":
            low, high = bounds[MinLen], bounds[MaxLen]
            return f"text of {getattr(low, 'min_length', 0)} to {getattr(high, 'max_length', 0)} characters"
        case "choice":
            *first, last = (json.dumps(choice) for choice in choices)
            return f"{', '.join(first)} or {last}"
        case "path":
            return "a path"
        case "list":
            return "a list"
        case "secret":
            return '"env:NAME" or "file:PATH"'


_REPEATED_MODELS = (
    "agents",
    "routes",
    "api.tokens",
    "api.webhooks",
    *(f"channels.{channel}{MORE}" for channel in POSTING),
    "channels.plugged",  # no setting
)
_ALL = tuple(_fields_of(Settings, ""))

SETTINGS: Mapping[str, SettingInfo] = MappingProxyType(
    {path: _describe(path, info) for path, info in _ALL if isinstance(info, FieldInfo)}
)
"""Every setting of a single table by dotted path, in the order of the documentation."""

SECTIONS: Mapping[str, str] = MappingProxyType(
    {path: (info.__doc__ or "").strip() for path, info in _ALL if not isinstance(info, FieldInfo)}
)
"""Every single section by dotted path with its title; the whole file is the section with the empty path."""

REPEATED: Mapping[str, RepeatedTable] = MappingProxyType(
    {
        "agents": _repeated(
            AgentProfile,
            header="[agents.NAME]",
            path="agents.NAME",
            name=r"[a-z][a-z0-9_-]{0,31}",
            name_fix="a name has up to 32 characters: small letters, digits, - and _, with a letter first",
        ),
        "routes": _repeated(
            RouteSettings,
            header="[[routes]]",
            path="routes",
            name=r"[1-9][0-9]{0,3}",
            name_fix="write the tables [[routes]]",
        ),
        **{
            path: _repeated(
                model,
                header=f"[{path}.NAME]",
                path=f"{path}.NAME",
                name=r"[a-z][a-z0-9-]{0,31}",
                name_fix="a name has up to 32 characters: small letters, digits and -, with a letter first",
            )
            for path, model in (("api.tokens", ApiToken), ("api.webhooks", ApiWebhook))
        },
    }
)
"""The tables that repeat, by the beginning of their paths."""
