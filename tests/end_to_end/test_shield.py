"""The shield in a running gateway: its policy, what it keeps of conversations, its audit, hostile approvals.

Covers: gateway/app/shield.py, gateway/shield/audit_trail.py, gateway/turns/allowed_command.py,
gateway/cli/audit.py.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.cli.main import main
from gateway.config import load
from gateway.storage.audit import NewAuditRecord
from gateway.storage.audit_check import check_audit
from gateway.storage.ports import Interaction
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import ApprovalReply, Author, button_handle
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.shield_talk import asked as _asked
from tests.support.shield_talk import own_files as _files
from tests.support.shield_talk import press as _press
from tests.support.shield_talk import question as _question
from tests.support.shield_talk import say as _say
from tests.support.shield_talk import turn as _turn
from tests.support.shield_talk import writes as _writes


async def test_what_is_allowed_for_a_conversation_is_listed_taken_back_and_ends_with_it(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm([*_writes("1"), *_writes("2"), *_writes("3"), *_writes("4"), *_writes("5")])
    async with open_gateway(tmp_path, llm=llm) as harness:
        assert await _say(harness, "/allowed") == "You have allowed nothing for this conversation."
        said = await harness.channel.say("write 1")
        question = await _question(harness)
        await harness.channel.bring(_press(question, question.options.index("Allow for this conversation")))
        await harness.channel.reply(said.message_id)
        await _say(harness, "write 2")
        assert (len(_asked(harness)), _files(tmp_path)) == (1, ["2"])
        assert "1. writing the file `own/list.txt`" in await _say(harness, "/allowed")
        assert "There is no number 7." in await _say(harness, "/allowed 7")
        assert "Taken back: writing the file" in await _say(harness, "/allowed 1")
        for number, name in ((2, "write 3"), (3, "write 4")):
            said = await harness.channel.say(name)
            question = await _question(harness, number)
            await harness.channel.bring(_press(question, 2, f"p{number}"))
            await harness.channel.reply(said.message_id)
            await _say(harness, "/allowed all" if number == 2 else "/new")
        said = await harness.channel.say("write 5")
        await harness.channel.bring(_press(await _question(harness, 4), 1, "last"))
        await harness.channel.reply(said.message_id)
        types = [json.loads(row.line)["type"] for row in await harness.store.shield.audit.newest(limit=99)]
    assert _files(tmp_path) == ["4"]
    assert (types.count("rule_granted"), types.count("rule_revoked")) == (3, 2)


async def test_what_a_conversation_has_read_outlives_the_process_and_ends_with_new(tmp_path: Path) -> None:
    reads = _turn("files", "read_file", path="passwords.txt")
    fetches = _turn("web", "fetch_page", url="https://example.org/?q=1")
    llm = ScriptedLlm([*_writes("hunter2", "passwords.txt"), *reads])
    async with open_gateway(tmp_path, llm=llm) as harness:
        said = await harness.channel.say("write")
        await harness.channel.bring(_press(await _question(harness), 0))
        await harness.channel.reply(said.message_id)
        await _say(harness, "read")
    llm = ScriptedLlm([*fetches, *fetches])
    async with open_gateway(tmp_path, llm=llm) as harness:
        await _say(harness, "fetch")
        assert _asked(harness) == []
        assert "may not be sent to the web" in llm.requests[2].messages[-1].content
        await _say(harness, "/new")
        await harness.channel.say("fetch")
        question = await _question(harness)
        await harness.channel.bring(_press(question, 1))
        await harness.channel.until(lambda: len(llm.requests) == 6)
    assert "did not allow fetch_page" in llm.requests[5].messages[-1].content


async def test_the_operators_policy_decides_and_changes_take_effect_with_the_next_action(
    tmp_path: Path,
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[deny]]\nname = "no-notes"\naction_types = ["write_note"]\n')
    notes = _turn("notes", "write_note", title="tea", text="green")
    llm = ScriptedLlm([*notes, *notes])
    async with open_gateway(tmp_path, f'shield.policy="{policy}"', llm=llm) as harness:
        await _say(harness, "note")
        assert "the rule “no-notes” of the security policy forbids it" in llm.requests[2].messages[-1].content
        policy.write_text("# nothing is denied any more")
        await _say(harness, "note")
    assert "is kept" in llm.requests[5].messages[-1].content


def test_every_mistake_of_the_policy_is_named_when_the_gateway_starts(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[deny]]\nname = "a"\naction_types = ["fly"]\n[[allow]]\nname = "b"\n')
    with pytest.raises(ConfigurationError) as failure:
        load(None, {}, [f'data.dir="{tmp_path}"', f'shield.policy="{policy}"'])
    for words in ('deny rule "a": action_types', 'allow rule "b": action_types', str(policy)):
        assert words in str(failure.value)


async def test_a_turn_without_tools_writes_nothing_to_the_audit_and_off_the_record_no_turn_does(
    tmp_path: Path,
) -> None:
    sums = _turn("system", "calculate", expression="6 * 7")
    async with open_gateway(tmp_path, llm=ScriptedLlm([ScriptedAnswer.of("hi"), *sums, *sums])) as harness:
        audit = harness.store.shield.audit
        await _say(harness, "hello")
        assert (await check_audit(audit)).records == 0
        await _say(harness, "six times seven?")
        assert (await check_audit(audit)).records == 3
        await _say(harness, "/otr")
        await _say(harness, "six times seven?")
        assert (await check_audit(audit)).records == 3


async def test_the_audit_is_shown_checked_and_exported_beside_a_running_gateway(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def parlour(*arguments: str) -> tuple[int, str]:
        code = main(["audit", *arguments, "--set", f'data.dir="{tmp_path}"'])
        return code, capsys.readouterr().out

    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    notes = _turn("notes", "write_note", title="my-secret-title", text="my-secret-text")
    async with open_gateway(tmp_path, store=store, llm=ScriptedLlm(notes)) as harness:
        assert await asyncio.to_thread(parlour) == (0, "the audit has no records\n")
        await _say(harness, "note")
        _, shown = await asyncio.to_thread(parlour, "show", "--limit", "2")
        first, second = shown.splitlines()
        assert "action_evaluated  write_note  action_type=write_note  decision=ALLOW  tier=1" in first
        assert second.startswith("3  ")
        assert "action_executed" in second
        code, words = await asyncio.to_thread(parlour, "verify")
        assert (code, words.splitlines()[0]) == (0, "audit: 3 records, every one as it was written")
        target = tmp_path / "audit.jsonl"
        assert (await asyncio.to_thread(parlour, "export", str(target)))[0] == 0
        lines = target.read_text().splitlines()
        assert [json.loads(line)["n"] for line in lines] == [1, 2, 3]
        assert "my-secret" not in target.read_text()
        assert (await asyncio.to_thread(parlour, "export", str(target)))[0] == 2
        with closing(sqlite3.connect(tmp_path / "parlour.sqlite3")) as db, db:
            db.execute("UPDATE audit SET line = x'00' WHERE n = 2")
        code, words = await asyncio.to_thread(parlour, "verify")
        assert (code, words.splitlines()[1]) == (1, "  record 2 was changed; put into quarantine now")
        code, words = await asyncio.to_thread(parlour, "verify")
        assert (code, words.splitlines()[1]) == (1, "  record 2 was changed; named in record 4")
        assert "damaged" in (await asyncio.to_thread(parlour))[1]


async def test_old_records_are_exported_and_pruned_and_the_rest_is_verified(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def parlour(*arguments: str) -> tuple[int, str]:
        code = main(["audit", *arguments, "--set", f'data.dir="{tmp_path}"'])
        return code, "".join(capsys.readouterr())

    store = SqliteStore(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    old, target = 1_700_000_000.0, tmp_path / "audit.jsonl"
    async with open_gateway(
        tmp_path, store=store, llm=ScriptedLlm(_turn("system", "calculate", expression="1"))
    ):
        await store.shield.audit.append([NewAuditRecord(type="action_proposed", details={}, at=old)] * 3)
        assert (await asyncio.to_thread(parlour, "export", str(target)))[0] == 0
        for wrong, words in (("", "such as 2026"), ("2024-13-01", "such as 2026"), ("9000-01-01", "future")):
            code, said = await asyncio.to_thread(parlour, "prune", "--before", wrong)
            assert (code, words in said) == (2, True)
        assert await asyncio.to_thread(parlour, "prune", "--before", "2023-11-14") == (
            0,
            "the audit has no records from before 2023-11-14\n",
        )
        code, said = await asyncio.to_thread(parlour, "prune", "--before", "2023-11-15")
        kept = json.loads(target.read_text().splitlines()[-1])["hash"]
        assert (code, said.splitlines()) == (
            0,
            [
                "audit: 3 records from before 2023-11-15 removed",
                f"the last one was 3, its hash {kept}",
            ],
        )
        # The running gateway continues the chain.
        await store.shield.audit.append([NewAuditRecord(type="action_proposed", details={}, at=old)])
        code, said = await asyncio.to_thread(parlour, "verify")
        assert (code, said.splitlines()[:2]) == (
            0,
            [
                "audit: 2 records, every one as it was written",
                "the records up to 3 were removed by `parlour audit prune`",
            ],
        )
        shown = (await asyncio.to_thread(parlour, "show"))[1]
        assert "audit_pruned  through=3  records=3  before=2023-11-15" in shown
        with closing(sqlite3.connect(tmp_path / "parlour.sqlite3")) as db, db:
            db.execute("UPDATE audit SET line = x'00' WHERE n = 4")
        code, said = await asyncio.to_thread(parlour, "prune", "--before", "2026-01-01")
        assert (code, "run `parlour audit verify` first" in said) == (1, True)


async def test_a_person_is_asked_ten_times_an_hour_at_most(tmp_path: Path) -> None:
    def model(times: int) -> ScriptedLlm:
        return ScriptedLlm([answer for number in range(times) for answer in _writes(str(number))])

    async def asked(harness: GatewayHarness, times: int, first: int) -> None:
        for number in range(times):
            said = await harness.channel.say(f"write {number}", native_id=f"n{first + number}")
            await harness.channel.bring(_press(await _question(harness, number + 1), 1, f"p{first + number}"))
            await harness.channel.reply(said.message_id)

    # A restart forgets nothing: one is in the middle of the ten, and one behind them.
    async with open_gateway(tmp_path, llm=model(4)) as harness:
        await asked(harness, 4, 0)
    async with open_gateway(tmp_path, llm=model(7)) as harness:
        await asked(harness, 6, 4)
        await harness.channel.reply((await harness.channel.say("write", native_id="n10")).message_id)
        assert len(_asked(harness)) == 6
        before = harness.llm.requests[-1].messages[-1].content
    async with open_gateway(tmp_path, llm=model(1)) as harness:
        await harness.channel.reply((await harness.channel.say("write", native_id="n11")).message_id)
        assert _asked(harness) == []
        assert harness.llm.requests[-1].messages[-1].content == before
    assert "asked too often" in before


async def test_of_hostile_approvals_a_hundred_of_each_kind_at_once_none_is_accepted(tmp_path: Path) -> None:
    """By other people, from other chats, for other questions and options, too late, after the answer, and for
    changed arguments."""
    async with open_gateway(tmp_path, llm=ScriptedLlm([*_writes("1"), *_writes("2")])) as harness:

        async def hundred(kind: str, question: Interaction, option: int = 0, **given: Any) -> None:
            presses = [_press(question, option, f"{kind}-{number}", **given) for number in range(100)]
            await refused(presses)

        async def refused(presses: list[ApprovalReply]) -> None:
            async with asyncio.TaskGroup() as together:
                tried = [together.create_task(harness.channel.bring(one)) for one in presses]
            assert [one.result().status for one in tried] == ["refused"] * 100
            assert _files(tmp_path) == []

        said = await harness.channel.say("write")
        question = await _question(harness)
        await refused([_press(question, 0, f"e{n}", author=Author(id=f"eve{n}")) for n in range(100)])
        await hundred("chat", question, thread=ThreadKey.decode("console:local:c2"))
        await refused(
            [_press(question, 0, f"q{n}", interaction_id=button_handle(f"tool_act_{n}")) for n in range(100)]
        )
        await refused([_press(question, 3 + n, f"o{n}") for n in range(100)])
        late = replace(question, id="tool_act_late", created_at=1.0, expires_at=2.0)
        await harness.store.open_interaction(late)
        await hundred("late", late)
        await harness.store.expiries.close(late.id, at=2.0)

        assert (await harness.channel.bring(_press(question, 1, "deny"))).status == "accepted"
        await harness.channel.reply(said.message_id)
        await hundred("again", question)
        # With changed arguments it is another action: the press for the first one does not count for it.
        await harness.channel.say("write")
        assert (await _question(harness, 2)).action_hash != question.action_hash
        await hundred("changed", question)
