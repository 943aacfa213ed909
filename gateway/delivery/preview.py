"""Live replies on posting channels: typing, previews of the answer as it grows, questions of a working turn.

One owner of the visible reply: a preview is droppable and the newest text wins; the final answer takes its
message over through `hand_over` and nothing is shown after that. Sending the final is `posting`'s.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from adapters.channel import LiveView, Outgoing, PostingChannel
from adapters.formatting.fences import closed_code
from gateway.delivery.chat_queue import PATIENCE_S, ChatQueue, ChatQueues, CutShort
from gateway.delivery.platform_calls import (
    BLOCKED_S,
    MOST_ATTEMPTS,
    call_with_timeout,
    classify_failure,
    may_try_again,
)
from gateway.delivery.progress import CHANGE_S, ProgressLines, Verbosity
from gateway.delivery.question_messages import QuestionMessages
from gateway.runtime.tasks import Supervisor
from gateway.storage.ports import SentPart, Store
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import (
    ApprovalRequired,
    ApprovalResolved,
    LlmToken,
    PipelineEvent,
    TranscriptPartial,
    TranscriptPending,
    TranscriptReady,
    TurnStarted,
    is_terminal,
)
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

_WAITING = "In the queue, about {seconds} seconds."
_LONGEST_WAIT_S = 3_600.0
_FIRST_PREVIEW_S = 0.7
"""An answer that is ready sooner needs no preview."""
_GROWTH_CHARS = 2_000
"""By this much text the time between two previews grows by one interval: longer texts change less."""
_SLOWEST_INTERVALS = 5
_MOST_FAILURES = 3
_TYPING_AFTER_S = 0.4
_TYPING_CALL_S = 5.0
_LONGEST_TYPING_S = 300.0
_LANDING_S = 1.0
"""How long a post that was cut short may still be under way before it is looked for."""
MOST_LIVE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The message that a turn answers, as far as showing the answer needs it."""

    message_id: str
    reply_handle: str = ""
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What an ended preview leaves to the final answer."""

    native_id: str = ""
    """The message that shows it; empty for none."""
    unsettled: bool = False
    """An edit of it was cut short: the platform may still carry it out, over what is shown then."""


class LiveReplies:
    """The answers in progress of all posting channels."""

    def __init__(
        self,
        *,
        store: Store,
        lanes: ChatQueues,
        clock: Clock,
        supervisor: Supervisor,
        show_work: Callable[[str], Verbosity] = lambda _channel: "normal",
    ) -> None:
        """`show_work` says how much of it a channel shows, by the channel's name."""
        self._store = store
        self._lanes = lanes
        self._clock = clock
        self._supervisor = supervisor
        self._show_work = show_work
        self._live: OrderedDict[tuple[ThreadKey, str], LiveReply] = OrderedDict()

    def sender_for(self, adapter: PostingChannel, thread: ThreadKey, origin: Origin) -> LiveReply:
        """Where the events of one turn go. A turn that begins again goes on with its preview."""
        key = (thread, origin.message_id)
        live = self._live.get(key)
        if live is None:
            # Asked for each time: a lane that is kept here could be forgotten meanwhile, and a second one
            # for the chat would run beside it.
            lane = partial(self._lanes.lane, adapter, thread, private=origin.private)
            work = ProgressLines(self._show_work(adapter.name))
            live = LiveReply(adapter, thread, origin, lane, self._store, self._clock, self._supervisor, work)
            self._live[key] = live
            while len(self._live) > MOST_LIVE:
                self._live.popitem(last=False)[1].give_up()
        return live

    async def hand_over(self, thread: ThreadKey, message_id: str) -> Taken:
        """End the preview of the answer; what it leaves. Called in the chat's lane, so that no preview is
        under way."""
        live = self._live.pop((thread, message_id), None)
        return Taken() if live is None else await live.closed()


