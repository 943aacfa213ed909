"""The settings of the signals between processes: [bus]."""

from __future__ import annotations

from typing import Literal

from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting


class BusSettings(Section):
    """[bus]: what carries the signals between the processes of a gateway."""

    kind: Literal["process", "redis", "postgres"] = setting(
        "process",
        "What carries signals: process for a gateway in one process, else a server. No message depends on "
        "it: while it is away, everything is found in the store, a little later.",
    )
    url: SecretRef | None = setting(
        None, "The server's address with its password, by reference.", example="env:REDIS_URL"
    )
    cache_s: int = setting(
        3600,
        "With redis, for how many seconds after its last turn a conversation is also in Redis, so that its "
        "next turn need not read it from the store; never off the record. 0: it is not there.",
        ge=0,
        le=86_400,
    )
