"""Plug-ins that add channels, as sources of modules, and the import path on which they are installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

import gateway.app.plugin_channels
import pipeline.plugins
from gateway.config.channel_plugins import channel_plugin, offered_channels
from tests.support.plugin_package import install

_T = TypeVar("_T")

HARBOUR = '''
import threading

from adapters.channel import RateLimits
from gateway.config.channel_kinds import ChannelKind
from gateway.config.posting import PostingSettings
from gateway.config.secrets import SecretRef
from gateway.config.section import setting
from tests.support.channel import MemoryChannel
from tests.support.posting_channel import MemoryPosts

BUILT = {}


class HarbourSettings(PostingSettings):
    """[channels.harbour]: a channel for tests."""

    SECRETS = ("key",)

    key: SecretRef | None = setting(None, "The key, by reference.", example="env:KEY")
    berth: int = setting(1, "The number of the berth.", ge=1, le=9)

    def mistakes(self):
        if self.berth == 9:
            yield "berth", "is taken", "choose another"


def build(settings, context):
    posts = MemoryPosts(rates=context.rates(RateLimits(account_per_s=2.0)))
    posts.name, posts.account = context.name, settings.account
    BUILT[settings.account] = posts
    return posts


def build_showing(settings, context):
    shown = MemoryChannel()
    shown.name, shown.account = context.name, settings.account
    BUILT[settings.account] = shown
    return shown


class QuarrelsomeSettings(HarbourSettings):
    def mistakes(self):
        raise KeyError("the key is sesame")


class Lying(MemoryPosts):
    def health(self):
        return "fine"


def build_lying(settings, context):
    posts = Lying()
    posts.name, posts.account = context.name, settings.account
    BUILT[settings.account] = posts
    return posts


def build_raising(settings, context):
    raise KeyError("the key is sesame")


def build_misnamed(settings, context):
    return MemoryPosts()


harbour = ChannelKind(settings=HarbourSettings, build=build)
showing = ChannelKind(settings=HarbourSettings, build=build_showing)
lying = ChannelKind(settings=HarbourSettings, build=build_lying)
raising = ChannelKind(settings=HarbourSettings, build=build_raising)
misnamed = ChannelKind(settings=HarbourSettings, build=build_misnamed)
objects = ChannelKind(settings=HarbourSettings, build=lambda settings, context: object())
hanging = ChannelKind(settings=HarbourSettings, build=lambda settings, context: threading.Event().wait())
quarrelsome = ChannelKind(settings=QuarrelsomeSettings, build=build)
untyped = ChannelKind(settings=dict, build=build)
'''
RAISES = "raise RuntimeError('no\\nlicence')"
HANGS = "import threading\nthreading.Event().wait()\n"

BROKEN = {
    "pier": "demo_pier:x",
    "reef": "demo_reef:x",
    "shoal": "demo_harbour:untyped",
    "sand": "demo_harbour:BUILT",
}
"""By channel, an entry point that cannot be used: its import raises or hangs, or its object is of no use."""
_HANGING = {"plug-in reef", "channel hanging"}
"""What never returns: it is waited for in full."""
_HANGING_S = 0.05
_in_time = pipeline.plugins.in_time


@contextmanager
def channel_plugins(folder: Path, monkeypatch: pytest.MonkeyPatch, **channels: str) -> Iterator[None]:
    """Install a package in `folder` that offers the channels, each by its name and entry point. The limits
    are those that ship, but what hangs is waited for as short as can be."""
    monkeypatch.setattr(pipeline.plugins, "in_time", _in_short_time)
    monkeypatch.setattr(gateway.app.plugin_channels, "in_time", _in_short_time)
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    modules = {"demo_harbour": HARBOUR, "demo_pier": RAISES, "demo_reef": HANGS}
    install(folder, modules, {"parlour.channels": channels})
    _forget()
    try:
        yield
    finally:
        _forget()


def _in_short_time(call: Callable[[], _T], wait_s: float, *, name: str) -> _T:
    """As `in_time`, with all the time for what returns."""
    return _in_time(call, min(wait_s, _HANGING_S) if name in _HANGING else wait_s, name=name)


def _forget() -> None:
    channel_plugin.cache_clear()
    offered_channels.cache_clear()
    for name in [name for name in sys.modules if name.startswith("demo_")]:
        del sys.modules[name]
    importlib.invalidate_caches()
