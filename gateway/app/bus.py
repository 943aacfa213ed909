"""Build the bus by configuration, and test it for the doctor."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from gateway.app.store import database_url
from gateway.cluster.bus import Bus
from gateway.cluster.in_process import InProcessBus
from gateway.cluster.remote import RemoteBus
from gateway.cluster.transport import Transport
from gateway.config import Settings
from gateway.runtime.tasks import Supervisor
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError

_DOCTOR_S: Final = 5.0
_TRANSPORTS: Final = {
    "redis": ("gateway.cluster.redis_transport", "RedisTransport"),
    "postgres": ("gateway.cluster.postgres_transport", "PostgresTransport"),
}
"""Module and class, by `bus.kind`. Imported when configured: their libraries are optional."""


def build_bus(settings: Settings, clock: Clock, tasks: Supervisor) -> Bus:
    """The configured bus, not yet opened. Raises ConfigurationError where its library is not installed."""
    transport = _transport(settings)
    if transport is None:
        return InProcessBus()
    return RemoteBus((transport, *_spare(settings)), clock, tasks.spawn)


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
    except TimeoutError:
        return False, f"{bus.trouble or f'{transport.name} does not answer'}; look at bus.url and the server"
    finally:
        await bus.close()
    return True, f"{transport.name} carries a signal in {1_000 * (clock.monotonic() - began):.1f} ms"


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
