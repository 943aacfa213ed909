"""Hostile tries with link codes, from a message to the store: no one attaches to a stranger's person.

Covers: gateway/people/linking.py, gateway/people/codes.py, gateway/storage/identities.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.access.policy import AccessRule
from gateway.people.codes import new_code
from gateway.people.linking import MAX_IDENTITIES, TRIES, VALID_S
from pipeline.domain.clock import ManualClock
from tests.end_to_end.test_links import counting
from tests.support.link_talk import OWNER, LinkTalk, open_link_talk

NOON = 1_900_065_600.0
"""2030-03-18, 12:00 UTC."""


async def _people(talk: LinkTalk) -> dict[str, str]:
    """The key of the person of everybody who is linked, by their user id."""
    linked = await talk.harness.store.identities.linked()
    return {identity.user: person for identity, person in linked.items()}


async def test_100_guesses_find_nothing_and_are_stopped_after_a_few_over_restarts(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    rule = AccessRule.of(mode="open", open_messages_per_day=1_000)
    async with open_link_talk(tmp_path, clock=clock, rule=rule) as talk:
        code = await talk.code(OWNER)
        answers = [await talk.say("eve", f"/link {new_code()}") for _ in range(100)]
        assert ["does not work" in one for one in answers].count(True) == TRIES.identity
        assert ["too many wrong codes" in one for one in answers].count(True) == 100 - TRIES.identity
        assert "too many wrong codes" in await talk.say("eve", f"/link {code}")
    async with open_link_talk(tmp_path, clock=clock) as talk:
        assert "too many wrong codes" in await talk.say("eve", f"/link {code}")
        assert await _people(talk) == {}
        assert "belong to one person" in await talk.say("ann", f"/link {code}"), "others are not shut out"
        await clock.advance(TRIES.window_s)
        assert "belong to one person" in await talk.link("ben", "eve")


async def test_many_people_together_have_a_limit_of_guesses_too(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    async with open_link_talk(tmp_path, clock=clock) as talk:
        code = await talk.code(OWNER)
        for number in range(TRIES.everybody // TRIES.identity):
            for _ in range(TRIES.identity):
                assert "does not work" in await talk.say(f"eve{number}", f"/link {new_code()}")
        assert "too many wrong codes" in await talk.say("mallory", f"/link {new_code()}")
        assert "too many wrong codes" in await talk.say("ann", f"/link {code}")
        await clock.advance(TRIES.window_s)
        assert "belong to one person" in await talk.link(OWNER, "ann")


@pytest.mark.parametrize("spelling", ["{}", "{} please", "ACDE3479", "\ud800", "' OR 1=1 --", "%"])
async def test_a_wrong_code_links_no_one_whatever_it_is(tmp_path: Path, spelling: str) -> None:
    async with open_link_talk(tmp_path) as talk:
        code = await talk.code(OWNER)
        assert "does not work" in await talk.say("eve", f"/link {spelling.format(code[:-1])}")
        assert await _people(talk) == {}


async def test_a_code_may_be_typed_in_lower_case_with_spaces_and_hyphens(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        code = (await talk.code(OWNER)).lower()
        assert "belong to one person" in await talk.say("ann", f"/link {code[:4]}-{code[4:6]} {code[6:]}")


async def test_a_code_that_is_too_old_links_no_one(tmp_path: Path) -> None:
    clock = ManualClock(NOON)
    async with open_link_talk(tmp_path, clock=clock) as talk:
        code = await talk.code(OWNER)
        await clock.advance(VALID_S)
        assert "older than 15 minutes" in await talk.say("ann", f"/link {code}")
        assert await _people(talk) == {}


async def test_a_code_works_once_for_all_people(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        code = await talk.code(OWNER)
        await talk.say("ann", f"/link {code}")
        for again in ("ann", "eve", OWNER):
            assert "does not work" in await talk.say(again, f"/link {code}")
        assert set(await _people(talk)) == {OWNER, "ann"}


async def test_ones_own_code_links_nothing_in_any_of_ones_chats(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        code = await talk.code(OWNER)
        for chat in ("c1", "c2"):
            assert "the code of this chat" in await talk.say(OWNER, f"/link {code}", chat=chat)
        assert "belong to one person" in await talk.say("ann", f"/link {code}"), "it is not used up"


async def test_only_the_newest_code_works_and_none_after_unlink(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        old, new = await talk.code(OWNER), await talk.code(OWNER)
        assert "does not work" in await talk.say("ann", f"/link {old}")
        await talk.say(OWNER, "/unlink")
        assert "does not work" in await talk.say("ann", f"/link {new}")
        assert await _people(talk) == {}


async def test_a_chain_of_links_is_one_person_and_all_of_it_read_so(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        await talk.link(OWNER, "ann")
        assert "your chats on the terminal and memory" in await talk.link("ann", "cat")
        assert len(set((await _people(talk)).values())) == 1
        shown = [await talk.announced(one, number) for one, number in ((OWNER, 2), ("ann", 1), ("cat", 0))]
        assert [len(lines) for lines in shown] == [2, 1, 0]


async def test_who_is_linked_joins_no_other_person_before_unlink(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        await talk.link(OWNER, "ann")
        assert "linked with other chats already" in await talk.link("eve", "ann")
        assert "belong to one person already" in await talk.link("ann", OWNER)
        assert set(await _people(talk)) == {OWNER, "ann"}
        await talk.say("ann", "/unlink")
        assert "belong to one person for me now" in await talk.link("eve", "ann")
        people = await _people(talk)
        assert people["ann"] == people["eve"] != people[OWNER]


async def test_who_says_the_code_of_a_stranger_gives_nothing_away_and_gets_all_back(
    tmp_path: Path,
) -> None:
    async with open_link_talk(tmp_path, graph=counting()) as talk:
        assert [await talk.say(OWNER, "hi") for _ in range(3)][-1] == "visit 3"
        await talk.link("eve", OWNER)
        assert await talk.say("eve", "hi") == "visit 1"
        await talk.say(OWNER, "/unlink")
        assert [await talk.say("eve", "hi"), await talk.say(OWNER, "hi")] == ["visit 2", "visit 4"]
        assert set(await _people(talk)) == {"eve"}


async def test_a_person_has_a_most_of_chats(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        for number in range(MAX_IDENTITIES - 1):
            await talk.link(OWNER, f"a{number}")
        assert "No more chats" in await talk.link(OWNER, "eve")
        await talk.say("a0", "/unlink")
        assert "belong to one person" in await talk.link(OWNER, "eve")


def test_codes_do_not_repeat() -> None:
    assert len({new_code() for _ in range(10_000)}) == 10_000
