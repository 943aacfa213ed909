"""Build the HTTP API for other programs.

A part of the composition root: only `bootstrap` and `components` call it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from aiohttp import web

from adapters.api.adapter import ApiAdapter
from adapters.api.settings import ApiOptions, Token, Webhook
from adapters.api.templates import ApiTemplate
from adapters.web.attempts import WrongTokens
from adapters.web.security import security_headers
from gateway.access.policy import AccessRule
from gateway.agents.documents import AgentDocuments
from gateway.config import SecretRef, Settings
from gateway.runtime.http_server import Addresses
from gateway.runtime.metrics import Telemetry
from gateway.storage.ports import Store
from gateway.turns.public_runs import PublicRuns
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """The API, and what else the gateway must know about it."""

    adapter: ApiAdapter
    runs: PublicRuns
    rule: AccessRule

    def routes(self) -> list[web.RouteDef]:
        """Its routes."""
        return self.adapter.routes()


def build_api(
    settings: Settings,
    store: Store,
    clock: Clock,
    addresses: Addresses,
    telemetry: Telemetry,
    documents: AgentDocuments,
    wrong_elsewhere: Callable[[str], int],
) -> Api | None:
    """The API; None if it is off. Raises ConfigurationError for a document that cannot be read."""
    wanted = settings.api
    if not wanted.enabled:
        return None
    descriptions = {name: profile.description for name, profile in settings.agents.items()}
    runs = PublicRuns(store, clock, documents.runs, descriptions)
    wrong = WrongTokens(clock, "api", partial(telemetry.wrong_token, "api"), wrong_elsewhere)
    given = ApiOptions(
        tokens={
            name: Token(
                name=name,
                secret=_reader(one.token, f"api.tokens.{name}.token"),
                scopes=frozenset(one.scopes),
                workflows=frozenset(one.workflows),
            )
            for name, one in wanted.tokens.items()
        },
        webhooks={
            name: Webhook(
                name=name,
                secret=_reader(one.secret, f"api.webhooks.{name}.secret"),
                workflow=one.workflow,
                person=one.token,
                message=ApiTemplate.parsed(one.message),
                signature_header=one.signature_header,
                timestamp_header=one.timestamp_header,
                tolerance_s=one.tolerance_s,
            )
            for name, one in wanted.webhooks.items()
        },
        max_body=wanted.max_body_kb * 1_024,
        max_input=wanted.max_input_chars,
        max_open_runs=wanted.max_open_runs,
        max_streams=wanted.max_streams,
        headers=security_headers(),
        origins=addresses.origins,
        note_wrong=wrong.note,
    )
    people = [f"dm:{name}" for name in wanted.tokens]
    return Api(
        adapter=ApiAdapter(given, runs, clock), runs=runs, rule=AccessRule.of(mode="list", allow=people)
    )


def _reader(reference: SecretRef | None, path: str) -> Callable[[], str]:
    if reference is None:
        raise ConfigurationError(f"{path}: it is not set")
    return reference.resolve
