"""The failure of a login that must not be repeated often."""

from __future__ import annotations

from pipeline.domain.errors import ConfigurationError


class LoginRefused(ConfigurationError):
    """Raised by a channel's `run` where only the operator can help and the platform limits logins per
    day: the next attempt waits longer than after other configuration errors."""
