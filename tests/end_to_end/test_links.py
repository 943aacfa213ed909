"""/link and /unlink: what becomes common to the chats of one person, and what does not.

Covers: gateway/people/linking.py, gateway/people/preferences.py, gateway/turns/link_commands.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.access.policy import AccessRule
from gateway.storage.ports import Committed, Lease, TurnCommit
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.chat import ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.errors import StorageError
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import GraphSpec, Kept
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.runtime.context import RunContext
from tests.end_to_end.test_off_the_record import found_in
from tests.support.link_talk import OWNER, open_link_talk
from voice.synthesis.scripted_synthesizer import ScriptedSpeaker

NOON = 1_900_065_600.0
"""2030-03-18, 12:00 UTC."""


def counting() -> GraphSpec[RunContext]:
    """A graph that counts the messages of a person."""

    async def count(state: State, _context: RunContext) -> NodeResult:
        visits = state.get("visits", 0) + 1
        return NodeResult(update={"visits": visits, "agent": {"status": "done", "answer": f"visit {visits}"}})

    return GraphSpec(
        name="counting",
        entry="count",
        nodes={"count": count},
        edges=(),
        keep={"visits": Kept(lives="person")},
    )


async def test_state_of_a_person_is_shared_by_their_chats_and_separated_by_unlink(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path, graph=counting()) as talk:
        assert [await talk.say(OWNER, "hi") for _ in range(3)][-1] == "visit 3"
        assert await talk.say("ann", "hi") == "visit 1"
        assert "and your chat on the terminal belong to one person" in await talk.link(OWNER, "ann")
        assert [await talk.say("ann", "hi"), await talk.say(OWNER, "hi")] == ["visit 4", "visit 5"]
        assert await talk.say("ben", "hi") == "visit 1"
    async with open_link_talk(tmp_path, graph=counting()) as talk:
        assert await talk.say("ann", "hello") == "visit 6"
        said = await talk.say("ann", "/unlink")
        assert "no longer linked with your chat on the terminal" in said
        assert [await talk.say("ann", "hi"), await talk.say(OWNER, "ho")] == ["visit 2", "visit 7"]
        assert "nothing to undo" in await talk.say("ann", "/unlink")


async def test_the_owner_of_the_code_reads_who_joined_and_separates_by_unlink(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path, graph=counting()) as talk:
        await talk.say(OWNER, "hi")
        await talk.link(OWNER, "ann")
        (shown,) = await talk.announced(OWNER, 1)
        assert shown.startswith("A chat on memory (`Ann`) has been linked with this one")
        assert "If that was not you, send `/unlink` here" in shown
        assert "no longer linked" in await talk.say(OWNER, "/unlink")
        assert [await talk.say("ann", "hi"), await talk.say(OWNER, "hi")] == ["visit 2", "visit 2"]


def _dear(count: int = 8) -> ScriptedLlm:
    return ScriptedLlm([ScriptedAnswer(chunks=("Dear.",), prompt_tokens=400) for _ in range(count)])


async def test_a_budget_is_added_up_and_no_link_resets_it(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    async with open_link_talk(tmp_path, "budget.person_tokens=1000", llm=_dear(), clock=clock) as talk:
        assert [await talk.say(one, "hi") for one in (OWNER, "ann", "ann")] == ["Dear."] * 3
        await talk.link(OWNER, "ann")
        assert "Your budget for today is used up" in await talk.say(OWNER, "hi")
        assert "Your budget for today is used up" in await talk.say("ann", "hi")
        assert await talk.say("ben", "hi") == "Dear."
        for owner, other in ((OWNER, "ann"), ("ann", OWNER)):
            await talk.say("ann", "/unlink")
            assert "is used up" in await talk.say("ann", "hi")
            assert "is used up" in await talk.say(OWNER, "hi")
            await talk.link(owner, other)
        await talk.link("ann", "eve")
        assert "is used up" in await talk.say("eve", "hi")
        await talk.say("eve", "/unlink")
        assert "is used up" in await talk.say("eve", "hi")
        await clock.advance(12 * 3600.0)
        assert await talk.say("eve", "hi") == "Dear."


async def test_a_preference_that_the_owner_of_the_code_has_not_set_is_the_others(
    tmp_path: Path,
) -> None:
    async with open_link_talk(tmp_path, speaker=ScriptedSpeaker()) as talk:
        await talk.say("ann", "/voice")
        await talk.link("ben", "ann")
        await talk.say("ben", "read this")
        await talk.posts.until(lambda: len(talk.posts.voices) == 1)
        assert "replies are off" in await talk.say("ben", "/voice")
        assert "replies are on" in await talk.say("ann", "/voice")
        await talk.say("ann", "/unlink")
        assert "replies are off" in await talk.say("ann", "/voice")
        assert "replies are off" in await talk.say("ben", "/voice")


def _calling(name: str, **arguments: Any) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id="c", name=name, arguments=json.dumps(arguments)))


async def test_notes_and_the_time_zone_are_shared_and_reminders_stay_in_their_chat(tmp_path: Path) -> None:
    load = _calling("load_tools", groups=["notes", "schedule"])
    remind = _calling("remind_me", when="tomorrow at 8 am", text="tea")
    llm = ScriptedLlm(
        [
            *(load, _calling("set_time_zone", zone="Asia/Tokyo"), ScriptedAnswer.of("Set.")),
            *(
                load,
                _calling("write_note", title="cat", text="Mortimer"),
                remind,
                ScriptedAnswer.of("Noted."),
            ),
            *(
                load,
                _calling("read_notes", title="cat"),
                _calling("list_reminders"),
                ScriptedAnswer.of("Read."),
            ),
            *(load, _calling("read_notes", title="cat"), ScriptedAnswer.of("Gone.")),
        ]
    )
    async with open_link_talk(tmp_path, llm=llm) as talk:
        assert await talk.say("ann", "my zone") == "Set."
        assert await talk.say(OWNER, "my cat") == "Noted."
        await talk.link(OWNER, "ann")
        assert await talk.say("ann", "my cat?") == "Read."
        read, listed = (llm.requests[-2].messages[-1].content, llm.requests[-1].messages[-1].content)
        assert "Mortimer" in read
        assert "tea" not in listed
        assert "time zone is Asia/Tokyo" in llm.requests[-1].messages[0].content
        await talk.say("ann", "/unlink")
        assert await talk.say("ann", "my cat?") == "Gone."
        assert "Mortimer" not in llm.requests[-1].messages[-1].content


async def test_a_link_lets_no_one_in(tmp_path: Path) -> None:
    rule = AccessRule.of(mode="list", allow=["dm:dm-ann", "dm:ann", "room:lounge/ben"])
    async with open_link_talk(tmp_path, rule=rule) as talk:
        await talk.link(OWNER, "ann")
        await talk.posts.receive("hi", native_id="x1", chat="lounge", author="ann", private=False)
        await talk.posts.receive("hi", native_id="x2", chat="dm-eve", author="eve")
        await talk.posts.until(lambda: bool(talk.posts.texts("lounge") and talk.posts.texts("dm-eve")))
        assert len(await talk.harness.store.newest_entries(limit=9)) == 3, "two commands and what was shown"


async def test_in_a_room_no_code_is_shown_and_a_code_that_is_said_there_is_useless(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        refused = await talk.say("ann", "/link", chat="lounge", private=False)
        assert "Others read along" in refused
        code = await talk.code("ann")
        assert code not in refused
        assert await talk.say("ann", f"/link {code}", chat="lounge", private=False) == refused
        assert "does not work" in await talk.say("eve", f"/link {code}")
        code = await talk.code("ann")
        assert await talk.say("ben", f"/link {code}", chat="lounge", private=False) == refused
        assert "does not work" in await talk.say(OWNER, f"/link {code}")
        assert "Others read along" in await talk.say("ann", "/unlink", chat="lounge", private=False)
        assert await talk.harness.store.identities.linked() == {}


async def test_off_the_record_nothing_is_linked_but_unlink_works(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        code = await talk.code(OWNER)
        await talk.say("ann", "/otr")
        assert "is off the record" in await talk.say("ann", "/link")
        assert "is off the record" in await talk.say("ann", f"/link {code}")
        await talk.say("ann", "/otr")
        assert "belong to one person" in await talk.say("ann", f"/link {code}")
        await talk.say("ann", "/otr")
        assert "no longer linked" in await talk.say("ann", "/unlink")


async def test_a_code_is_in_no_byte_of_the_data_folder_once_it_is_shown(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        shown = [await talk.code(OWNER), await talk.code("ann")]
    assert [found_in(tmp_path, code) for code in shown] == [[], []]


class _FailsAfterJoin(SqliteStore):
    """The commit of the command that joined fails once, as by a full disk or a crash."""

    failed = False

    async def commit_turn(self, lease: Lease, commit: TurnCommit) -> Committed:
        if not self.failed and any("is set aside" in str(one.body) for one in commit.records):
            self.failed = True
            raise StorageError("the disk is full")
        return await super().commit_turn(lease, commit)


async def test_a_link_whose_answer_was_cut_off_is_said_when_it_is_run_again_and_announced_once(
    tmp_path: Path,
) -> None:
    store = _FailsAfterJoin(tmp_path / "parlour.sqlite3", synchronous="NORMAL")
    async with open_link_talk(tmp_path, store=store) as talk:
        assert "belong to one person" in await talk.link(OWNER, "ann")
        assert store.failed
        assert len(await talk.announced(OWNER, 1)) == 1
        assert await talk.harness.store.identities.linked()


@pytest.mark.parametrize("person", [OWNER, "ann"])
async def test_help_names_both_commands(tmp_path: Path, person: str) -> None:
    async with open_link_talk(tmp_path) as talk:
        said = (await talk.say(person, "/help")).replace("\n", "")
        assert "/link" in said
        assert "/unlink" in said
