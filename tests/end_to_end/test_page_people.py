"""Several people on one page: each joins by an invitation and sees only their own conversations.

Covers: gateway/people/page_people.py, gateway/app/page_guests.py, adapters/guests.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from gateway.people.page_people import LOOK_S
from pipeline.domain.clock import ManualClock
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.support.looks import look_again
from tests.support.page_people import Client, Disconnected, OpenPage, new_token, open_page


async def test_an_invited_person_joins_talks_and_comes_back_with_their_own_token(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        token = new_token()
        async with Client() as ann:
            await ann.join(page.url, await page.invite("Ann"), token)
            assert await ann.say("hello") == "You said: hello"
        async with Client(chat="latest") as again:
            history = await again.connect(page.url, token)
            assert [line["text"] for line in history if line["type"] == "entry"] == [
                "hello",
                "You said: hello",
            ]
    async with open_page(tmp_path) as page, Client(chat="latest") as again:
        assert len([line for line in await again.connect(page.url, token) if line["type"] == "entry"]) == 2


async def test_an_invitation_lets_one_browser_in(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as ann, Client() as eve:
        code, token = await page.invite("Ann"), new_token()
        await ann.join(page.url, code, token)
        with pytest.raises(Disconnected, match="wrong_invitation"):
            await eve.join(page.url, code, new_token())
        # The browser whose answer was lost asks again.
        await ann.join(page.url, code, token)


async def test_wrong_invitations_and_tokens_are_counted_together(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as eve:
        codes: list[str] = []
        for number in range(6):
            invitation = "" if number % 2 else f"guess-{number}"
            with pytest.raises(Disconnected) as refused:
                await eve.join(page.url, invitation, new_token())
            codes.append(str(refused.value).rpartition(" ")[2])
        assert codes[:5] == ["wrong_invitation", "wrong_token"] * 2 + ["wrong_invitation"]
        assert codes[5:] == ["too_many_attempts"]
        await eve.join(page.url, await page.invite("Eve"), new_token())


@pytest.mark.parametrize("token", ["short", "", "a" * 44, "ä" * 43])
async def test_a_browsers_own_token_must_be_long(tmp_path: Path, token: str) -> None:
    async with open_page(tmp_path) as page, Client() as ann:
        with pytest.raises(Disconnected, match="bad_frame"):
            await ann.join(page.url, await page.invite("Ann"), token)


async def test_a_removed_person_is_signed_out_at_once_and_refused(tmp_path: Path) -> None:
    clock = ManualClock(1_900_000_000.0)
    async with (
        open_page(tmp_path, clock=clock) as page,
        Client() as ann,
        Client() as phone,
        Client() as ben,
        Client() as owner,
    ):
        token = new_token()
        await ann.join(page.url, await page.invite("Ann"), token)
        await phone.connect(page.url, token)
        await ben.join(page.url, await page.invite("Ben"), new_token())
        await owner.connect(page.url, page.owner_token)
        person = await page.id_of("Ann")
        assert await page.remove(person)
        # The look for removed people has not come yet.
        await phone.send_text("m1", "still here?")
        assert await phone.read_to_the_end() == 4403
        assert await page.store.threads_of("web", "local", limit=9) == ()
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(ann.read_to_the_end())
            while not reading.done():
                await clock.advance(LOOK_S)
                await page.store.page.people.people()
        assert reading.result() == 4403
        with pytest.raises(Disconnected, match="wrong_token"):
            await ann.connect(page.url, token)
        assert await ben.say("me too?") == "You said: me too?"
        assert await owner.say("and I?") == "You said: and I?"


async def test_what_a_removed_person_left_is_stopped_and_not_answered(tmp_path: Path) -> None:
    gate = asyncio.Event()
    llm = ScriptedLlm([ScriptedAnswer(chunks=("one ", "two"), gate=gate, gate_at=1), ScriptedAnswer()])
    async with open_page(tmp_path, llm=llm) as page, Client() as ann:
        await ann.join(page.url, await page.invite("Ann"), new_token())
        person = await page.id_of("Ann")
        await ann.send_text("m1", "first")
        await ann.wait_for(lambda frame: frame.get("event", {}).get("type") == "llm_token")
        await ann.send_text("m2", "second")
        await ann.accepted("m2")
        await page.remove(person)
        assert await ann.read_to_the_end() == 4403
        # The gate stays closed: the running turn ends because it is stopped.
        while await page.store.open_threads():
            await look_again()
        assert len(llm.requests) == 1


async def test_a_token_of_a_person_opens_nothing_of_the_owner(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page, Client() as owner, Client(chat="latest") as ann:
        await owner.connect(page.url, page.owner_token)
        await owner.say("my secret")
        history = await _joined(page, ann, "Ann")
        assert [one["type"] for one in history] == ["welcome"]
        assert (await ann.ask(type="chats"))["chats"] == []
        await ann.say("hers")
        listed = (await owner.ask(type="chats"))["chats"]
        assert [one["title"] for one in listed] == ["my secret"]
        assert {one["chat"] for one in listed} == {owner.chat}


async def _joined(page: OpenPage, client: Client, name: str) -> list[dict[str, object]]:
    token = await page.join(name)
    return await client.connect(page.url, token)
