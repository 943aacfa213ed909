"""The shield in a running gateway: a verdict that is unknown, a damaged audit, addresses.

Covers: pipeline/shield/evaluator.py, gateway/storage/audit.py, pipeline/tools/web_client.py.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.audit_check import check_audit
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.events import ActionCompleted
from pipeline.llm.scripted import ScriptedLlm
from tests.support.evaluators import evaluating
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.openai_server import FakeOpenAiServer
from tests.support.shield_talk import asked, own_files, press, question, say, turn, writes

_TIER_2 = '[[verify]]\nname = "write-files"\naction_types = ["write_file"]\ntier = 2\n'


async def _records(harness: GatewayHarness) -> list[tuple[str, dict[str, Any]]]:
    rows = [json.loads(row.line) for row in await harness.store.shield.audit.newest(limit=99)]
    return [(row["type"], row["details"]) for row in rows]


@pytest.mark.parametrize("verdict", ["PERHAPS", "ALLOWED", "", "ALLOW BLOCK"])
async def test_a_verdict_that_is_unknown_allows_nothing(tmp_path: Path, verdict: str) -> None:
    (tmp_path / "policy.toml").write_text(_TIER_2)
    async with FakeOpenAiServer(brain=evaluating(verdict)) as judge:
        settings = (
            f'shield.policy="{tmp_path / "policy.toml"}"',
            'shield.evaluator="openai_compatible/judge"',
            f'shield.evaluator_api_base="{judge.api_base}"',
            "llm.retries=0",
        )
        async with open_gateway(tmp_path, *settings, llm=ScriptedLlm(writes("tea"))) as harness:
            said = await harness.channel.say("write")
            await harness.channel.bring(press(await question(harness), 1))
            await harness.channel.reply(said.message_id)
            (details,) = [one for type_, one in await _records(harness) if type_ == "action_evaluated"]
    assert (details["decision"], details["tier"]) == ("ESCALATE", 3)
    assert own_files(tmp_path) == []


async def test_the_next_action_names_a_damaged_end_of_the_audit_and_is_recorded(tmp_path: Path) -> None:
    notes = turn("notes", "write_note", title="tea", text="green")
    async with open_gateway(tmp_path, llm=ScriptedLlm(notes)) as harness:
        await say(harness, "note")
    with closing(sqlite3.connect(tmp_path / "parlour.sqlite3")) as db, db:
        db.execute(
            "UPDATE audit SET line = CAST(replace(CAST(line AS TEXT), 'write', 'read') AS BLOB) WHERE n = 3"
        )
    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    async with open_gateway(tmp_path, store=store, llm=ScriptedLlm(notes)) as harness:
        await say(harness, "note")
        types = [type_ for type_, _ in await _records(harness)]
        report = await check_audit(store.shield.audit)
    run = ["action_proposed", "action_evaluated", "action_executed"]
    assert types == [*run, "chain_damaged", *run]
    assert [(one.n, one.problem, one.marked_in) for one in report.damage] == [(3, "was changed", 4)]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://0.0.0.0/",
        "http://100.64.0.1/",
        "http://[fe80::1]/",
        "http://224.0.0.1/",
        "http://[64:ff9b::7f00:1]/",
    ],
)
async def test_a_page_on_an_address_that_is_not_public_is_not_fetched_even_if_a_person_allows_it(
    tmp_path: Path, url: str
) -> None:
    llm = ScriptedLlm(turn("web", "fetch_page", url=url))
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("fetch")
        await harness.channel.until(
            lambda: (
                bool(asked(harness))
                or any(isinstance(one, ActionCompleted) for one in harness.channel.events)
            )
        )
        if asked(harness):
            await harness.channel.bring(press(await question(harness), 0))
        await harness.channel.reply(said.message_id)
        (done,) = [one for one in harness.channel.events if isinstance(one, ActionCompleted)]
    assert not done.success
    result = llm.requests[2].messages[-1].content
    assert "Nothing is fetched from" in result or "security policy" in result
