"""What the HTTP API refuses, with which status, and what the refusal tells.

Covers: adapters/api/routes.py, adapters/api/tokens.py, adapters/api/bodies.py, adapters/api/problems.py,
adapters/api/openapi.json.
"""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Accepted, NewEntry
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.llm.scripted import ScriptedLlm
from tests.pipeline.workflows.documents import agent, document, start, way
from tests.support.api_client import TOKENS, ApiClient, api_overrides, document_file, open_api
from tests.support.api_contract import openapi, require_valid_schemas

ECHO = document(start(), agent("a"), routes=[way("start > a")])
RUNS = "/api/workflows/triage/runs"


def _echo(folder: Path, *more: str) -> list[str]:
    return api_overrides(folder, document_file(folder, ECHO), *more)


async def test_every_route_refuses_a_missing_a_wrong_and_a_narrow_token(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path), clock=ManualClock()) as api:
        run_id = await api.start("hello")
        needs = {
            ("GET", "/api/workflows"): "",
            ("POST", RUNS): "run",
            ("GET", f"/api/runs/{run_id}"): "read",
            ("DELETE", f"/api/runs/{run_id}"): "run",
            ("POST", f"/api/runs/{run_id}/stop"): "run",
            ("POST", f"/api/runs/{run_id}/answers"): "answer",
        }
        open_to_all = {"describe", "webhook"}
        described = {
            (method.upper(), path)
            for path, methods in openapi()["paths"].items()
            for method, one in methods.items()
            if one["operationId"] not in open_to_all
        }
        assert len(needs) == len(described)
        for (method, path), scope in needs.items():
            missing = await api.send(method, path, token="")
            assert (missing.status, missing.headers["WWW-Authenticate"]) == (401, 'Bearer realm="parlour"')
            double = await api.send(
                method, path, token="", headers={"Authorization": f"Basic {TOKENS['ci']}"}
            )
            assert double.status == 401
            if scope:
                narrow = await api.send(method, path, token="reader" if scope != "read" else "starter")
                assert (narrow.status, scope in narrow.body["detail"]) == (403, True)
        statuses = [
            (await api.send("GET", "/api/workflows", token=TOKENS["ci"][:-1])).status for _ in range(7)
        ]
        assert statuses == [401] * 5 + [429] * 2
        # A right token counts all the same.
        assert (await api.send("GET", "/api/workflows")).body["workflows"][0]["name"] == "triage"


_HOSTILE: list[tuple[int, bytes, dict[str, str]]] = [
    (400, b"", {}),
    (400, b"{", {}),
    (400, b'{"input": NaN}', {}),
    (400, b"\xff\xfe", {}),
    (400, b"[" * 50_000, {}),
    (400, b'{"input": 1' + b"0" * 5_000 + b"}", {}),
    (422, b"[]", {}),
    (422, b'"text"', {}),
    (422, b"{}", {}),
    (422, b'{"input": 5}', {}),
    (422, b'{"input": "  "}', {}),
    (422, b'{"input": "\\ud800"}', {}),
    (422, b'{"input": "a", "more": 1}', {}),
    (422, json.dumps({"input": "x" * 20_001}).encode(), {}),
    (422, b'{"input": "a"}', {"Idempotency-Key": "two words"}),
    (422, b'{"input": "a"}', {"Idempotency-Key": "x" * 201}),
    (415, b'{"input": "a"}', {"Content-Type": "text/plain"}),
    (415, b'{"input": "a"}', {"Content-Type": "application/json; charset=latin-1"}),
    (415, b'{"input": "a"}', {"Content-Encoding": "gzip"}),
    (413, b'{"input": "' + b"x" * 70_000 + b'"}', {}),
    (403, b'{"input": "a"}', {"Origin": "https://evil.example"}),
]


async def test_hostile_bodies_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path), clock=ManualClock()) as api:
        for status, raw, headers in _HOSTILE:
            refused = await api.send("POST", RUNS, raw=raw, headers=headers)
            assert refused.status == status, (raw[:50], headers, refused.text)
            assert refused.headers["Content-Type"] == "application/problem+json"
            assert "Access-Control-Allow-Origin" not in refused.headers
            if status == 422:
                assert "x" * 30 not in refused.text
                assert (
                    refused.body.get("errors", [{"message": "key"}])[0]["message"] in refused.body["detail"]
                )
        counts = await api.harness.store.counts()
        assert (counts.inbox_open, counts.inbox_done, counts.records) == (0, 0, 0)


async def test_a_body_of_unknown_length_is_cut_at_the_limit(tmp_path: Path) -> None:
    async def parts() -> Any:
        for _ in range(70):
            yield b"x" * 1_000

    async with open_api(tmp_path, *_echo(tmp_path), clock=ManualClock()) as api:
        headers = {"Authorization": f"Bearer {TOKENS['ci']}", "Content-Type": "application/json"}
        async with api.session.post(api.url + RUNS, data=parts(), headers=headers) as response:
            assert response.status == 413


