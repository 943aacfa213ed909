"""A gateway with the HTTP API, and a client of it, for tests."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from pipeline.llm.scripted import ScriptedLlm
from tests.support.api_contract import require_described, require_schema
from tests.support.harness import GatewayHarness, open_gateway

TOKENS: Mapping[str, str] = {
    "ci": "ci-0123456789abcdef0123456789",
    "other": "other-0123456789abcdef0123456",
    "boss": "boss-0123456789abcdef01234567",
    "reader": "reader-0123456789abcdef012345",
    "starter": "starter-0123456789abcdef01234",
}
"""The tokens by name; `ci` and `other` may do everything."""
_SCOPES: Mapping[str, Sequence[str]] = {
    "ci": ("run", "read", "answer"),
    "other": ("run", "read", "answer"),
    "boss": ("read", "answer"),
    "reader": ("read",),
    "starter": ("run",),
}
TRIAGE = "examples/workflows/triage.workflow.json"
WEBHOOK_SECRET = "webhook-secret-0123456789abcdef"


def secret_file(folder: Path, name: str, value: str) -> str:
    """A reference to a new file with a secret."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(value, "utf-8")
    path.chmod(0o600)
    return f"file:{path}"


def document_file(folder: Path, found: Mapping[str, Any], name: str = "own") -> str:
    """The path of a new file with a workflow document."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(found), "utf-8")
    return str(path)


def api_overrides(folder: Path, workflow: str = TRIAGE, *more: str) -> list[str]:
    """Settings with the API on, its tokens, and the workflow of the file `workflow` as the agent `triage`."""
    given = ["api.enabled=true", "server.port=0", f'agents.triage.graph="{workflow}"']
    for name, value in TOKENS.items():
        reference = secret_file(folder / "secrets", name, value)
        scopes = json.dumps(list(_SCOPES[name]))
        given += [f'api.tokens.{name}.token="{reference}"', f"api.tokens.{name}.scopes={scopes}"]
        given.append(f'api.tokens.{name}.workflows=["*"]')
    return [*given, *more]


def webhook_overrides(folder: Path, **values: str | int) -> list[str]:
    """Settings of the webhook `issues`, which runs as `ci`; `values` replace its settings."""
    reference = secret_file(folder / "secrets", "webhook", WEBHOOK_SECRET)
    wanted: dict[str, str | int] = {"secret": reference, "workflow": "triage", "token": "ci", **values}
    return [f"api.webhooks.issues.{key}={json.dumps(value)}" for key, value in wanted.items()]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, read whole."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """Its JSON."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class ApiClient:
    """Sends requests to a gateway. Every answer must be one that the OpenAPI document describes."""

    session: aiohttp.ClientSession
    url: str
    harness: GatewayHarness

    async def send(
        self,
        method: str,
        path: str,
        *,
        token: str = "ci",
        body: Any = None,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """A request with the token of that name; `body` as JSON, or `raw` bytes."""
        given = {"Authorization": f"Bearer {TOKENS.get(token, token)}"} if token else {}
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        if data is not None:
            given["Content-Type"] = "application/json"
        given |= headers or {}
        kept = {key: value for key, value in given.items() if value}
        async with self.session.request(method, self.url + path, data=data, headers=kept) as response:
            answer = Answer(response.status, dict(response.headers), await response.text())
        require_described(method, path, answer.status, answer.headers.get("Content-Type", ""), answer.text)
        return answer

    async def start(self, text: str, *, token: str = "ci", key: str = "", name: str = "triage") -> str:
        """Start a run; its id."""
        headers = {"Idempotency-Key": key} if key else {}
        path = f"/api/workflows/{name}/runs"
        found = await self.send("POST", path, token=token, body={"input": text}, headers=headers)
        assert found.status in (200, 202), found.text
        return str(found.body["runId"])

    async def run(self, run_id: str, *, token: str = "ci") -> dict[str, Any]:
        """The record of a run."""
        found = await self.send("GET", f"/api/runs/{run_id}", token=token)
        assert found.status == 200, found.text
        record: dict[str, Any] = found.body
        return record

    async def until(self, run_id: str, *statuses: str, token: str = "ci") -> dict[str, Any]:
        """The record of a run once it has one of the statuses: from its stream, which is followed till
        then."""
        async for event in self.events(run_id, token=token):
            if event["event"] == "status" and event["data"]["status"] in statuses:
                return await self.run(run_id, token=token)
        raise AssertionError("the stream has ended before")

    async def events(
        self, run_id: str, *, token: str = "ci", after: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """The events of a run's stream, each with `event`, `id` and `data`."""
        headers = {"Authorization": f"Bearer {TOKENS[token]}", "Accept": "text/event-stream"}
        headers |= {"Last-Event-ID": after} if after else {}
        async with self.session.get(f"{self.url}/api/runs/{run_id}", headers=headers) as response:
            assert response.status == 200, await response.text()
            event: dict[str, Any] = {}
            async for line in response.content:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if not name and event.get("event"):
                    data = json.loads(event["data"])
                    require_schema("LogEntry" if event["event"] == "log" else "RunStatusEvent", data)
                    yield {**event, "data": data}
                    event = {}
                elif name and name != "retry":
                    event[name] = value


@asynccontextmanager
async def open_api(
    folder: Path, *overrides: str, llm: ScriptedLlm | None = None, **given: Any
) -> AsyncIterator[ApiClient]:
    """A running gateway with these settings, and a client of its API."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with open_gateway(folder / "data", *overrides, llm=llm, **given) as harness:
        # Without kept connections: the gateway is closed before the session.
        connector = aiohttp.TCPConnector(force_close=True)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
            yield ApiClient(session, harness.gateway.url, harness)
