"""Show answers in progress on posting channels: typing, previews of the growing text, questions of the turn.

Each visible reply has one owner. Previews may be dropped, and the newest text replaces older text. The final
answer takes over the preview's message through `hand_over`; no preview follows it. `poster` sends the final.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from adapters.channel import Failure, LiveView, Outgoing, PostingChannel
from adapters.formatting.fences import closed_code
from gateway.delivery.acknowledgements import Acknowledgements
from gateway.delivery.chat_queue import PATIENCE_S, ChatQueue, ChatQueues, PreviewInterrupted
from gateway.delivery.origin import Origin, TakenPreview
from gateway.delivery.platform_calls import MOST_ATTEMPTS, classify_failure
from gateway.delivery.progress import CHANGE_S, ProgressLines, Verbosity
from gateway.delivery.question_messages import QuestionMessages
from gateway.delivery.transcript_line import transcript_line
from gateway.runtime.tasks import Supervisor
from gateway.storage.leases import AccountLeases
from gateway.storage.ports import SentPart, Store
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.clock import Clock
from pipeline.domain.errors import StorageError
from pipeline.domain.events import (
    ApprovalRequired,
    ApprovalResolved,
    LlmToken,
    MessageJoined,
    PipelineEvent,
    TranscriptPartial,
    TranscriptPending,
    TranscriptReady,
    TurnStarted,
)
from pipeline.domain.ids import AccountKey, ThreadKey

_log = logging.getLogger(__name__)

_FIRST_PREVIEW_S = 0.7
"""Delay before the first preview: an answer that is ready sooner needs none."""
_GROWTH_CHARS = 2_000
"""Each further block of this size adds one interval between two previews: longer texts change less."""
_SLOWEST_INTERVALS = 5
_MOST_FAILURES = 3
_TYPING_AFTER_S = 0.4
_TYPING_CALL_S = 5.0
_LONGEST_TYPING_S = 300.0
_LANDING_S = 1.0
"""Wait before a look-up: an interrupted post may still be on its way for this long."""
MOST_LIVE = 2_000


class LiveReplies:
    """The answers in progress of all posting channels."""

    def __init__(
        self,
        *,
        store: Store,
        leases: AccountLeases,
        queues: ChatQueues,
        clock: Clock,
        supervisor: Supervisor,
        show_work: Callable[[AccountKey], Verbosity] = lambda _account: "normal",
        taken: Acknowledgements | None = None,
    ) -> None:
        """`show_work` returns how much progress an account shows; `taken` shows which messages are taken."""
        self._taken, self._show_work = taken, show_work
        self.look: Callable[[], Awaitable[None]] | None = None
        """Queues the replies that other processes have committed; None where there is no other."""
        self._store, self._leases, self._queues = store, leases, queues
        self._clock, self._supervisor = clock, supervisor
        self._live = BoundedDict[tuple[ThreadKey, str], LiveReply](
            MOST_LIVE, on_evict=lambda _, live: live.give_up()
        )

    def sender_for(self, adapter: PostingChannel, thread: ThreadKey, origin: Origin) -> LiveReply:
        """The event sender of one turn. A turn that restarts continues with its existing preview."""
        live = self._live.get(key := (thread, origin.message_id))
        if live is None:
            # Fetched on each use: ChatQueues may forget an idle queue, and a stored one would then run in
            # parallel with the chat's new queue.
            queue = partial(self._queues.queue_for, adapter, thread, private=origin.private)
            work = ProgressLines(self._show_work(thread.account_key))
            shared = (self._store, self._leases, self._clock, self._supervisor)
            live = LiveReply(adapter, thread, origin, queue, *shared, work, self._taken, self.look)
            self._live[key] = live
        return live

    def has_preview(self, thread: ThreadKey, message_id: str) -> bool:
        """Whether a preview of the answer was opened."""
        live = self._live.get((thread, message_id))
        return live is not None and live.has_preview

    def drop(self, account: AccountKey) -> None:
        """Forget the previews of an account that another process has, which continues them."""
        for key in [key for key in self._live if key[0].account_key == account]:
            self._live.pop(key).end()

    async def hand_over(self, thread: ThreadKey, message_id: str) -> TakenPreview:
        """End the preview of the answer. Must run in the chat's queue, so that no preview call is running."""
        live = self._live.pop((thread, message_id), None)
        return TakenPreview() if live is None else await live.closed()


