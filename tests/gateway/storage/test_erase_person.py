"""deploy/erase-person.sql: nothing of the person stays in the store, and everybody else continues."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

from gateway.storage.identities import Identity
from pipeline.llm.scripted import ScriptedLlm
from tests.contracts.test_store_feedback import UP
from tests.end_to_end.test_links import counting
from tests.support.harness import open_gateway
from tests.support.link_talk import open_link_talk
from tests.support.posting_channel import MemoryPosts

SCRIPT = Path(__file__).parents[3] / "deploy" / "erase-person.sql"
VALUES = "'telegram' AS channel, 'main' AS account, '1001' AS user, '1001' AS chat"


async def test_a_person_is_erased_and_the_next_one_is_not_disturbed(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, posts=(posts := MemoryPosts())) as harness:
        for user, chat, name in (("ann", "c9", "Xanthippe"), ("ben", "c1", "Yolanda"), ("ben", "c2", "Ben")):
            thread = f"memory:main:{chat}"
            who = replace(UP, channel="memory", account="main", user=user, name=name)
            given = replace(who, thread=thread, message_id=name)
            await harness.store.feedback.give(given)
        await harness.store.page.chats.rename("memory:main:c1", "Yolanda's title")
        await posts.receive(
            "I hide my spare key under the Zinnia pot", native_id="1", chat="c1", author="ann"
        )
        await posts.receive("my cat is called Mortimer", native_id="2", chat="c2", author="ben")
        await posts.receive("and the alarm code is Quetzal", native_id="3", chat="c1", author="ann")
        answered = (("c1", "Quetzal"), ("c2", "Mortimer"))
        await posts.until(lambda: all(word in "".join(posts.texts(chat)) for chat, word in answered))
        ann = Identity(channel="memory", account="main", user="ann")
        # It fills the index of what was said.
        assert len(await harness.store.search.find("zinnia quetzal", [ann], limit=9)) == 0
        assert len(await harness.store.search.find("zinnia", [ann], limit=9)) == 2
    script = SCRIPT.read_text(encoding="utf-8")
    assert script.count(VALUES) == 1
    of_ann = "'memory' AS channel, 'main' AS account, 'ann' AS user, 'c1' AS chat"
    store = tmp_path / "parlour.sqlite3"

    db = sqlite3.connect(store)
    db.executescript(script.replace(VALUES, of_ann))
    assert (
        db.execute(
            "SELECT count(*) FROM log JOIN threads ON threads.id = thread WHERE key LIKE '%:c1'"
        ).fetchone()[0]
        <= 1
    )
    db.close()

    data = _bytes_of(tmp_path)
    assert [word for word in (b"Zinnia", b"Quetzal", b"Xanthippe", b"Yolanda") if word in data] == []
    assert b"Mortimer" in data
    llm = ScriptedLlm.echo()
    async with open_gateway(tmp_path, llm=llm, posts=(posts := MemoryPosts())):
        await posts.receive("what is my cat called?", native_id="4", chat="c2", author="ben")
        await posts.receive("hello again", native_id="5", chat="c1", author="ann")
        await posts.until(lambda: bool(posts.texts("c1") and posts.texts("c2")))
    seen = {request.messages[-1].content: str(request.messages) for request in llm.requests}
    assert "Mortimer" in seen["what is my cat called?"]
    assert "Zinnia" not in seen["hello again"]


async def test_the_last_of_a_persons_linked_chats_takes_what_they_share_along(tmp_path: Path) -> None:
    async with open_link_talk(tmp_path, "budget.person_tokens=9000", graph=counting()) as talk:
        await talk.say("ann", "hi")
        await talk.link("ann", "ben")
        await talk.say("ben", "hi")
        await talk.code("ann")
        await talk.say("ann", "/link ACDE3479")
        people = await talk.harness.store.identities.linked()
    (person,) = set(people.values())
    store = sqlite3.connect(tmp_path / "parlour.sqlite3")
    tables = ("identities", "link_codes", "link_tries")
    left = []
    for name in ("ann", "ben"):
        own = f"'memory' AS channel, 'main' AS account, '{name}' AS user, 'dm-{name}' AS chat"
        store.executescript(SCRIPT.read_text(encoding="utf-8").replace(VALUES, own))
        for kept in ("linked", "owners", "gone", "person"):
            store.execute(f"DROP TABLE temp.{kept}")
        counts = [store.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
        owners = {owner for (owner,) in store.execute("SELECT owner FROM states")}
        left.append((counts, owners))
        assert f"user:{name}" not in str(store.execute("SELECT * FROM identities").fetchall())
    store.close()
    assert left == [([1, 0, 0], {person}), ([0, 0, 0], set())]


def _bytes_of(folder: Path) -> bytes:
    """The store's file with its write-ahead log."""
    return b"".join(file.read_bytes() for file in folder.glob("parlour.sqlite3*"))
