"""Run the command /memory: show what is remembered of its author, or of the room, and forget it.

In a private chat it is about the person, on every channel that they have linked; in a room about the room
alone, and nothing of a person is shown there. Not here: what is written and recalled (`pipeline.memory`).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from gateway.storage.codec import menu_of
from gateway.storage.ports import Interaction
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import Clock
from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, room_owner
from pipeline.domain.messages import SessionCommand
from pipeline.memory.ports import MemoryBook, ProfileChanged
from pipeline.memory.values import Fact, Profile, SessionArc
from pipeline.tools.shown import quoted

_PAGE = 10
_TRIES = 3
_OFF_THE_RECORD = (
    "This conversation is off the record: nothing of it is remembered, and I use nothing of what I remember. "
    "`/otr` ends it."
)
_NO_MEMORY = "This bot remembers nothing between conversations."
_NOTHING = "I remember nothing of {whom}."
_LISTED = "This is what I remember of {whom} ({counts}):\n\n{lines}"
_RULE = "How I should answer: {text}"
_FACT = "{what}, because you said: “{quote}”"
_ARC = "On {day}: {summary}"
_MORE = "Page {page} of {pages}; `/memory page {next}` shows more."
_HOW = "`/memory forget NUMBER` forgets one, `/memory forget all` everything."
_IS_OFF = "Memory is off: I remember nothing new, and use nothing of this. `/memory on` turns it on."
_IS_ON = "`/memory off` stops me from remembering."
_RECALL_ON = "I bring up by myself what was said earlier. `/memory recall off` stops that."
_RECALL_OFF = "I bring up nothing by myself. `/memory recall on` changes that."
_ASK_ONE = "Forget this?\n\n{line}\n\nIt cannot be undone. Press the button, or send `/memory forget {code}`."
_ASK_ALL = (
    "Forget everything that I remember of {whom} ({counts})? It cannot be undone. Press the button, or send "
    "`/memory forget everything`."
)
_FORGOTTEN = "Forgotten: {line}"
_ALL_FORGOTTEN = (
    "Everything that I remembered of {whom} is forgotten. Conversations stay; `/new` ends this one."
)
_NO_SUCH = "There is no number {word}. `/memory` shows what there is."
_TURNED_OFF = (
    "Memory is off: from now on I remember nothing new of {whom}, and use nothing of what I remember. "
    "What there is stays until you forget it."
)
_TURNED_ON = "Memory is on: I remember what matters of {whom}, and use it."
_RECALL_TURNED_ON = "I may bring up by myself what was said earlier."
_RECALL_TURNED_OFF = "I bring up nothing by myself any more."
_UNKNOWN = (
    "`/memory` takes `page NUMBER`, `forget NUMBER`, `forget all`, `off`, `on`, `recall on` or `recall off`, "
    "not `{word}`."
)
_BUSY = "The memory is being changed. Please send that again."
_PROMPT = "Memory"
_ALL = "all"
_EVERYTHING = "everything"
_LONG = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One thing that is remembered."""

    id: str
    line: str

    @property
    def code(self) -> str:
        """Names the item, also where the list has changed."""
        return base64.b32encode(hashlib.sha256(self.id.encode()).digest()).decode()[:6]

    def shown(self, number: int) -> str:
        """The line with its number."""
        return f"{number}. {self.line}"


