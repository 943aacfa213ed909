"""/memory: what is remembered is shown to its person or its room alone, and forgotten when they say so.

Covers: gateway/turns/memory_command.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from gateway.storage.ports import Store
from pipeline.domain.ids import identity_key
from pipeline.memory.ports import MemoryWrites
from pipeline.memory.values import EntityRef, Fact, Profile, Rule, SessionArc
from tests.end_to_end.test_off_the_record import found_in
from tests.support.link_talk import OWNER, LinkTalk, open_link_talk
from tests.support.looks import look_again
from tests.support.two_channels import open_two_channels

NOW = 1_900_000_000.0
ANN = "memory:main:user:ann"
ROOM = "memory:main:room:lounge"


def fact(fact_id: str, quote: str, about: str, *, at: float = NOW) -> Fact:
    return Fact(
        id=fact_id,
        category="preference",
        subject=EntityRef("User", "user"),
        predicate="WANTS",
        object=EntityRef("Goal", about),
        evidence_quote=quote,
        confidence="high",
        source_session_id="ses_1",
        source_turn_index=1,
        created_at=at,
        last_referenced_at=at,
        write_timing="immediate",
        write_reason="said so",
    )


async def remember(store: Store, owner: str, *facts: Fact, said: str = "") -> None:
    """Facts, one rule and one episode."""
    rule = Rule(
        id=f"rule of {owner}",
        text="Answer in rhymes",
        source="explicit_user",
        confidence="high",
        evidence=("rhyme please",),
        created_at=NOW,
    )
    arc = SessionArc(
        session_id=f"ses of {owner}",
        started_at=NOW,
        ended_at=NOW,
        turn_count=3,
        primary_themes=("birds",),
        summary=said or "We spoke of herons",
    )
    await store.memories.write_profile(owner, Profile(rules=(rule,)))
    writes = MemoryWrites(key=f"k {owner}", session_id="ses_1", at=NOW, facts=facts, arc=arc)
    await store.memories.write(owner, writes)


async def press(talk: LinkTalk, label: str) -> str:
    """Ann presses the newest button with that label; the answer."""
    shown = [one for one in talk.posts.messages if label in one.buttons][-1]
    before = len(talk.posts.messages)
    event = {"id": f"press-{before}", "chat": "dm-ann", "private": True, "from": "ann", "bot": False}
    data = shown.data[shown.buttons.index(label)]
    await talk.posts.take({**event, "kind": "press", "message": shown.native_id, "data": data})
    await talk.posts.until(lambda: len(talk.posts.messages) > before)
    while await talk.harness.store.outbox_open():
        await look_again()
    return "".join(one.text + one.file.decode() for one in talk.posts.messages[before:])


async def test_it_shows_facts_with_their_quotes_rules_and_episodes(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        assert "I remember nothing of you" in await talk.say("ann", "/memory")
        facts = (fact("f1", "I want to see a heron", "a heron"), fact("f2", "no `more` eggs", "no eggs"))
        await remember(talk.harness.store, ANN, *facts)
        said = await talk.say("ann", "/memory")
        assert "what I remember of you (4 entries)" in said
        assert "1. How I should answer: Answer in rhymes" in said
        assert "wants: a heron, because you said: “I want to see a heron”" in said
        assert "“no 'more' eggs”" in said
        assert re.search(r"4\. On 2030-03-17: We spoke of herons", said)
        assert "I remember nothing of you" in await talk.say("ben", "/memory")
    assert found_in(tmp_path, "Answer in rhymes") == ["parlour.sqlite3"], "the memory itself"


async def test_one_entry_is_forgotten_by_its_number_once_it_is_confirmed(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        store = talk.harness.store
        await remember(store, ANN, fact("f1", "theheronlands", "herons"), fact("f2", "staysforann", "eggs"))
        listed = await talk.say("ann", "/memory")
        number = re.search(r"(\d)\. wants: herons", listed)
        assert number is not None
        asked = await talk.say("ann", f"/memory forget {number[1]}")
        assert "Forget this?" in asked
        assert (await store.memories.counts(ANN)).facts == 2
        code = re.search(r"/memory forget ([A-Z2-7]{6})", asked)
        assert code is not None
        # The list has changed since: the code names the entry all the same.
        await store.memories.write(
            ANN, MemoryWrites(key="k3", session_id="ses_1", at=NOW, facts=(fact("f3", "later", "tea"),))
        )
        assert "Forgotten: wants: herons" in await talk.say("ann", f"/memory forget {code[1].lower()}")
        assert {one.id for one in await store.memories.facts(ANN)} == {"f2", "f3"}
        assert "There is no number 9" in await talk.say("ann", "/memory forget 9")
        assert "There is no number" in await talk.say("ann", f"/memory forget {code[1]}")
    assert found_in(tmp_path, "theheronlands") == []
    assert found_in(tmp_path, "staysforann")


async def test_buttons_forget_and_turn_off_as_the_words_do(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        memories = talk.harness.store.memories
        await remember(talk.harness.store, ANN, fact("f1", "theheronlands", "herons"))
        await talk.say("ann", "/memory")
        assert "Memory is off" in await press(talk, "Off")
        assert (await memories.profile(ANN)).enabled is False
        await talk.say("ann", "/memory")
        assert "Memory is on" in await press(talk, "On")
        await talk.say("ann", "/memory recall on")
        await talk.say("ann", "/memory")
        assert "Forget everything that I remember of you (3 entries)?" in await press(talk, "Forget all")
        assert (await memories.counts(ANN)).facts == 1
        assert "is forgotten" in await press(talk, "Forget everything")
        counts = await memories.counts(ANN)
        assert (counts.facts, counts.arcs, counts.rules) == (0, 0, 0)
        assert (await memories.profile(ANN)).proactive_recall_enabled, "the person's choice stays"
        await remember_one(talk.harness.store)
        await talk.say("ann", "/memory")
        assert "Forget this?" in await talk.say("ann", "/memory forget 1")
        label = talk.posts.messages[-1].buttons[0]
        assert "Forgotten:" in await press(talk, label)
    assert found_in(tmp_path, "theheronlands") == []


async def remember_one(store: Store) -> None:
    """One more fact of Ann's."""
    writes = MemoryWrites(key="k9", session_id="ses_1", at=NOW, facts=(fact("f9", "theheronlands", "x"),))
    await store.memories.write(ANN, writes)


