"""Two people in one room and in private, random messages: what is private of one is never in a request
that the model gets for the other, or for the room.

Covers: pipeline/runtime/scope.py, gateway/turns/sessions.py, pipeline/tools/workspace.py,
gateway/turns/memory_command.py.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.access.policy import AccessRule
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import Author, InboundMessage, SessionCommand, parse_command
from pipeline.llm.client import LlmRequest
from pipeline.memory.ports import MemoryWrites
from pipeline.tools.confine import person_folder
from tests.end_to_end.test_memory_command import NOW, fact
from tests.support.companion import CompanionModel
from tests.support.link_talk import OWNER, LinkTalk, open_link_talk
from tests.support.tool_echo import ToolEcho, wish

MESSAGES, MESSAGES_IN_SOAK = 500, 1_000
"""A thousand take half a minute of processor time."""
AT_ONCE = 40
"""Messages that are sent before their answers are waited for."""
RULE = AccessRule.of(mode="open", open_messages_per_day=9_999)
PEOPLE = ("ann", "ben")
AGENTS = (
    'memory.agents="all"',
    'agents.friend.graph="companion"',
    'routes.1.agent="friend"',
    'routes.1.also=["default"]',
    'agents.friend.description="Listens, and remembers"',
    "turn.max_queue_per_thread=100",
)
_LISTS = ("/history pvt", "/memory")
_SECRET = re.compile(r"pvt-(ann|ben)-\d+")
_ROOM_WORDS = re.compile(r"room-\d+")
_VIEWER = re.compile(r"as:(ann|ben|room)")
OWNERS = {"ben": "memory:main:user:ben", "room": "memory:main:room:lounge"}


class Model(CompanionModel, ToolEcho):
    """Calls the tools that a message names, and has an empty result for each form."""


class World:
    """What the people do, and the tokens that they have said."""

    def __init__(self, talk: LinkTalk, seed: int, person: str) -> None:
        self._talk = talk
        self._random = random.Random(seed)
        self._numbers = itertools.count()
        self._owners = {**OWNERS, "ann": person}
        self._facts = itertools.count()

    def token(self, whose: str) -> str:
        """New words, private to a person or said in the room."""
        kind = "room" if whose == "room" else f"pvt-{whose}"
        return f"{kind}-{next(self._numbers)}"

    async def step(self) -> None:
        """One person does one thing."""
        person, choose = self._random.choice(PEOPLE), self._random.random()
        if choose < 0.45:
            await self._private(person, self._said(person))
        elif choose < 0.75:
            await self._in_room(person, f"{self._topic(self.token('room'))} as:room")
        elif choose < 0.85:
            await self._in_room(person, self.token("room"), addressed=False)
        elif choose < 0.93:
            await self._command(person)
        else:
            await self._remember(self._random.choice((*PEOPLE, "room")))

    def _said(self, person: str) -> str:
        words, mark = self.token(person), f"as:{person}"
        kind = self._random.random()
        if kind < 0.15:
            return f"{mark} {wish('notes', 'write_note', title=words, text=self.token(person))}"
        if kind < 0.25:
            return f"{mark} {wish('notes', 'search_notes', text='pvt')}"
        if kind < 0.3:
            return f"{mark} {wish('schedule', 'remind_me', text=words, in_minutes=9_000)}"
        return f"{self._topic(words)} {mark}"

    def _topic(self, words: str) -> str:
        """Something that a companion remembers, or that makes it recall such things."""
        loved = self._random.choice(("hiking", "painting", "my garden", "swimming"))
        if self._random.random() < 0.5:
            return f"I love {loved} so much, {words}."
        return f"I can't decide what to do today, {words}. Would {loved} help?"

    async def _command(self, person: str) -> None:
        line = self._random.choice(
            (
                "/new",
                "/otr",
                "/undo",
                "/retry yes",
                "/agent friend",
                "/agent default",
                "/history pvt",
                "/memory",
            )
        )
        if self._random.random() < 0.3 and line not in ("/history pvt", "/otr"):
            await self._in_room(person, line)
        else:
            await self._private(person, line)

    async def _private(self, person: str, text: str) -> None:
        if person == "ann" and self._random.random() < 0.3:
            await self._talk.harness.channel.say(text, native_id=f"t{next(self._numbers)}")
        else:
            await self._bring(person, text, f"dm-{person}", private=True)

    async def _in_room(self, person: str, text: str, *, addressed: bool = True) -> None:
        quoted = self.token("room") if self._random.random() < 0.2 else ""
        await self._bring(person, text, "lounge", private=False, addressed=addressed, quoted=quoted)

    async def _bring(
        self, person: str, text: str, chat: str, *, private: bool, addressed: bool = True, quoted: str = ""
    ) -> None:
        number = next(self._numbers)
        common: dict[str, Any] = {
            "message_id": f"m_r{number}",
            "native_id": f"r{number}",
            "thread": ThreadKey(channel="memory", account="main", chat=chat),
            "author": Author(id=person, name=person.title()),
            "received_at": 1_700_000_000.0,
            "private": private,
        }
        command = parse_command(text)
        if command is not None:
            await self._talk.posts.bring(
                SessionCommand(name=command.name, argument=command.argument, **common)
            )
        else:
            await self._talk.posts.bring(
                InboundMessage(text=text, addressed=addressed, quoted=quoted, **common)
            )

    async def _remember(self, whose: str) -> None:
        """As the memory keeps a fact of a person or a room."""
        quote, number = self.token(whose), next(self._facts)
        writes = MemoryWrites(
            key=f"k{number}", session_id="ses", at=NOW, facts=(fact(f"f{number}", quote, quote),)
        )
        await self._talk.harness.store.memories.write(self._owners[whose], writes)


def shown(request: LlmRequest) -> str:
    """All words that the model gets."""
    return "\n".join(f"{one.content} {one.tool_calls}" for one in request.messages)


def viewer(request: LlmRequest) -> str:
    """For whom the request is: ann, ben or room; empty if it does not tell, as for a summary."""
    asked = [
        found for one in request.messages if one.role == "user" for found in _VIEWER.findall(one.content)
    ]
    return asked[-1] if asked else ""


def _without_notes(prompt: str) -> str:
    """A system prompt without the lines of MEMORY.md."""
    return re.sub(r"\S*-99999", "", prompt)


async def _quiet(talk: LinkTalk, holds: Callable[[], bool]) -> None:
    """Wait until all is answered."""
    store = talk.harness.store
    while await store.open_threads() or await store.outbox_open():
        await talk.posts.until(holds)


def _write_facts(data: Path, owners: dict[str, str]) -> Iterator[str]:
    for whose, owner in owners.items():
        folder = person_folder(data / "workspace", owner)
        folder.mkdir(parents=True)
        token = "room-99999" if whose == "room" else f"pvt-{whose}-99999"
        (folder / "MEMORY.md").write_text(f"- {token}\n")
        yield token


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1])
async def test_what_is_private_of_one_is_never_shown_for_another(
    tmp_path: Path, seed: int, soak: bool
) -> None:
    messages = MESSAGES_IN_SOAK if soak else MESSAGES
    llm = Model()
    async with open_link_talk(tmp_path, *AGENTS, llm=llm, rule=RULE) as talk:
        await talk.link(OWNER, "ann")
        (person,) = set((await talk.harness.store.identities.linked()).values())
        written = list(_write_facts(tmp_path, {**OWNERS, "ann": person}))
        world = World(talk, seed, person)
        for number in range(messages):
            await world.step()
            if number % AT_ONCE == 0:
                await _quiet(talk, lambda: True)
        await _quiet(talk, lambda: True)
    counts: Counter[str] = Counter()
    for request in (*llm.requests, *llm.asked):
        text, whose = shown(request), viewer(request)
        secrets = set(_SECRET.findall(text))
        counts[whose] += 1
        assert len(secrets) <= 1, (whose, text)
        assert whose != "room" or not secrets, text
        assert whose not in PEOPLE or secrets <= {whose}, (whose, text)
        assert whose == "room" or not _ROOM_WORDS.search(text), "a room's words are shown in the room alone"
    # It is no empty promise: everyone was answered, and shown their own.
    assert min(counts["ann"], counts["ben"], counts["room"]) > messages // 10, counts
    recalled = [one for one in llm.requests if _SECRET.search(_without_notes(one.messages[0].content))]
    assert recalled, "what the memory keeps is in a prompt"
    for token in written:
        assert any(token in shown(request) for request in llm.requests)