class MemoryCommand:
    """Runs the command in all threads. `person_of` says who the user of an account is, and `is_on` whether
    this gateway remembers anything at all."""

    def __init__(
        self,
        book: MemoryBook,
        person_of: Callable[[ThreadKey, str], str],
        clock: Clock,
        *,
        is_on: bool = True,
    ) -> None:
        self._book = book
        self._person_of = person_of
        self._clock = clock
        self._is_on = is_on

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show the memory, forget of it, or change how it is used. Raises StorageError."""
        if journal.mode == "otr":
            await journal.commit_notice(_OFF_THE_RECORD)
            return
        if not self._is_on:
            await journal.commit_notice(_NO_MEMORY)
            return
        answer = await self._answer(self._whose(command), command.argument)
        menu = self._menu(command, journal, answer.options)
        # It quotes, so it must not outlive what it quotes.
        await journal.commit_notice(answer.words, menu=menu, forgotten=answer.quotes)

    async def _answer(self, whose: _Owner, argument: str) -> _Answer:
        match argument.casefold().split():
            case []:
                return await self._list(whose, 1)
            case ["page", number] if number.isascii() and number.isdecimal():
                return await self._list(whose, int(number))
            case ["forget", word]:
                return await self._forget(whose, word)
            case ["off" | "on" as word]:
                return await self._turn(whose, on=word == "on")
            case ["recall", "on" | "off" as word]:
                return await self._recall(whose, on=word == "on")
        return _Answer(_UNKNOWN.format(word=_plain(argument)))

    # -- the parts of the command ---------------------------------------------------------------
    async def _list(self, whose: _Owner, page: int) -> _Answer:
        items, profile = await self._items(whose)
        use = _RECALL_ON if profile.proactive_recall_enabled else _RECALL_OFF
        state = f"{_IS_ON} {use}" if profile.enabled else _IS_OFF
        if not items:
            return _Answer(f"{_NOTHING.format(whom=whose.whom)}\n\n{state}", options=_switch(profile))
        pages = -(-len(items) // _PAGE)
        page = min(max(page, 1), pages)
        first = (page - 1) * _PAGE
        lines = [one.shown(number) for number, one in enumerate(items[first : first + _PAGE], first + 1)]
        words = _LISTED.format(whom=whose.whom, counts=_counted(items), lines="\n".join(lines))
        more = _MORE.format(page=page, pages=pages, next=page + 1) if page < pages else ""
        ending = "\n\n".join(part for part in (more, f"{_HOW} {state}") if part)
        options = (f"Page {page + 1}",) if page < pages else ()
        return _Answer(
            f"{words}\n\n{ending}", options=(*options, "Forget all", *_switch(profile)), quotes=True
        )

    async def _forget(self, whose: _Owner, word: str) -> _Answer:
        items, _ = await self._items(whose)
        if word in (_ALL, _EVERYTHING) and not items:
            return _Answer(_NOTHING.format(whom=whose.whom))
        if word == _ALL:
            words = _ASK_ALL.format(whom=whose.whom, counts=_counted(items))
            return _Answer(words, options=("Forget everything",))
        if word == _EVERYTHING:
            return await self._forget_everything(whose)
        if word.isascii() and word.isdecimal() and 1 <= int(word) <= len(items):
            one = items[int(word) - 1]
            words = _ASK_ONE.format(line=one.line, code=one.code)
            return _Answer(words, options=(f"Forget {one.code}",), quotes=True)
        named = [one for one in items if one.code == word.upper()]
        if len(named) != 1:
            return _Answer(_NO_SUCH.format(word=_plain(word)))
        await self._book.forget(whose.key, [named[0].id])
        return _Answer(_FORGOTTEN.format(line=named[0].line), quotes=True)

    async def _forget_everything(self, whose: _Owner) -> _Answer:
        """Forget all; whether memory is on, and recall, stay as the person has set them."""
        before = await self._book.profile(whose.key)
        await self._book.erase(whose.key)
        chosen = Profile(enabled=before.enabled, proactive_recall_enabled=before.proactive_recall_enabled)
        if chosen != Profile():
            await self._book.write_profile(whose.key, chosen)
        return _Answer(_ALL_FORGOTTEN.format(whom=whose.whom))

    async def _turn(self, whose: _Owner, *, on: bool) -> _Answer:
        done = await self._change(whose, lambda known: replace(known, enabled=on))
        words = (_TURNED_ON if on else _TURNED_OFF).format(whom=whose.whom)
        return _Answer(words if done else _BUSY)

    async def _recall(self, whose: _Owner, *, on: bool) -> _Answer:
        done = await self._change(whose, lambda known: replace(known, proactive_recall_enabled=on))
        words = _RECALL_TURNED_ON if on else _RECALL_TURNED_OFF
        return _Answer(words if done else _BUSY)

    async def _change(self, whose: _Owner, change: Callable[[Profile], Profile]) -> bool:
        """Change the profile; whether it is done."""
        for _ in range(_TRIES):
            known = await self._book.profile(whose.key)
            try:
                await self._book.write_profile(whose.key, change(known))
            except ProfileChanged:
                continue
            return True
        return False

    async def _items(self, whose: _Owner) -> tuple[list[_Item], Profile]:
        """Everything that is remembered: rules, then facts, then episodes."""
        profile = await self._book.profile(whose.key)
        facts = [one for one in await self._book.facts(whose.key) if one.user_visible]
        arcs = await self._book.arcs(whose.key)
        rules = [_Item(id=one.id, line=_RULE.format(text=_plain(one.text, _LONG))) for one in profile.rules]
        known = [_Item(id=one.id, line=_fact_line(one)) for one in facts]
        episodes = [_Item(id=one.session_id, line=_arc_line(one)) for one in arcs]
        return [*rules, *known, *episodes], profile

    # -- whose memory ---------------------------------------------------------------------------
    def _whose(self, command: SessionCommand) -> _Owner:
        thread = command.thread
        if command.private:
            return _Owner(key=self._person_of(thread, command.author.id), whom="you")
        return _Owner(key=room_owner(thread), whom="this room")

    def _menu(
        self, command: SessionCommand, journal: StoreJournal, options: tuple[str, ...]
    ) -> Interaction | None:
        if not options:
            return None
        return menu_of(command, _PROMPT, options, journal.session_id, at=self._clock.now())


@dataclass(frozen=True, slots=True)
class _Answer:
    words: str
    options: tuple[str, ...] = ()
    """Values of the command that buttons offer."""
    quotes: bool = False
    """It shows something that is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Owner:
    key: str
    whom: str


def _switch(profile: Profile) -> tuple[str, ...]:
    return ("Off",) if profile.enabled else ("On",)


def _fact_line(fact: Fact) -> str:
    what = f"{fact.predicate.replace('_', ' ').lower()}: {fact.object.identifier}"
    subject = "" if fact.subject.type == "User" else f"{fact.subject.identifier}, "
    return _FACT.format(what=_plain(f"{subject}{what}", _LONG), quote=_plain(fact.evidence_quote, _LONG))


def _arc_line(arc: SessionArc) -> str:
    day = datetime.fromtimestamp(arc.ended_at, UTC).strftime("%Y-%m-%d")
    return _ARC.format(day=day, summary=_plain(arc.summary, _LONG))


def _counted(items: list[_Item]) -> str:
    return "1 entry" if len(items) == 1 else f"{len(items)} entries"


def _plain(text: str, most: int = 20) -> str:
    """Text of a person on one line that no formatting of the channel changes."""
    return quoted(text)[1:-1].replace('\\"', '"').replace("`", "'")[:most]
