"""Post the questions of a running turn on a posting channel, each once, and edit them when they are resolved.

The ids of a question's messages are stored with the sent parts of the turn's reply and deleted with them, so
a turn that restarts keeps its open question. The inbox decides what an answer means.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count

from adapters.channel import Failure, Outgoing, Part, PostingChannel, Receipt
from adapters.formatting.question_text import FILE_NAME, shortened
from adapters.formatting.visible import visible
from gateway.delivery.chat_queue import ChatQueue
from gateway.delivery.duplicate_posts import remove_duplicate
from gateway.delivery.platform_calls import MOST_ATTEMPTS, SETTLE_S, PlatformCalls
from gateway.interactions.question_parts import MOST_PARTS, part_number
from gateway.storage.leases import AccountLeases
from gateway.storage.ports import SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import EXPIRED, ApprovalRequired
from pipeline.domain.ids import ThreadKey
from pipeline.domain.messages import button_handle

_log = logging.getLogger(__name__)

_IN_FILE = f" (all of it is in {FILE_NAME})"
_NOT_ANSWERED = "No longer open."
_TOO_LATE = "No one answered in time; nothing was done."


class QuestionMessages:
    """The questions of one turn. `queue` returns the chat's queue, `message_id` is what the turn answers."""

    def __init__(
        self,
        adapter: PostingChannel,
        thread: ThreadKey,
        message_id: str,
        *,
        reply_handle: str,
        queue: Callable[[], ChatQueue],
        store: Store,
        leases: AccountLeases,
        clock: Clock,
    ) -> None:
        self._adapter = adapter
        self._thread = thread
        self._message_id = message_id
        self._reply_handle = reply_handle
        self._queue = queue
        self._store = store
        self._leases = leases
        self._clock = clock
        self._open: dict[str, ApprovalRequired] = {}
        self._shown: dict[int, SentPart] = {}
        """The visible parts, by number. Their stored copy goes with the reply, which may be sent first."""
        self._read = False

    def ask(self, question: ApprovalRequired) -> None:
        """Post the question; returns at once."""
        self._open[question.interaction_id] = question
        self._queue().submit(partial(self._ask, question))

    def resolve(self, interaction_id: str, choice: str) -> None:
        """Edit the question's message: it was answered, or it expired. Returns at once."""
        outcome = _TOO_LATE if choice == EXPIRED else f"Answered: {visible(choice)}"
        self._end(interaction_id, outcome)

    def end(self) -> None:
        """The turn is over: close its open questions; returns at once."""
        for interaction_id in tuple(self._open):
            self._end(interaction_id, _NOT_ANSWERED)

    def _end(self, interaction_id: str, outcome: str) -> None:
        question = self._open.pop(interaction_id, None)
        # A question answered before this process asked it already lost its buttons when one was pressed.
        if question is not None:
            self._queue().submit(partial(self._close, question, outcome))

    async def _ask(self, question: ApprovalRequired) -> None:
        # Also for a question that is resolved by now: an earlier process may have posted it.
        await self._read_shown()
        if question.interaction_id not in self._open:
            return
        for index, part in enumerate(self._asked(question)):
            number = part_number(question.interaction_id, index)
            key = f"{button_handle(question.interaction_id)}:{index}"
            if not await self._on_screen(question.interaction_id, part, number, key):
                # A question that is not completely visible must not be answered: it expires, which means no.
                return

    async def _on_screen(self, interaction_id: str, part: Part, number: int, key: str) -> bool:
        """Post a part of a question if it is not visible; retries while the question is open. Returns
        whether the part is visible."""
        known = self._shown.get(number)
        if known is not None and known.native_id:
            if await self._still_exists(known.native_id, part):
                return True
            known = None
        for attempt in count(1):
            if interaction_id not in self._open:
                break
            found = await self._found(part, key, known)
            posted = found or await self._post(part, number, key)
            if not isinstance(posted, Failure):
                await self._note(number, posted.native_id)
                if known is not None and found is None:
                    await self._keep_one(number, part, posted.native_id)
                return True
            _log.error("a question could not be asked", extra={"reason": posted.message})
            if posted.maybe_delivered:
                known = known or self._shown.get(number)
            if not await self._calls.wait_to_repeat(posted, attempt):
                break
        return False

    async def _still_exists(self, native_id: str, part: Part) -> bool:
        """Whether the message that an earlier attempt posted is still there, and shows the part."""
        if part.file is not None or not self._adapter.capabilities.edit:
            return True
        edited = await self._calls.run(partial(self._adapter.edit, self._thread, native_id, part))
        return not isinstance(edited, Failure) or edited.kind != "not_found"

    async def _found(self, part: Part, key: str, doubtful: SentPart | None) -> Receipt | Failure | None:
        """Look up the message of a post without a response; None if it is unknown or cannot be looked up, the
        failure if the look-up can be repeated."""
        if doubtful is None or self._adapter.capabilities.resolution not in ("nonce", "lookup"):
            return None
        await self._clock.sleep(SETTLE_S)
        find = partial(self._adapter.find, self._thread, part, key=key, since=doubtful.at)
        found = await self._calls.run(find)
        if isinstance(found, Failure) and found.kind not in ("transient", "rate_limit"):
            # The outcome is unknown: a question posted twice is better than one that is not visible.
            _log.warning("a question in doubt is asked again", extra={"reason": found.message})
            return None
        return found

    async def _keep_one(self, number: int, part: Part, repeat: str) -> None:
        """Look for the message of a post without a response, now that `repeat` shows the part. If it is
        found, it stays and the repeat is deleted."""
        try:
            on_record = await self._store.shown(self._message_id)
        except StorageError:
            _log.exception("a question may be shown twice")
            return
        others = {one.native_id for one in (*on_record, *self._shown.values())} - {"", repeat}
        native_id = await remove_duplicate(
            self._adapter,
            self._queue(),
            self._store,
            thread=self._thread,
            part=part,
            repeat=repeat,
            labels=(),
            known={*others, self._reply_handle},
        )
        if native_id != repeat:
            await self._note(number, native_id)

    async def _post(self, part: Part, number: int, key: str) -> Receipt | Failure:
        post = partial(self._adapter.post, self._thread, part, key=key, reply_handle=self._reply_handle)

        async def noted() -> Receipt:
            await self._note(number, "")
            return await post()

        return await self._calls.run(noted)

    async def _close(self, question: ApprovalRequired, outcome: str) -> None:
        """Replace the buttons in the question's message by its outcome."""
        native_ids = self._native_ids(question.interaction_id)
        if not native_ids or not self._adapter.capabilities.edit:
            return
        asked = self._asked(question)
        parts = self._adapter.render(_outgoing(question, outcome))
        if not len(parts) == len(asked) == len(native_ids):
            # The new text would be split elsewhere: keep the parts before the one with the buttons.
            parts = (*asked[: len(native_ids) - 1], self._adapter.render(Outgoing(text=outcome))[0])
        for native_id, before, part in zip(native_ids, asked, parts, strict=False):
            if part != before and not await self._made_to_show(native_id, part):
                return

    async def _made_to_show(self, native_id: str, part: Part) -> bool:
        """Edit a message to show the part, with a few attempts; buttons that remain have no effect. Returns
        whether it worked."""
        edit = partial(self._adapter.edit, self._thread, native_id, part)
        edited = await self._calls.run(edit, attempts=MOST_ATTEMPTS)
        if isinstance(edited, Failure):
            _log.info("a question was not edited", extra={"reason": edited.message})
            return False
        return True

    @property
    def _calls(self) -> PlatformCalls:
        return self._queue().calls

    def _asked(self, question: ApprovalRequired) -> tuple[Part, ...]:
        outgoing = replace(_outgoing(question, _choices(question)), questions=(question,))
        return self._adapter.render(outgoing)[:MOST_PARTS]

    def _native_ids(self, interaction_id: str) -> list[str]:
        native_ids: list[str] = []
        for index in count():
            known = self._shown.get(part_number(interaction_id, index))
            if known is None or not known.native_id:
                return native_ids
            native_ids.append(known.native_id)
        return native_ids

    async def _read_shown(self) -> None:
        """Read which parts an earlier process posted."""
        if self._read:
            return
        try:
            on_record = await self._store.shown(self._message_id)
        except StorageError:
            _log.exception("what is shown of a question is unknown")
            return
        self._shown = {one.part: one for one in on_record} | self._shown
        self._read = True

    async def _note(self, number: int, native_id: str) -> None:
        noted = SentPart(part=number, native_id=native_id, final=bool(native_id), at=self._clock.now())
        self._shown[number] = noted
        try:
            lease = await self._leases.of(self._thread)
            await self._store.record_sent_part(lease, self._message_id, noted)
        except StorageError:
            # Only a crash now would show the question a second time.
            _log.exception("a question is not on record")


def _outgoing(question: ApprovalRequired, ending: str) -> Outgoing:
    """The question's text, with hidden characters made visible. If it is long, the message shows the start
    and end of each line, and a file before it holds the full text."""
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
    """The possible answers as text, for clients without buttons."""
    return f"({' / '.join(visible(option) for option in question.options)})"


def _fenced(text: str) -> str:
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _backtick_runs(text: str) -> list[str]:
    return [run for run in "".join(char if char == "`" else " " for char in text).split() if run]
