"""The settings of the HTTP API for other programs: [api], [api.tokens.NAME] and [api.webhooks.NAME].

Not here: rules across these tables (`api_rules`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from adapters.api.templates import ApiTemplate
from gateway.config.secrets import SecretRef
from gateway.config.section import Section, setting
from pipeline.domain.errors import InvalidInput

EVERY_WORKFLOW = "*"
"""In a token's list of workflows: all of them."""
Scope = Literal["run", "read", "answer"]
_HEADER = re.compile(r"[A-Za-z0-9-]*")


def check_header(value: str) -> str:
    """The name of a header of HTTP, or nothing."""
    if _HEADER.fullmatch(value) is None:
        words = {"what": "is not the name of a header", "fix": 'write for example "X-Parlour-Signature"'}
        raise PydanticCustomError("refused", "{what}", words)
    return value


def check_template(value: str) -> str:
    """A text with places such as {{issue.title}}."""
    try:
        ApiTemplate.parsed(value)
    except InvalidInput:
        words = {
            "what": "has a place that is not a path in double braces",
            "fix": "write names and numbers with dots between them, such as {{issue.title}}",
        }
        raise PydanticCustomError("refused", "{what}", words) from None
    return value


class ApiToken(Section):
    """[api.tokens.NAME]: a program that may use the API, and the person as whom its runs are made."""

    token: SecretRef | None = setting(
        None,
        "What the program sends as 'Authorization: Bearer …', by reference: 24 to 500 characters.",
        example="env:CI_API_TOKEN",
    )
    scopes: tuple[Scope, ...] = setting(
        ("run", "read"),
        "What it may do: start and stop runs (run), read its runs (read), answer their questions (answer).",
        example=["run", "read", "answer"],
        expected='a list of "run", "read" and "answer"',
        max_length=3,
        strict=False,
    )
    workflows: tuple[str, ...] = setting(
        (),
        f'The workflows that it may use, by the name of their agents; ["{EVERY_WORKFLOW}"] for all.',
        example=["triage"],
        expected=f'a list of names of agents, or ["{EVERY_WORKFLOW}"]',
        max_length=100,
        strict=False,
    )


class ApiWebhook(Section):
    """[api.webhooks.NAME]: an address at which another service begins a run, by a signed request."""

    secret: SecretRef | None = setting(
        None,
        "What the service signs its requests with, by reference: 24 to 500 characters.",
        example="env:ISSUES_WEBHOOK_SECRET",
    )
    workflow: str = setting(
        "",
        "The workflow that runs, by the name of its agent.",
        example="triage",
        min_length=0,
        max_length=32,
    )
    token: str = setting(
        "",
        "The NAME of the token [api.tokens.NAME] as whose person it runs. That program can follow "
        "the run and answer its questions.",
        example="ci",
        min_length=0,
        max_length=32,
    )
    message: Annotated[str, AfterValidator(check_template)] = setting(
        "",
        "The message that begins the run, with fields of the request's JSON as {{path}}, such as "
        "{{issue.title}} or {{labels.0.name}}. Empty: the whole JSON.",
        example="New issue: {{issue.title}}",
        min_length=0,
        max_length=4_000,
    )
    signature_header: Annotated[str, AfterValidator(check_header)] = setting(
        "X-Parlour-Signature",
        "The header with the signature: an HMAC-SHA-256 in hexadecimal digits, also after sha256= or v1=.",
        min_length=1,
        max_length=64,
    )
    timestamp_header: Annotated[str, AfterValidator(check_header)] = setting(
        "X-Parlour-Timestamp",
        "The header with the time of the request in Unix seconds. What is signed is this text, a dot and the "
        "body. Empty: only the body is signed, and a request has no age.",
        min_length=0,
        max_length=64,
    )
    tolerance_s: int = setting(
        300, "How many seconds the time of a request may differ from this machine's.", ge=1, le=86_400
    )


class ApiSettings(Section):
    """[api]: the HTTP API with which other programs run workflows."""

    enabled: bool = setting(default=False, description="Whether the API is served, below /api/.")
    max_body_kb: int = setting(64, "The largest body of a request, in kilobytes.", ge=1, le=1_024)
    max_input_chars: int = setting(20_000, "The longest input of a run, in characters.", ge=1, le=200_000)
    max_open_runs: int = setting(
        20, "How many runs of one token may wait or work at the same time.", ge=1, le=10_000
    )
    max_streams: int = setting(
        20, "How many event streams one token may have open at the same time.", ge=1, le=200
    )
    tokens: Mapping[str, ApiToken] = {}
    """The programs that may use it, by name."""
    webhooks: Mapping[str, ApiWebhook] = {}
    """The inbound webhooks, by name."""

    def secret_refs(self) -> dict[str, SecretRef | None]:
        """Every secret of the API by dotted path; None if it is not set."""
        tokens = {f"api.tokens.{name}.token": one.token for name, one in self.tokens.items()}
        return tokens | {f"api.webhooks.{name}.secret": one.secret for name, one in self.webhooks.items()}
