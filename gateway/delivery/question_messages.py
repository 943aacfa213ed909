"""The questions of a turn at work on a posting channel: each posted once, and edited when it is settled.

Which messages show a question is kept with what is shown of the turn's reply, and goes with it: a turn that
is taken up again keeps the question that stands. What an answer is worth is the inbox's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

from adapters.channel import Failure, Outgoing, Part, PostingChannel
from adapters.formatting.question_text import FILE_NAME, shortened
from adapters.formatting.visible import visible
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.duplicate_posts import remove_duplicate
from gateway.delivery.platform_calls import (
    AGAIN_S,
    BLOCKED_S,
    MOST_ATTEMPTS,
    call_with_timeout,
    classify_failure,
    may_try_again,
)
from gateway.storage.ports import SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import EXPIRED, ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import button_handle

_log = logging.getLogger(__name__)

_LONGEST_AGAIN_S = 10.0
_SETTLE_S = 2.0
"""How long a post that nobody heard of again may still be under way before it is looked for."""
_MOST_PARTS = 256
_IN_FILE = f" (all of it is in {FILE_NAME})"
_NOT_ANSWERED = "No longer open."
_TOO_LATE = "Nobody answered in time; nothing was done."


class QuestionMessages:
    """The questions of one turn. `lane` finds the chat's lane, `message_id` is what the turn answers."""

    def __init__(
        self,
        adapter: PostingChannel,
        thread: ThreadKey,
        message_id: str,
        *,
        reply_handle: str,
        lane: Callable[[], ChatQueue],
        store: Store,
        clock: Clock,
    ) -> None:
        self._adapter = adapter
        self._thread = thread
        self._message_id = message_id
        self._reply_handle = reply_handle
        self._lane = lane
        self._store = store
        self._clock = clock
        self._open: dict[str, ApprovalRequired] = {}
        self._shown: dict[int, SentPart] = {}
        """What is on the screen, by place. On record it goes with the reply, which may be sent first."""
        self._read = False

    def ask(self, question: ApprovalRequired) -> None:
        """Have the question on the screen; returns at once."""
        self._open[question.interaction_id] = question
        self._lane().submit(partial(self._ask, question))

    def resolve(self, interaction_id: str, choice: str) -> None:
        """The question was answered, or its time is over: its message says so; returns at once."""
        outcome = _TOO_LATE if choice == EXPIRED else f"Answered: {visible(choice)}"
        self._end(interaction_id, outcome)

    def end(self) -> None:
        """The turn is over: nobody can answer any more what it asked; returns at once."""
        for interaction_id in tuple(self._open):
            self._end(interaction_id, _NOT_ANSWERED)

    def _end(self, interaction_id: str, outcome: str) -> None:
        question = self._open.pop(interaction_id, None)
        # One that was answered before this process asked it lost its buttons to the press.
        if question is not None:
            self._lane().submit(partial(self._close, question, outcome))

    async def _ask(self, question: ApprovalRequired) -> None:
        # Also for one that is settled by now: an earlier process may have asked it.
        await self._read_shown()
        if question.interaction_id not in self._open:
            return
        for index, part in enumerate(self._asked(question)):
            place = _place(question.interaction_id, index)
            key = f"{button_handle(question.interaction_id)}:{index}"
            if not await self._on_screen(question.interaction_id, part, place, key):
                # Nobody may answer what nobody saw whole: it times out, and that means no.
                return

    async def _on_screen(self, interaction_id: str, part: Part, place: int, key: str) -> bool:
        """Whether a part of a question is on the screen, tried for as long as somebody could answer it."""
        known = self._shown.get(place)
        if known is not None and known.native_id:
            if await self._stands(known.native_id, part):
                return True
            known = None
        again_s = AGAIN_S
        while interaction_id in self._open:
            await self._lane().allowance.acquire()
            try:
                found = await self._found(part, key, known)
                native_id = found or await self._post(part, place, key)
            except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
                failure = classify_failure(self._adapter, error)
                _log.error("a question could not be asked", extra={"reason": failure.message})
                if failure.maybe_delivered:
                    known = known or self._shown.get(place)
                if not await may_try_again(failure, self._lane().allowance, self._clock, again_s=again_s):
                    return False
                again_s = min(_LONGEST_AGAIN_S, 2 * again_s)
            else:
                await self._note(place, native_id)
                if known is not None and not found:
                    await self._keep_one(place, part, native_id)
                return True
        return False

    async def _stands(self, native_id: str, part: Part) -> bool:
        """Whether the message that an earlier attempt posted is still there, and shows the part."""
        if part.file is not None or not self._adapter.capabilities.edit:
            return True
        failure = await self._edited(native_id, part)
        return failure is None or failure.kind != "not_found"

    async def _found(self, part: Part, key: str, doubtful: SentPart | None) -> str:
        """The message of a post that nobody heard of again, where the channel can tell; empty for none."""
        if doubtful is None or self._adapter.capabilities.resolution not in ("nonce", "lookup"):
            return ""
        await self._clock.sleep(_SETTLE_S)
        find = self._adapter.find(self._thread, part, key=key, since=doubtful.at)
        try:
            found = await call_with_timeout(find, self._clock)
        except Exception as error:
            failure = classify_failure(self._adapter, error)
            if failure.kind in ("transient", "rate_limit"):
                raise
            # Nobody can tell: a question asked twice is better than one that nobody sees.
            _log.warning("a question in doubt is asked again", extra={"reason": failure.message})
            return ""
        return "" if found is None else found.native_id

    async def _keep_one(self, place: int, part: Part, repeat: str) -> None:
        """Look for the message of a post that nobody heard of again, now that `repeat` shows the part: where
        it is found, it is the question, and the repeat goes."""
        try:
            on_record = await self._store.shown(self._message_id)
        except StorageError:
            _log.exception("a question may be shown twice")
            return
        others = {one.native_id for one in (*on_record, *self._shown.values())} - {"", repeat}
        native_id = await remove_duplicate(
            self._adapter,
            self._lane(),
            self._store,
            self._clock,
            thread=self._thread,
            part=part,
            repeat=repeat,
            labels=(),
            known={*others, self._reply_handle},
        )
        if native_id != repeat:
            await self._note(place, native_id)

    async def _post(self, part: Part, place: int, key: str) -> str:
        await self._note(place, "")
        post = self._adapter.post(self._thread, part, key=key, reply_handle=self._reply_handle)
        return (await call_with_timeout(post, self._clock)).native_id

    async def _close(self, question: ApprovalRequired, outcome: str) -> None:
        """Say in the message with the buttons what became of it."""
        standing = self._standing(question.interaction_id)
        if not standing or not self._adapter.capabilities.edit:
            return
        asked = self._asked(question)
        parts = self._adapter.render(_outgoing(question, outcome))
        if not len(parts) == len(asked) == len(standing):
            # It would be cut elsewhere: what stands above the buttons stays.
            parts = (*asked[: len(standing) - 1], self._adapter.render(Outgoing(text=outcome))[0])
        for native_id, before, part in zip(standing, asked, parts, strict=False):
            if part != before and not await self._made_to_show(native_id, part):
                return

    async def _made_to_show(self, native_id: str, part: Part) -> bool:
        """Whether a message shows the part, tried a few times: buttons that stay do nothing."""
        for _ in range(MOST_ATTEMPTS):
            failure = await self._edited(native_id, part)
            if failure is None:
                return True
            _log.info("a question was not edited", extra={"reason": failure.message})
            if not await may_try_again(failure, self._lane().allowance, self._clock):
                break
        return False

    async def _edited(self, native_id: str, part: Part) -> Failure | None:
        """Make a message show the part; why it does not, if so."""
        await self._lane().allowance.acquire()
        try:
            await call_with_timeout(self._adapter.edit(self._thread, native_id, part), self._clock)
        except Exception as error:  # noqa: BLE001 - as above
            failure = classify_failure(self._adapter, error)
            if failure.kind == "rate_limit":
                self._lane().allowance.back_off(failure, default_s=BLOCKED_S)
            return failure
        return None

    def _asked(self, question: ApprovalRequired) -> tuple[Part, ...]:
        outgoing = replace(_outgoing(question, _choices(question)), questions=(question,))
        return self._adapter.render(outgoing)[:_MOST_PARTS]

    def _standing(self, interaction_id: str) -> list[str]:
        standing: list[str] = []
        for index in count():
            known = self._shown.get(_place(interaction_id, index))
            if known is None or not known.native_id:
                return standing
            standing.append(known.native_id)
        return standing

    async def _read_shown(self) -> None:
        """Learn what an earlier process has shown."""
        if self._read:
            return
        try:
            on_record = await self._store.shown(self._message_id)
        except StorageError:
            _log.exception("what stands of a question is not known")
            return
        self._shown = {one.part: one for one in on_record} | self._shown
        self._read = True

    async def _note(self, place: int, native_id: str) -> None:
        noted = SentPart(part=place, native_id=native_id, final=bool(native_id), at=self._clock.now())
        self._shown[place] = noted
        try:
            await self._store.record_sent_part(self._message_id, noted)
        except StorageError:
            # Only a crash now would show the question a second time.
            _log.exception("a question is not on record")


def _place(interaction_id: str, index: int) -> int:
    """Where a part of a question is kept among the parts of the reply: far behind all of those."""
    return (int(button_handle(interaction_id)[:12], 16) + 1) * _MOST_PARTS + index


def _outgoing(question: ApprovalRequired, ending: str) -> Outgoing:
    """What is asked, with nothing hidden in it. Of long words the message shows the beginning and the end of
    each line, and a file before it holds all of them."""
    words = visible(question.reasoning)
    short = shortened(words)
    whole = words != short
    about = f"{visible(question.tool_name)} asks{_IN_FILE if whole else ''}:"
    return Outgoing(
        text=f"{about}\n\n{_fenced(short)}\n\n{ending}",
        attached=words.encode("utf-8", "replace") if whole else b"",
        attached_name=FILE_NAME if whole else "",
    )


def _choices(question: ApprovalRequired) -> str:
    """The answers, for whoever has no buttons."""
    return f"({' / '.join(visible(option) for option in question.options)})"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _backtick_runs(text: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in text).split() if run]