class LiveReply:
    """One answer in progress; an `EventSender`."""

    def __init__(
        self,
        adapter: PostingChannel,
        thread: ThreadKey,
        origin: Origin,
        queue: Callable[[], ChatQueue],
        store: Store,
        leases: AccountLeases,
        clock: Clock,
        supervisor: Supervisor,
        work: ProgressLines,
        taken: Acknowledgements | None = None,
        look: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._taken, self._look = taken, look
        self._adapter, self._thread, self._origin = adapter, thread, origin
        self._find_queue = queue
        self._store, self._leases = store, leases
        self._clock, self._supervisor = clock, supervisor
        self._questions = QuestionMessages(
            adapter,
            thread,
            origin.message_id,
            reply_handle=origin.reply_handle,
            queue=queue,
            store=store,
            leases=leases,
            clock=clock,
        )
        self._work = work
        self._work_shown = self._transcript = self._text = self._earlier = ""
        """`_earlier` is the text of a run that began again; shown until the new one is as long."""
        self._work_not_before = 0.0
        self._view: LiveView | None = None
        self._previews = True
        self._shown: Outgoing | None = None
        self._not_before, self._failures = 0.0, 0
        self._typing: asyncio.Task[None] | None = None
        self._ended = False
        self._post_cut = self._edit_cut = self._earlier_process = False
        self._joined: list[str] = []

    async def send_event(self, event: PipelineEvent) -> None:
        """Record one event and schedule a preview for it; returns at once."""
        if event.is_terminal:
            self._over()
        if self._work.note(event):
            self._schedule()
        match event:
            case TurnStarted():
                self._begin()
            case MessageJoined(reply_handle=reply_handle) if reply_handle:
                # A preview that is shown already stays where it is.
                self._origin = replace(self._origin, reply_handle=reply_handle)
                self._joined.append(event.joined)
            case TranscriptPending() | TranscriptPartial() | TranscriptReady():
                self._transcript = transcript_line(event)
                self._schedule()
            case LlmToken(text=text, offset=offset) if offset <= len(self._text):
                self._text = self._text[:offset] + text
                self._schedule()
            case ApprovalRequired(paused=False):
                self._questions.ask(event)
            case ApprovalResolved(interaction_id=interaction_id, choice=choice):
                self._questions.resolve(interaction_id, choice)
            case _:
                return

    @property
    def has_preview(self) -> bool:
        """Whether a preview was opened; its message may exist."""
        return self._view is not None

    def end(self) -> None:
        """Stop previews and typing; the visible text stays."""
        self._ended = True
        self._queue.cancel_preview(self._origin.message_id)
        if self._typing is not None:
            self._typing.cancel()
            self._typing = None

    def _over(self) -> None:
        """The turn is over."""
        self.end()
        self._questions.end()
        if self._taken is not None:
            for one in (self._origin.message_id, *self._joined):
                self._taken.ended(one)

    def give_up(self) -> None:
        """Stop previews for good, because no final answer will take them over. The message is released in the
        chat's queue, where no preview call is running."""
        self.end()
        self._previews = False
        self._queue.submit(self._let_go)

    async def _let_go(self) -> None:
        await self.closed()

    async def closed(self) -> TakenPreview:
        """End the preview and release its message."""
        self.end()
        view, self._view = self._view, None
        if view is None:
            return TakenPreview()
        if self._post_cut and not view.native_id and self._adapter.capabilities.resolution == "lookup":
            await self._clock.sleep(_LANDING_S)
        late = False

        async def close() -> None:
            nonlocal late
            limit = self._clock.timeout(PATIENCE_S)
            try:
                async with limit:
                    await view.close()
            finally:
                late = limit.expired()

        # No second attempt after a timeout, because the answer waits for this.
        ended = await self._queue.calls.run(
            close, attempts=MOST_ATTEMPTS, counted=False, may_repeat=lambda _failure: not late
        )
        if isinstance(ended, Failure):
            _log.info("a preview did not end cleanly", extra={"reason": ended.message})
        late = self._leases.shared and self._earlier_process
        return TakenPreview(native_id=view.native_id, unsettled=self._edit_cut or late)

    @property
    def _queue(self) -> ChatQueue:
        return self._find_queue()

    def _begin(self) -> None:
        self._ended = False
        if self._taken is not None:
            origin = self._origin
            self._taken.taken(
                self._thread, origin.message_id, reply_handle=origin.reply_handle, private=origin.private
            )
        self._earlier = self._longest
        # A spoken answer to a question ends without text, and the resumed turn shares its message.
        self._transcript = self._text = ""
        self._not_before = self._clock.monotonic() + _FIRST_PREVIEW_S
        if (self._typing is None or self._typing.done()) and self._adapter.capabilities.typing_s > 0:
            self._typing = self._supervisor.spawn(self._keep_typing(), name="typing")

    def _schedule(self, *, not_before: float = 0.0) -> None:
        if self._previews and not self._ended:
            due = max(self._not_before, not_before)
            self._queue.schedule_preview(self._origin.message_id, self._show, not_before=due)

    async def _show(self) -> None:
        """Show the newest text once no reply to an earlier message waits; runs in the chat's queue."""
        try:
            waits = self._view is None and await self._reply_waits()
            self._leases.check(self._thread.account_key)
        except StorageError:
            # Another process may show the answer instead.
            self._schedule(not_before=self._clock.monotonic() + _FIRST_PREVIEW_S)
            return
        if waits:
            self._schedule()
        else:
            await self._show_newest()

    async def _show_newest(self) -> None:
        text, work = self._longest, self._work_line()
        words = f"{closed_code(text)}\n\n{work}" if text and work else text or work
        outgoing = Outgoing(text=words, heard=self._transcript, unfinished=True)
        if self._ended or not self._previews or not (words or self._transcript):
            return
        if outgoing == self._shown:
            self._schedule_rest(text, self._transcript, work)
            return
        view = self._view = self._view or await self._open()
        if view is None:
            # The channel has no previews, or the store failed. The final answer does not need one.
            self._previews = False
            return
        before = view.native_id
        if not before and self._leaves_orphans and self._shown is None:
            # If a kill comes before the message id is recorded, the next process looks for the message.
            await self._note("")
        try:
            await self._queue.droppable(view.show(outgoing))
        except Exception as error:  # noqa: BLE001 - the adapter knows what its own errors mean
            if isinstance(error, PreviewInterrupted):
                self._post_cut, self._edit_cut = not before, bool(before)
            self._failed(error)
        else:
            self._failures = 0
            self._queue.reach.succeeded()
            self._shown = outgoing
            if work != self._work_shown:
                self._work_shown = work
                self._work_not_before = self._clock.monotonic() + CHANGE_S
        if view.native_id != before:
            await self._note(view.native_id)
        limits = self._adapter.capabilities.rates
        slower = min(_SLOWEST_INTERVALS, 1 + len(self._text) / _GROWTH_CHARS)
        self._not_before = self._clock.monotonic() + limits.edit_interval_s * slower
        self._schedule_rest(text, outgoing.heard, work)

    def _schedule_rest(self, text: str, transcript: str, work: str) -> None:
        """Schedule a preview for text or progress that arrived meanwhile."""
        if self._longest != text or self._transcript != transcript:
            self._schedule()
        elif self._work.markdown != work:
            self._schedule(not_before=self._work_not_before)

    @property
    def _longest(self) -> str:
        return max(self._text, self._earlier, key=len)

    def _work_line(self) -> str:
        """The progress line to show now: it changes at most every `CHANGE_S`, but disappears at once."""
        newest = self._work.markdown
        early = self._clock.monotonic() < self._work_not_before
        return self._work_shown if newest and early else newest

    @property
    def _leaves_orphans(self) -> bool:
        """Whether a preview that was posted but not recorded can be found later."""
        can = self._adapter.capabilities
        # In private chats a channel that adopts shows drafts, which vanish by themselves.
        return can.resolution == "lookup" or (can.adopts and not self._origin.private)

    async def _reply_waits(self) -> bool:
        """Whether the reply to an earlier message is to be posted first: another process committed it."""
        if self._look is not None:
            await self._look()
        return self._queue.has_work

    async def _open(self) -> LiveView | None:
        """Open the preview, on the message of an interrupted attempt if there is one."""
        try:
            known = await self._store.shown(self._origin.message_id)
        except StorageError:
            _log.exception("an answer is not previewed")
            return None
        earlier = next((one for one in known if one.part == 0 and not one.final), None)
        self._earlier_process = earlier is not None
        return self._adapter.open_view(
            self._thread,
            key=f"{self._origin.message_id}:0",
            reply_handle=self._origin.reply_handle,
            native_id=earlier.native_id if earlier else "",
            doubtful_since=earlier.at if earlier and not earlier.native_id else None,
        )

    def _failed(self, error: Exception) -> None:
        failure = self._queue.calls.failed(error)
        if failure.kind == "rate_limit":
            self._schedule()
            return
        self._failures += 1
        if self._failures >= _MOST_FAILURES or failure.kind != "transient":
            # The final answer is delivered separately, with retries.
            self._previews = False
            _log.info("previews given up for one answer", extra={"reason": failure.message})

    async def _note(self, native_id: str) -> None:
        try:
            lease = await self._leases.of(self._thread)
            part = SentPart(part=0, native_id=native_id, final=False, at=self._clock.now())
            await self._store.record_sent_part(lease, self._origin.message_id, part)
        except StorageError:
            # This process still knows the message; only a crash now would leave it as an unfinished one.
            _log.exception("a preview is not on record")

    async def _keep_typing(self) -> None:
        ttl = self._adapter.capabilities.typing_s
        # An immediate answer needs no typing indicator.
        await self._clock.sleep(_TYPING_AFTER_S)
        deadline = self._clock.monotonic() + _LONGEST_TYPING_S
        while self._clock.monotonic() < deadline:
            pause = ttl * 0.8
            try:
                async with self._clock.timeout(_TYPING_CALL_S):
                    await self._adapter.typing(self._thread)
            except Exception as error:  # noqa: BLE001 - a missing typing indicator does no harm
                failure = classify_failure(self._adapter, error)
                pause = max(pause, failure.retry_after_s or 0.0)
                _log.debug("typing was not shown", extra={"reason": failure.message})
            await self._clock.sleep(pause)
