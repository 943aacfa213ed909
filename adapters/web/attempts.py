"""Count wrong access tokens by address, and report them to the log and the metrics.

Nothing here checks a token or blocks a right one: a person who shares an address with an attacker, through a
proxy for example, must still get in. Guessing is infeasible because of the token's length: 144 random bits in
a generated one, at least 16 characters in a configured one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.rates import SlidingWindow

_log = logging.getLogger(__name__)
_MAX_FAILURES = 5
_WINDOW_S = 60.0
_MAX_ADDRESSES = 1_000
_LOG_EVERY_S = 60.0


class WrongTokens:
    """Counts wrong tokens over the last minute. `where` names the route in the log; `on_wrong` counts
    each. `elsewhere` gets each network, and returns how many other processes had from it."""

    def __init__(
        self,
        clock: Clock,
        where: str,
        on_wrong: Callable[[], None] = lambda: None,
        elsewhere: Callable[[str], int] = lambda _network: 0,
    ) -> None:
        self._clock = clock
        self._elsewhere = elsewhere
        self._where = where
        self._on_wrong = on_wrong
        self._failures = BoundedDict[str, SlidingWindow](_MAX_ADDRESSES)
        self._unlogged = 0
        self._logged_at: float | None = None

    def note(self, address: str | None) -> bool:
        """Count one from `address`; True if there were already 5 in the minute before this one."""
        self._on_wrong()
        name, now = network_of(address), self._clock.monotonic()
        failures = self._failures.get_or_add(name, lambda: SlidingWindow(_MAX_FAILURES, _WINDOW_S))
        too_many = len(failures.ages(now)) + self._elsewhere(name) >= _MAX_FAILURES
        failures.add(now)
        self._write_log(name, now)
        return too_many

    def _write_log(self, address: str, now: float) -> None:
        # Any client can cause these lines, so one a minute must suffice; it contains the count.
        self._unlogged += 1
        if self._logged_at is not None and now - self._logged_at < _LOG_EVERY_S:
            return
        extra = {"where": self._where, "address": address, "count": self._unlogged}
        _log.warning("wrong access token", extra=extra)
        self._logged_at, self._unlogged = now, 0


def network_of(address: str | None) -> str:
    """The counted network: an IPv4 address, or an IPv6 address's /64, which one host may own."""
    try:
        parsed = ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{IPv6Address(int(parsed) >> 64 << 64)}/64"