async def test_a_long_list_has_pages(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        facts = [fact(f"f{number}", f"quote {number}", f"goal {number}") for number in range(23)]
        await remember(talk.harness.store, ANN, *facts)
        first = await talk.say("ann", "/memory")
        assert "Page 1 of 3" in first
        assert "Page 2 of 3" in await press(talk, "Page 2")
        last = await talk.say("ann", "/memory page 3")
        assert "25. On 2030-03-17" in last
        assert "Page" not in last
        assert last == await talk.say("ann", "/memory page 99")


async def test_in_a_room_the_rooms_memory_alone_is_shown_and_forgotten(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        store = talk.harness.store
        await remember(store, ANN, fact("f1", "annsecret", "herons"), said="annarc")
        await remember(store, ROOM, fact("f1", "roomfact", "a picnic"), said="roomarc")
        said = await talk.say("ann", "/memory", chat="lounge", private=False)
        assert "what I remember of this room" in said
        assert "roomfact" in said
        assert "roomarc" in said
        assert "annsecret" not in said
        assert "annarc" not in said
        await talk.say("ben", "/memory forget everything", chat="lounge", private=False)
        assert (await store.memories.counts(ROOM)).facts == 0
        assert (await store.memories.counts(ANN)).facts == 1
        assert "annsecret" in await talk.say("ann", "/memory")


async def test_the_page_and_telegram_show_the_list_and_its_buttons(tmp_path: Path) -> None:
    async with open_two_channels(tmp_path) as place:
        store = place.harness.store
        for chat in place.chats:
            await chat.ask("hello")
            account = "local" if chat.name == "web" else "main"
            (thread,) = await store.threads_of(chat.name, account, limit=2)
            (entry,) = [body for at, body in await store.newest_entries(limit=9) if at == thread]
            owner = identity_key(chat.name, account, entry["author"])
            await remember(store, owner, fact("f1", "I want to see a heron", "herons"))
            said = await chat.ask("/memory")
            assert "wants: herons, because you said: “I want to see a heron”" in said
            while chat is place.page and not place.page.page.seen.questions:
                await place.page.page.receive()
            assert "Memory is off" in await chat.press("Off")
            assert (await store.memories.profile(owner)).enabled is False


async def test_where_memory_is_off_for_everyone_it_says_so(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path, 'memory.mode="incognito"') as talk:
        assert await talk.say("ann", "/memory") == "This bot remembers nothing between conversations."


async def test_linked_chats_have_one_memory_and_off_the_record_says_so(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path) as talk:
        await talk.link(OWNER, "ann")
        (person,) = set((await talk.harness.store.identities.linked()).values())
        await remember(talk.harness.store, person, fact("f1", "on both", "herons"))
        for one in (OWNER, "ann"):
            assert "on both" in await talk.say(one, "/memory")
        await talk.say("ann", "/otr")
        said = await talk.say("ann", "/memory")
        assert "off the record" in said
        assert "on both" not in said
        assert "takes `page NUMBER`" in await talk.say(OWNER, "/memory sideways")
