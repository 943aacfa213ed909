"""Build the bus by configuration, and test it for the doctor."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from gateway.app.store import database_url
from gateway.cluster.bus import Bus
from gateway.cluster.in_process import InProcessBus
from gateway.cluster.remote import RemoteBus
from gateway.cluster.shared_counts import SharedCounts
from gateway.cluster.thread_cache import ThreadCache
from gateway.cluster.transport import Transport
from gateway.config import Settings
from gateway.runtime.metrics import Telemetry
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import new_id

_DOCTOR_S: Final = 5.0
_TRANSPORTS: Final = {
    "redis": ("gateway.cluster.redis_transport", "RedisTransport"),
    "postgres": ("gateway.cluster.postgres_transport", "PostgresTransport"),
}
"""Module and class, by `bus.kind`. Imported when configured: their libraries are optional."""


def build_bus(settings: Settings, clock: Clock, tasks: Supervisor, telemetry: Telemetry) -> Bus:
    """The configured bus, not yet opened. Raises ConfigurationError where its library is not installed."""
    transport = _transport(settings)
    if transport is None:
        return InProcessBus()
    servers = (transport, *_spare(settings))
    return RemoteBus(servers, clock, tasks.spawn, count_wake=telemetry.wake_sent)


def build_thread_cache(settings: Settings, clock: Clock, telemetry: Telemetry) -> ThreadCache | None:
    """The cache of threads in Redis; None where there is none."""
    bus = settings.bus
    if bus.kind != "redis" or bus.url is None or not bus.cache_s:
        return None
    # Imported when configured: its library is optional, and `build_bus` says if it is missing.
    from gateway.cluster.redis_cache import RedisThreadCache  # noqa: PLC0415 - as above

    return RedisThreadCache(bus.url.resolve(), ttl_s=bus.cache_s, clock=clock, count=telemetry.cache_read)


def build_shared_counts(settings: Settings, clock: Clock) -> SharedCounts | None:
    """The counts that several processes share in Redis; None where there are none."""
    bus = settings.bus
    if bus.kind != "redis" or bus.url is None or not settings.cluster.shared:
        return None
    # Imported when configured: its library is optional, and `build_bus` says if it is missing.
    from gateway.cluster.redis_counts import RedisCounts  # noqa: PLC0415 - as above

    return RedisCounts(bus.url.resolve(), clock=clock)


async def bus_state(settings: Settings, clock: Clock) -> tuple[bool, str] | None:
    """Whether the server answers, and what to say; None for a gateway in one process."""
    transport = _transport(settings)
    if transport is None:
        return None
    bus = RemoteBus((transport,), clock, Supervisor().spawn)
    await bus.open()
    try:
        async with clock.timeout(_DOCTOR_S):
            await bus.round_trip()
            began = clock.monotonic()
            await bus.round_trip()
            took = clock.monotonic() - began
    except TimeoutError:
        return False, f"{bus.trouble or f'{transport.name} does not answer'}; look at bus.url and the server"
    finally:
        await bus.close()
    carries = f"{transport.name} carries a signal in {1_000 * took:.1f} ms"
    good, cached = await _cache_state(settings, clock)
    return good, f"{carries}{cached}"


async def _cache_state(settings: Settings, clock: Clock) -> tuple[bool, str]:
    cache = build_thread_cache(settings, clock, Telemetry(clock))
    if cache is None:
        return True, ""
    thread = new_id("doctor")
    await cache.put(thread, 1, "x")
    kept = await cache.take(thread, 1)
    await cache.close()
    if kept is None:
        return False, (
            "; it keeps no conversation: the cache needs Redis 6.2 or Valkey, with memory left; "
            "or set bus.cache_s = 0"
        )
    return True, f", and keeps conversations for {settings.bus.cache_s} s"


def _spare(settings: Settings) -> tuple[Transport, ...]:
    """What carries signals among several processes while Redis is away: the database that they share."""
    if not settings.cluster.shared or settings.bus.kind != "redis":
        return ()
    return (_made("postgres", database_url(settings)),)


def _transport(settings: Settings) -> Transport | None:
    kind, url = settings.bus.kind, settings.bus.url
    if kind == "process" or url is None:
        return None
    return _made(kind, url.resolve())


def _made(kind: str, url: str) -> Transport:
    module, name = _TRANSPORTS[kind]
    try:
        make: Any = getattr(import_module(module), name)
    except ImportError as error:
        words = f'bus.kind: "{kind}" needs a library that is not installed; pip install "parlour[{kind}]"'
        raise ConfigurationError(words) from error
    transport: Transport = make(url)
    return transport
