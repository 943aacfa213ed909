"""What each enabled channel promises about its answers, for `parlour doctor`; nothing is started for it."""

from __future__ import annotations

from adapters.channel import Channel
from adapters.console.adapter import ConsoleAdapter, ConsoleSettings
from gateway.app.platforms import posting_channels
from gateway.app.web import make_page
from gateway.channels.timeline import StoreTimeline
from gateway.config import Settings
from gateway.runtime.http_server import Addresses
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import SystemClock


def delivery_guarantees(settings: Settings) -> list[tuple[str, str]]:
    """What each enabled channel promises about its answers, in words."""
    clock = SystemClock()
    timeline = StoreTimeline(MemoryStore(), clock)
    addresses = Addresses(settings.server.host, settings.server.port, ())
    page = make_page(settings, settings.data.dir, addresses, lambda _: False, timeline, clock)
    adapters: list[Channel] = [one.adapter for one in posting_channels(settings, timeline, clock)]
    if page.adapter:
        adapters.insert(0, page.adapter)
    if settings.channels.console.enabled:
        adapters.append(ConsoleAdapter(ConsoleSettings(), timeline, clock, lines=None, write=lambda _: None))
    return [(adapter.name, adapter.capabilities.guarantee) for adapter in adapters]
