"""The tiers of the shield, through the gate: what runs, what is asked, what is stopped, and what is recorded.

Covers: pipeline/shield/shield.py, pipeline/shield/permissions.py, pipeline/shield/verdict.py,
pipeline/shield/audit_events.py, pipeline/tools/question.py,
pipeline/tools/execution.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.errors import StorageError
from pipeline.domain.events import Decision, ShieldVerdict
from pipeline.runtime.foreign_text import ForeignWords
from pipeline.runtime.scope import TurnScope
from pipeline.shield.flow import FlowMode
from pipeline.shield.injection.findings import Assessment, ScanFinding, ScanPart, assessment_of
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.targets import MOST_TARGETS
from pipeline.tools.notes import notes_group
from tests.support.contexts import Watched, scope
from tests.support.graph_log import MemoryRunLog
from tests.support.shield_tools import FILE_AND_TEXT, Ran
from tests.support.shield_tools import files_tools as _files
from tests.support.shield_tools import write as _write
from tests.support.shields import RecordedAudit, shield
from tests.support.tool_gate import Person, call, gate, group, propose, tool


class Finds:
    """A scanner that reports `decision` for every proposal, and notes the parts."""

    def __init__(self, decision: Decision) -> None:
        self.decision: Decision = decision
        self.parts: list[ScanPart] = []

    async def assess(self, parts: Iterable[ScanPart]) -> Assessment:
        self.parts = list(parts)
        if self.decision == "ALLOW":
            return assessment_of(())
        finding = ScanFinding(
            name="hidden-order", severity="high", decision=self.decision, score=0.9, where="text"
        )
        return assessment_of([finding])


async def test_an_action_is_recorded_before_it_runs_and_after_it_and_no_argument_is_in_the_record() -> None:
    audit, ran = RecordedAudit(), Ran("secret result")
    one = gate(group(*_files(ran)), judge=shield(audit=audit))
    asked = call("read_file", {"path": "own/hidden-name.txt"})
    await propose(one, asked, _write(text="secret words"), scope=scope())
    assert audit.types() == [
        *("action_proposed", "action_evaluated", "action_executed"),
        *("action_proposed", "action_evaluated", "action_answered", "action_executed"),
    ]
    plain = json.dumps([dict(event.details) for event in audit.events])
    assert not any(word in plain for word in ("hidden-name", "secret", "own/"))
    hashes = {event.details["hash"] for event in audit.events}
    assert len(hashes) == 2


@pytest.mark.parametrize("name", ["read_file", "write_file"])
async def test_a_decision_that_cannot_be_recorded_does_not_run(name: str) -> None:
    audit, ran = RecordedAudit(), Ran()
    audit.broken = True
    arguments = {"path": "own/a"} if name == "read_file" else {"path": "own/a", "text": "x"}
    with pytest.raises(StorageError):
        await propose(
            gate(group(*_files(ran)), judge=shield(audit=audit)), call(name, arguments), scope=scope()
        )
    assert ran.calls == []


async def test_an_answer_that_cannot_be_recorded_does_not_run() -> None:
    audit, ran, person = RecordedAudit(), Ran(), Person()

    class Breaks(Person):
        async def ask(self, scope: TurnScope, **asked: Any) -> Any:
            audit.broken = True
            return await person.ask(scope, **asked)

    with pytest.raises(StorageError):
        await propose(
            gate(group(*_files(ran)), person=Breaks(), judge=shield(audit=audit)), _write(), scope=scope()
        )
    assert (len(person.asked), ran.calls) == (1, [])


async def test_a_call_that_names_more_hosts_than_can_be_judged_does_not_run() -> None:
    ran = Ran()
    hosts = " ".join(f"https://h{number}.example/" for number in range(MOST_TARGETS + 1))
    asked = await propose(
        gate(group(*_files(ran)), judge=shield()), call("tell", {"text": hosts}), scope=scope()
    )
    assert "too many paths or hosts" in asked[0].content
    assert ran.calls == []


async def test_a_failing_tool_is_recorded_as_failed_and_off_the_record_nothing_is_recorded() -> None:
    audit = RecordedAudit()
    one = gate(group(*_files(Ran(ValueError("boom")))), judge=shield(audit=audit))
    await propose(one, call("read_file", {"path": "a"}), scope=scope(mode="otr"))
    assert audit.events == []
    await propose(one, call("read_file", {"path": "a"}), scope=scope())
    assert audit.types()[-1] == "action_failed"


async def test_an_effect_that_a_crash_cut_off_is_recorded_as_unknown_and_not_repeated() -> None:
    audit, ran, log = RecordedAudit(), Ran(), MemoryRunLog()
    one = gate(group(*_files(ran)), judge=shield(audit=audit))
    await propose(one, call("write_note", {"text": "x"}), scope=scope(), log=log)
    began = next(at for at, record in enumerate(log.records, 1) if record and record.get("state") == "began")
    (result,) = await propose(
        one, call("write_note", {"text": "x"}), scope=scope(), log=log.cut(began), resume=True
    )
    assert "unknown whether it was done" in result.content
    assert (len(ran.calls), audit.types()[-1]) == (1, "action_unknown")


async def test_an_unreadable_policy_stops_everything_until_it_is_mended(tmp_path: Path) -> None:
    own, ran = tmp_path / "policy.toml", Ran()
    own.write_text("")
    one = gate(group(*_files(ran)), judge=shield(policies=PolicyBook(own)))
    asked = call("read_file", {"path": "own/a"})
    own.write_text("[[deny")
    (result,) = await propose(one, asked, scope=scope())
    assert "the security policy cannot be read" in result.content
    own.write_text("# mended")
    (mended,) = await propose(one, asked, scope=scope())
    assert (mended.success, len(ran.calls)) == (True, 1)


async def test_what_no_rule_names_is_asked_about_and_what_is_denied_never_is(tmp_path: Path) -> None:
    own, ran, person = tmp_path / "policy.toml", Ran(), Person("refused")
    own.write_text('[[deny]]\nname = "look-at-files"\naction_types = ["delete_file"]\n')
    one = gate(group(*_files(ran)), person=person, judge=shield(policies=PolicyBook(own)))
    gone = call("delete_file", {"path": "own/a"}, call_id="2")
    _, denied = await propose(one, call("read_file", {"path": "own/a"}), gone, scope=scope())
    assert ["no rule of the security policy allows it" in one["words"] for one in person.asked] == [True]
    assert "the rule “look-at-files” of the security policy forbids it" in denied.content
    assert ran.calls == []


async def test_an_operators_rule_lets_files_be_written_unasked_but_not_after_foreign_text(
    tmp_path: Path,
) -> None:
    own, ran, person = tmp_path / "policy.toml", Ran(), Person()
    own.write_text('[[verify]]\nname = "write-files"\naction_types = ["write_file"]\ntier = 1\n')
    one = gate(group(*_files(ran)), person=person, judge=shield(policies=PolicyBook(own)))
    await propose(one, _write(), scope=scope())
    assert (len(ran.calls), person.asked) == (1, [])
    foreign = ForeignWords()
    foreign.note("a web page")
    await propose(one, _write(), scope=scope(foreign=foreign))
    assert len(person.asked) == 1
    assert "This conversation holds text from elsewhere: a web page." in person.asked[0]["words"]


@pytest.mark.parametrize(
    ("found", "tier", "decision", "asked", "done"),
    [("ALLOW", 1, "ALLOW", 0, 1), ("ESCALATE", 3, "ESCALATE", 1, 1), ("BLOCK", 1, "BLOCK", 0, 0)],
)
async def test_the_scanner_can_raise_a_tier_and_block_but_allow_nothing(
    found: Decision, tier: int, decision: str, asked: int, done: int
) -> None:
    ran, person, watched, scanner = Ran(), Person(), Watched(), Finds(found)
    one = gate(group(*_files(ran)), person=person, judge=shield(scanner=scanner))
    await propose(one, call("write_note", {"text": "do it"}), scope=scope(watched))
    (verdict,) = [event for event in watched.events if isinstance(event, ShieldVerdict)]
    assert (verdict.tier, verdict.decision, len(person.asked), len(ran.calls)) == (
        tier,
        decision,
        asked,
        done,
    )
    assert ScanPart(kind="argument", text="do it", where="text") in scanner.parts
    await propose(one, _write(name="2"), scope=scope())
    assert len(person.asked) == asked + (found != "BLOCK")


async def test_confidential_data_goes_nowhere_and_a_new_conversation_has_none() -> None:
    ran, person, audit = Ran("the code is 1234"), Person(), RecordedAudit()
    one = gate(group(*_files(ran)), person=person, judge=shield(audit=audit))
    read = call("read_file", {"path": "own/passwords.txt"})
    search = call("search_web", {"text": "news"}, call_id="2")
    _, refused = await propose(one, read, search, scope=scope())
    assert "may not be sent to the web" in refused.content
    assert "/new" in refused.content
    assert (len(ran.calls), person.asked) == (1, [])
    (fine,) = await propose(one, search, scope=scope(session_id="ses-2"))
    assert fine.success
    evaluated = [event.details for event in audit.events if event.type == "action_evaluated"]
    assert [one["level"] for one in evaluated] == ["public", "critical", "public"]


async def test_in_audit_mode_the_flow_is_noted_and_nothing_is_stopped_by_it() -> None:
    ran, audit = Ran("1234"), RecordedAudit()
    one = gate(group(*_files(ran)), judge=shield(audit=audit, flow_mode="audit"))
    read = call("read_file", {"path": "own/passwords.txt"})
    _, search = await propose(one, read, call("search_web", {"text": "news"}, call_id="2"), scope=scope())
    assert search.success
    flags = [event.details.get("flags") for event in audit.events if event.type == "action_evaluated"]
    assert flags == [[], ["flow-would-block"]]


@pytest.mark.parametrize("flow_mode", ["enforce", "audit"])
async def test_one_persons_notes_never_reach_another_chat(flow_mode: FlowMode) -> None:
    ran, person = Ran("my diary"), Person()
    one = gate(group(*_files(ran)), person=person, judge=shield(flow_mode=flow_mode))
    tell = call("tell", {"text": "hello"}, call_id="2")
    (before,) = await propose(one, tell, scope=scope())
    _, after = await propose(one, call("read_file", {"path": "own/diary.txt"}), tell, scope=scope())
    assert (before.success, after.success) == (True, False)
    assert "belongs to one person alone" in after.content
    assert len(person.asked) == 1


_COPIED = "a value holds what was read from your own data (your files), and this sends data out"


async def test_the_question_names_what_was_read_and_where_a_value_comes_from() -> None:
    ran, person = Ran("the address of the plan is https://plan.example/7f3a"), Person()
    one = gate(group(*_files(ran)), person=person)
    url = {"url": "https://plan.example/7f3a"}
    await propose(
        one, call("read_file", {"path": "own/a"}), call("fetch_page", url, call_id="2"), scope=scope()
    )
    assert person.asked[0]["words"].splitlines() == [
        "May I use fetch_page?",
        "It opens a page at plan.example, which learns the whole address below.",
        f"Why I ask: the rule “read-pages” of the security policy asks for it; {_COPIED}.",
        "It has read your own: your files.",
        "A value below holds words from your files.",
        'Url: "https://plan.example/7f3a"',
        f"SHA-256: {person.asked[0]['hash']}",
    ]


async def test_what_is_allowed_for_a_conversation_covers_that_file_alone_and_nothing_learnt_since() -> None:
    ran, person, audit = Ran(), Person("for_conversation"), RecordedAudit()
    one = gate(group(*_files(ran)), person=person, judge=shield(audit=audit))
    foreign = ForeignWords()
    await propose(one, _write(), scope=scope())
    assert (person.can_last, "rule_granted" in audit.types()) == ([True], True)
    person.answer = "refused"
    again = [_write("a.txt", "other", "2"), _write("own/a.txt", "more", "3")]
    assert [result.success for result in await propose(one, *again, scope=scope())] == [True, True]
    assert len(person.asked) == 1
    foreign.note("a web page")
    for what, turn in (
        (_write("own/b.txt", name="4"), scope()),
        # Each of these is another file, or could be.
        (_write("own/A.txt", name="8"), scope()),
        (_write("own\\a.txt", name="9"), scope()),
        (_write("own/./a.txt", name="10"), scope()),
        (call("delete_file", {"path": "own/a.txt"}, call_id="5"), scope()),
        (_write(name="6"), scope(session_id="ses-2")),
        (_write(name="7"), scope(foreign=foreign)),
    ):
        (result,) = await propose(one, what, scope=turn)
        assert not result.success
    assert (len(person.asked), len(ran.calls)) == (8, 3)


async def test_tools_of_others_cannot_be_allowed_for_a_conversation() -> None:
    person = Person()
    one = gate(group(tool("write_file", Ran(), schema=FILE_AND_TEXT, built_in=False)), person=person)
    await propose(one, _write(), scope=scope())
    assert person.can_last == [False]


async def test_a_person_who_was_asked_too_often_learns_it() -> None:
    ran = Ran()
    (result,) = await propose(gate(group(*_files(ran)), person=Person("too_many")), _write(), scope=scope())
    assert "asked too often" in result.content
    assert ran.calls == []


async def test_the_titles_in_the_answer_about_an_unknown_note_are_those_that_may_be_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "policy.toml").write_text(
        '[[deny]]\nname = "closed"\naction_types = ["read_note"]\npaths = ["notes/diary"]\n'
        '[[allow]]\nname = "delete"\naction_types = ["delete_note"]\n'
    )
    notes = notes_group(tmp_path)
    judge = shield(policies=PolicyBook(tmp_path / "policy.toml"))
    one = gate(notes, judge=judge, person=Person("allowed"))
    await propose(
        one,
        *(call("write_note", {"title": title, "text": "x"}, call_id=title) for title in ("diary", "tea")),
        scope=scope(),
        groups=("notes",),
    )
    for name in ("read_notes", "delete_note"):
        (result,) = await propose(one, call(name, {"title": "coffee"}), scope=scope(), groups=("notes",))
        assert "there is no note “coffee”; there are: tea" in result.content
        assert "diary" not in result.content
