"""What the API is built from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from adapters.api.templates import ApiTemplate
from pipeline.domain.frozen import dataclass

EVERY = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """A program that may use the API."""

    name: str
    """The person as whom its runs are made."""
    secret: Callable[[], str]
    """Reads the token. Raises ConfigurationError while it cannot be read."""
    scopes: frozenset[str]
    workflows: frozenset[str]

    def may_use(self, workflow: str) -> bool:
        """Whether it may use the workflow, if there is one of this name."""
        return EVERY in self.workflows or workflow in self.workflows


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """An address at which another service begins a run."""

    name: str
    secret: Callable[[], str]
    """Reads the secret. Raises ConfigurationError while it cannot be read."""
    workflow: str
    person: str
    """The name of the token as whose person the run is made."""
    message: ApiTemplate
    signature_header: str
    timestamp_header: str
    """Empty: only the body is signed."""
    tolerance_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOptions:
    """The whole API."""

    tokens: Mapping[str, Token]
    webhooks: Mapping[str, Webhook] = field(default_factory=dict)
    max_body: int = 65_536
    """Bytes."""
    max_input: int = 20_000
    """Characters."""
    max_open_runs: int = 20
    max_streams: int = 20
    headers: Mapping[str, str] = field(default_factory=dict)
    """Of every response."""
    origins: Callable[[], Collection[str]] = tuple
    """The origins of this server's own pages."""
    note_wrong: Callable[[str | None], bool] = lambda _address: False
    """Counts a wrong token from an address; True if there were too many before it."""
