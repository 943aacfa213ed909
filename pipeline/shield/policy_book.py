"""The policy that holds now: read at the start, and read again when the operator's file changes."""

from __future__ import annotations

import asyncio
from pathlib import Path

from pipeline.domain.errors import ConfigurationError
from pipeline.shield.policy_file import read_policy
from pipeline.shield.rules import Policy

_Stamp = tuple[int, int, int]


class PolicyBook:
    """Implements PolicySource. The constructor reads the policy and raises ConfigurationError."""

    def __init__(self, own: Path | None = None) -> None:
        self._own = own
        self._stamp = _stamp(own)
        self._policy: Policy | None = read_policy(own)
        self._reading = asyncio.Lock()

    async def current(self) -> Policy:
        """See `PolicySource.current`. One look at the file's date; it is read only after a change."""
        if self._own is None and self._policy is not None:
            return self._policy
        if self._policy is not None and self._is_current():
            return self._policy
        async with self._reading:
            if self._policy is None or not self._is_current():
                # Cleared first: an unreadable file must not leave the old policy in force.
                self._policy, stamp = None, _stamp(self._own)
                policy = await asyncio.to_thread(read_policy, self._own)
                self._policy, self._stamp = policy, stamp
            return self._policy

    def _is_current(self) -> bool:
        try:
            return _stamp(self._own) == self._stamp
        except ConfigurationError:
            self._policy = None
            raise


def _stamp(path: Path | None) -> _Stamp:
    """What changes with the file."""
    if path is None:
        return (0, 0, 0)
    try:
        found = path.stat()
    except OSError as error:
        raise ConfigurationError(f"{path}: the policy cannot be read: {error.strerror or error}") from None
    return (found.st_mtime_ns, found.st_size, found.st_ino)