class LiveReply:
    """One answer in progress; an `EventSender`."""

    def __init__(
        self,
        adapter: PostingChannel,
        thread: ThreadKey,
        origin: Origin,
        lane: Callable[[], ChatQueue],
        store: Store,
        clock: Clock,
        supervisor: Supervisor,
        work: ProgressLines,
    ) -> None:
        self._adapter = adapter
        self._thread = thread
        self._origin = origin
        self._find_lane = lane
        self._store = store
        self._clock = clock
        self._supervisor = supervisor
        self._questions = QuestionMessages(
            adapter,
            thread,
            origin.message_id,
            reply_handle=origin.reply_handle,
            lane=lane,
            store=store,
            clock=clock,
        )
        self._work = work
        self._work_shown = ""
        self._work_not_before = 0.0
        self._heard = ""
        self._text = ""
        self._view: LiveView | None = None
        self._previews = True
        self._shown: Outgoing | None = None
        self._not_before = 0.0
        self._failures = 0
        self._typing: asyncio.Task[None] | None = None
        self._ended = False
        self._post_cut = False
        self._edit_cut = False

    async def send_event(self, event: PipelineEvent) -> None:
        """Take note of one event; returns at once."""
        if is_terminal(event):
            self.end()
            self._questions.end()
        if self._work.note(event):
            self._offer()
        match event:
            case TurnStarted():
                self._begin()
            case TranscriptPending(eta_s=eta_s):
                self._heard = _WAITING.format(seconds=round(min(_LONGEST_WAIT_S, eta_s)))
                self._offer()
            case TranscriptPartial(text=text):
                self._heard = f"{text} …"
                self._offer()
            case TranscriptReady(text=text):
                self._heard = text
                self._offer()
            case LlmToken(text=text, offset=offset) if offset <= len(self._text):
                self._text = self._text[:offset] + text
                self._offer()
            case ApprovalRequired(paused=False):
                self._questions.ask(event)
            case ApprovalResolved(interaction_id=interaction_id, choice=choice):
                self._questions.resolve(interaction_id, choice)
            case _:
                return

    def end(self) -> None:
        """No more previews and no more typing; what is shown stays."""
        self._ended = True
        self._lane.withdraw(self._origin.message_id)
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None

    def give_up(self) -> None:
        """No preview ever again: nobody would take it over. What is shown is let go of in the lane, where
        none is under way."""
        self.end()
        self._previews = False
        self._lane.submit(self._let_go)

    async def _let_go(self) -> None:
        await self.closed()

    async def closed(self) -> Taken:
        """End, and let go of the message that showed the preview."""
        self.end()
        view, self._view = self._view, None
        if view is None:
            return Taken()
        if self._post_cut and not view.native_id and self._adapter.capabilities.resolution == "lookup":
            await self._clock.sleep(_LANDING_S)
        for _ in range(MOST_ATTEMPTS):
            limit = self._clock.timeout(PATIENCE_S)
            try:
                async with limit:
                    await call_with_timeout(view.close(), self._clock)
            except Exception as error:  # noqa: BLE001 - the final answer is an edit, or a message of its own
                failure = classify_failure(self._adapter, error)
                _log.info("a preview did not end cleanly", extra={"reason": failure.message})
                # One that hangs is not waited for again: the answer waits behind it.
                if limit.expired() or not await may_try_again(failure, self._lane.allowance, self._clock):
                    break
            else:
                break
        return Taken(native_id=view.native_id, unsettled=self._edit_cut)

    @property
    def _lane(self) -> ChatQueue:
        return self._find_lane()

    def _begin(self) -> None:
        self._ended = False
        # A spoken answer to a question ends without a word, and the turn that goes on shares its message.
        self._heard = self._text = ""
        self._not_before = self._clock.monotonic() + _FIRST_PREVIEW_S
        if (self._typing is None or self._typing.done()) and self._adapter.capabilities.typing_s > 0:
            self._typing = self._supervisor.spawn(self._keep_typing(), name="typing")

    def _offer(self, *, not_before: float = 0.0) -> None:
        if self._previews and not self._ended:
            due = max(self._not_before, not_before)
            self._lane.offer(self._origin.message_id, self._show, not_before=due)

    async def _show(self) -> None:
        """Make the preview show the newest text; in the lane."""
        text, work = self._text, self._work_line()
        words = f"{closed_code(text)}\n\n{work}" if text and work else text or work
        outgoing = Outgoing(text=words, heard=self._heard, unfinished=True)
        if self._ended or not self._previews or not (words or self._heard):
            return
        if outgoing == self._shown:
            self._offer_rest(text, self._heard, work)
            return
        view = self._view = self._view or await self._open()
        if view is None:
            # None here, or the store cannot tell of an earlier one. The final answer does not need it.
            self._previews = False
            return
        before = view.native_id
        if not before and self._leaves_orphans and self._shown is None:
            # Killed before it is on record, it would stay beside the answer: the next process looks for it.
            await self._note("")
        try:
            await self._lane.droppable(view.show(outgoing))
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            if isinstance(error, CutShort):
                self._post_cut, self._edit_cut = not before, bool(before)
            self._failed(error)
        else:
            self._failures = 0
            self._lane.reach.succeeded()
            self._shown = outgoing
            if work != self._work_shown:
                self._work_shown = work
                self._work_not_before = self._clock.monotonic() + CHANGE_S
        if view.native_id != before:
            await self._note(view.native_id)
        limits = self._adapter.capabilities.rates
        slower = min(_SLOWEST_INTERVALS, 1 + len(self._text) / _GROWTH_CHARS)
        self._not_before = self._clock.monotonic() + limits.edit_interval_s * slower
        self._offer_rest(text, outgoing.heard, work)

    def _offer_rest(self, text: str, heard: str, work: str) -> None:
        """Show what has come up meanwhile, if anything."""
        if self._text != text or self._heard != heard:
            self._offer()
        elif self._work.markdown != work:
            self._offer(not_before=self._work_not_before)

    def _work_line(self) -> str:
        """What is shown of the work now: it changes seldom, but for going away."""
        newest = self._work.markdown
        early = self._clock.monotonic() < self._work_not_before
        return self._work_shown if newest and early else newest

    @property
    def _leaves_orphans(self) -> bool:
        """Whether a preview that is posted and not on record can be found again later."""
        can = self._adapter.capabilities
        # In private chats a channel that adopts shows drafts, which vanish by themselves.
        return can.resolution == "lookup" or (can.adopts and not self._origin.private)

    async def _open(self) -> LiveView | None:
        """The preview, on the message that an interrupted attempt left where there is one."""
        try:
            known = await self._store.shown(self._origin.message_id)
        except StorageError:
            _log.exception("an answer is not previewed")
            return None
        earlier = next((one for one in known if one.part == 0 and not one.final), None)
        return self._adapter.open_view(
            self._thread,
            key=f"{self._origin.message_id}:0",
            reply_handle=self._origin.reply_handle,
            native_id=earlier.native_id if earlier else "",
            doubtful_since=earlier.at if earlier and not earlier.native_id else None,
        )

    def _failed(self, error: Exception) -> None:
        failure = classify_failure(self._adapter, error)
        if failure.kind == "rate_limit":
            self._lane.allowance.back_off(failure, default_s=BLOCKED_S)
            self._offer()
            return
        self._failures += 1
        if self._failures >= _MOST_FAILURES or failure.kind != "transient":
            # The final answer goes its own way, with retries.
            self._previews = False
            _log.info("previews given up for one answer", extra={"reason": failure.message})

    async def _note(self, native_id: str) -> None:
        try:
            await self._store.record_sent_part(
                self._origin.message_id,
                SentPart(part=0, native_id=native_id, final=False, at=self._clock.now()),
            )
        except StorageError:
            # Known here all the same; only a crash now would leave it behind as an unfinished message.
            _log.exception("a preview is not on record")

    async def _keep_typing(self) -> None:
        ttl = self._adapter.capabilities.typing_s
        # An answer that is there at once needs no sign that it is being written.
        await self._clock.sleep(_TYPING_AFTER_S)
        deadline = self._clock.monotonic() + _LONGEST_TYPING_S
        while self._clock.monotonic() < deadline:
            pause = ttl * 0.8
            try:
                async with self._clock.timeout(_TYPING_CALL_S):
                    await self._adapter.typing(self._thread)
            except Exception as error:  # noqa: BLE001 - nobody misses a typing sign
                failure = classify_failure(self._adapter, error)
                pause = max(pause, failure.retry_after_s or 0.0)
                _log.debug("typing was not shown", extra={"reason": failure.message})
            await self._clock.sleep(pause)
