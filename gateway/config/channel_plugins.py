"""The channels that installed plug-ins add (entry points `parlour.channels`), as far as a configuration needs
them: which there are, and the settings of each.

A plug-in is imported when its table is read, or when all are listed. Not here: reading the values (`sources`,
`load`) and building the channels.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gateway.config.catalog import SettingInfo, described, dotted
from gateway.config.channel_kinds import ChannelKind
from gateway.config.channels import MORE, POSTING, ChannelsSettings
from gateway.config.posting import PostingSettings
from pipeline.domain.frozen import dataclass
from pipeline.plugins import Group, Plugin, installed, offered

GROUP: Group = "parlour.channels"
SHIPPED = ("web", "console", *POSTING)
"""The shipped channels, whose names no plug-in can take."""
_WITHOUT_TABLE = ("api",)
"""Further channels, which have no table below [channels]."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
_NUMBER = re.compile(r"[1-9][0-9]{0,2}")
_CHANNEL_DEPTH = 2
"""The parts of the path of a channel's table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedKind:
    """A channel that can be configured: the value of its `Plugin`."""

    kind: ChannelKind
    settings: Mapping[str, SettingInfo]
    """By key."""


@functools.cache
def offered_channels() -> Mapping[str, str]:
    """The package of each channel that a plug-in offers, also of those that are left out."""
    return offered(GROUP)


@functools.cache
def channel_plugin(name: str) -> tuple[Plugin, ...]:
    """The plug-ins that offer the channel `name`; the value of a usable one is a CheckedKind. Imports them on
    the first call."""
    return installed(GROUP, _checked, only=name)


def channel_plugins() -> tuple[Plugin, ...]:
    """Every plug-in with a channel, by name. Imports them all."""
    return tuple(one for name in sorted(offered_channels()) for one in channel_plugin(name))


def added_channel(path: tuple[str, ...]) -> Plugin | None:
    """The plug-in of the channel whose table, or a setting in it, is at `path`: the usable one, or the first
    that is left out. None for a shipped channel, and where no plug-in offers it."""
    if path[:1] != ("channels",) or len(path) < _CHANNEL_DEPTH or path[1] in SHIPPED:
        return None
    found = channel_plugin(path[1]) if path[1] in offered_channels() else ()
    return next((one for one in found if not one.problem), next(iter(found), None))


def find_added_setting(path: tuple[str, ...]) -> SettingInfo | None:
    """The setting at `path` in a table of a plug-in's channel."""
    plugin = added_channel(path)
    if plugin is None or plugin.problem or not _is_table(path[:-1]):
        return None
    known: SettingInfo | None = plugin.value.settings.get(path[-1])
    return None if known is None else replace(known, path=dotted(path))


def is_added_table(path: tuple[str, ...]) -> bool:
    """Whether `path` is that of a table of a usable plug-in's channel."""
    plugin = added_channel(path)
    return plugin is not None and not plugin.problem and _is_table(path)


def remedy_for_channel(path: tuple[str, ...]) -> str:
    """A hint for an unknown path in [channels]: the nearest setting or channel, else those that exist."""
    plugin = added_channel(path)
    if plugin is not None:
        keys = plugin.value.settings
        close = difflib.get_close_matches(path[-1][:80], keys, n=1, cutoff=0.7)
        table = f"channels.{path[1]}"
        return f"did you mean {table}.{close[0]}?" if close else f"known in {table}: {', '.join(keys)}"
    plugged = [f"{name} ({package})" for name, package in sorted(offered_channels().items())]
    close = difflib.get_close_matches(path[1][:80], (*SHIPPED, *offered_channels()), n=1, cutoff=0.7)
    if close:
        return f"did you mean channels.{close[0]}?"
    added = f"installed plug-ins add {', '.join(plugged)}" if plugged else "no installed plug-in adds one"
    return f"the shipped channels are {', '.join(SHIPPED)}; {added}"


def _is_table(path: tuple[str, ...]) -> bool:
    if len(path) == _CHANNEL_DEPTH + 1:
        return _NUMBER.fullmatch(path[2]) is not None
    return len(path) == _CHANNEL_DEPTH


def _checked(name: str, value: Any) -> CheckedKind:
    """Raises TypeError and ValueError, in words for the plug-in's author."""
    if not isinstance(value, ChannelKind):
        raise TypeError(f"expected a ChannelKind, not {type(value).__name__}")
    if not _NAME.fullmatch(name):
        raise ValueError(
            "the name of a channel has up to 32 of the characters a-z, 0-9 and -, a letter first"
        )
    if name in (*SHIPPED, *_WITHOUT_TABLE) or name.endswith(MORE) or name in ChannelsSettings.model_fields:
        raise ValueError(f"{name} is the name of a shipped channel")
    functions: tuple[object, ...] = (value.build, value.identity or value.build)
    if not all(callable(one) for one in functions):
        raise TypeError("build and identity of a ChannelKind are functions")
    return CheckedKind(kind=value, settings=_described(name, value.settings))


def _described(name: str, settings: object) -> Mapping[str, SettingInfo]:
    if not (isinstance(settings, type) and issubclass(settings, PostingSettings)):
        raise TypeError("the settings of a ChannelKind are a class derived from PostingSettings")
    try:
        needed = settings.needed()
    except IndexError as error:
        raise TypeError(
            f"{settings.__name__} names no setting that it needs: set NEEDED or SECRETS"
        ) from error
    unknown = {needed, *settings.SECRETS} - settings.model_fields.keys()
    if unknown:
        raise TypeError(f"{settings.__name__} has no setting {', '.join(sorted(unknown))}")
    settings()  # a table may be empty
    return described(settings, f"channels.{name}")