async def test_what_is_not_there_is_404_and_another_method_405(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path)) as api:
        for path in ("/api/", "/api/nothing", "/api/runs", "/api/runs/a/b/c"):
            assert (await api.send("GET", path)).status == 404
        # The default agent is no workflow.
        for name in ("default", "none", "TRIAGE", "..%2ftriage"):
            found = await api.send("POST", f"/api/workflows/{name}/runs", body={"input": "a"})
            assert found.status == 404
        for run_id in (
            "x",
            "triage.",
            "triage." + "0" * 24,
            "none." + "0" * 24,
            "triage.%00",
            "%F0%9F%98%80",
        ):
            for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/stop"), ("POST", "/answers")):
                body = {"choice": "approve"} if rest == "/answers" else None
                assert (await api.send(method, f"/api/runs/{run_id}{rest}", body=body)).status == 404
        wrong = await api.send("PUT", RUNS, body={"input": "a"})
        assert (wrong.status, wrong.headers["Allow"]) == (405, "POST")
        assert (await api.send("OPTIONS", RUNS)).status == 405


async def test_a_token_uses_its_workflows_only(tmp_path: Path) -> None:
    more = (
        'api.tokens.other.workflows=["second"]',
        'agents.second.graph="examples/workflows/triage.workflow.json"',
    )
    async with open_api(tmp_path, *_echo(tmp_path, *more)) as api:
        listed = (await api.send("GET", "/api/workflows", token="other")).body["workflows"]
        assert [one["name"] for one in listed] == ["second"]
        assert (await api.send("POST", RUNS, token="other", body={"input": "a"})).status == 404


async def test_unfinished_runs_streams_and_messages_a_minute_have_limits(tmp_path: Path) -> None:
    slow = ScriptedLlm.echo(delay_s=600.0)
    limits = ("api.max_open_runs=2", "api.max_streams=1")
    async with open_api(tmp_path, *_echo(tmp_path, *limits), llm=slow) as api:
        first = await api.start("one", key="k1")
        await api.start("two")
        refused = await api.send("POST", RUNS, body={"input": "three"})
        assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
        # A repeated request still finds its run, and another token has its places.
        assert await api.start("one", key="k1") == first
        await api.start("three", token="other")
        stream = api.events(first)
        await anext(stream)
        accept = {"Accept": "text/event-stream"}
        assert (await api.send("GET", f"/api/runs/{first}", headers=accept)).status == 429
        await stream.aclose()  # type: ignore[attr-defined]  # it is a generator
    quota = _echo(tmp_path, "limits.messages_per_minute=1")
    async with open_api(tmp_path / "q", *quota, clock=ManualClock()) as api:
        await api.start("one")
        assert (await api.send("POST", RUNS, body={"input": "two"})).status == 429


class _FullStore(MemoryStore):
    """A store that takes no message."""

    async def accept(self, entry: NewEntry, *, limit: int | None = None, begin: bool = False) -> Accepted:
        raise StorageError("the disk is full")


async def test_a_gateway_that_cannot_write_answers_503(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path), store=_FullStore()) as api:
        refused = await api.send("POST", RUNS, body={"input": "a"})
        assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
        assert "disk" not in refused.text


async def test_the_document_is_served_and_is_the_routes(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path)) as api:
        served = await api.send("GET", "/api/openapi.json", token="")
        assert served.body == openapi()
    require_valid_schemas()
    references = set(_references(openapi()))
    # The events of a stream have no place for a schema.
    named = openapi()["components"]["schemas"].keys() - {"RunStatusEvent"}
    assert references == {f"#/components/schemas/{name}" for name in named}


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [one for part in value.values() for one in _references(part)]
    return [one for part in value for one in _references(part)] if isinstance(value, list) else []


async def _act(api: ApiClient, chance: random.Random, runs: dict[str, set[str]]) -> None:
    """One act of a random token on a random run: its own is found, every other is not there."""
    token = chance.choice(["ci", "other"])
    owner = chance.choice(["ci", "other"])
    if not runs[owner] or chance.random() < 0.3:
        runs[token].add(await api.start(f"words of {token}", token=token))
        return
    run_id = chance.choice(sorted(runs[owner]))
    method, rest, body = chance.choice(
        [
            ("GET", "", None),
            ("DELETE", "", None),
            ("POST", "/stop", None),
            ("POST", "/answers", {"choice": "x"}),
        ]
    )
    found = await api.send(method, f"/api/runs/{run_id}{rest}", token=token, body=body)
    invented = await api.send(
        method, f"/api/runs/triage.{chance.randbytes(12).hex()}{rest}", token=token, body=body
    )
    assert invented.status == 404
    if token != owner:
        assert (found.status, found.body) == (404, invented.body)
        assert found.headers.keys() == invented.headers.keys()
    else:
        assert found.status in ((409,) if rest == "/answers" else (200, 202))
        assert f"words of {'other' if token == 'ci' else 'ci'}" not in found.text


async def test_no_random_act_of_a_token_reaches_a_run_of_another(tmp_path: Path) -> None:
    chance = random.Random(7)
    runs: dict[str, set[str]] = {"ci": set(), "other": set()}
    async with open_api(tmp_path, *_echo(tmp_path, "api.max_open_runs=1000")) as api:
        for _ in range(120):
            await _act(api, chance, runs)


async def test_equal_keys_of_two_tokens_are_two_runs(tmp_path: Path) -> None:
    async with open_api(tmp_path, *_echo(tmp_path)) as api:
        first, again, other = await asyncio.gather(
            api.start("same", key="k"), api.start("same", key="k"), api.start("same", key="k", token="other")
        )
        assert first == again
        assert first != other
        changed = await api.send("POST", RUNS, body={"input": "else"}, headers={"Idempotency-Key": "k"})
        assert changed.status == 422
