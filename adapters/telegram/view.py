"""Previews of one answer: a streamed draft in private chats, a message that is edited everywhere else."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from dataclasses import replace

from telegram.error import BadRequest, EndPointNotFound, TelegramError

from adapters.channel import Outgoing, Part
from adapters.telegram.api import FloodWait
from adapters.telegram.failures import classify
from adapters.telegram.outbound import render
from adapters.telegram.question_buttons import STOP_KEYBOARD
from adapters.telegram.sending import Sender
from pipeline.domain.clock import Clock
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey

_log = logging.getLogger(__name__)

_RENEW_AFTER_S = 20.0
"""Telegram shows a draft for 30 seconds."""
_LOOK_EVERY_S = 5.0
_LONGEST_DRAFT_S = 600.0
"""A view that is never closed must not be renewed for ever."""


class EditedView:
    """A message in the chat that shows the newest text, with a Stop button. The final answer edits it."""

    def __init__(
        self,
        sender: Sender,
        thread: ThreadKey,
        *,
        reply_handle: str,
        native_id: str,
        adopts: bool = False,
        in_doubt: bool = False,
    ) -> None:
        """`adopts`: an unconfirmed post is not repeated; the final answer searches for it.
        `in_doubt`: an earlier process may have posted the message."""
        self._sender = sender
        self._thread = thread
        self._reply_handle = reply_handle
        self._native_id = native_id
        self._adopts = adopts
        self._in_doubt = in_doubt
        self._shown: Part | None = None

    @property
    def native_id(self) -> str:
        return self._native_id

    async def show(self, outgoing: Outgoing) -> None:
        if self._in_doubt:
            return
        # Only the first of several messages is shown: the final answer brings the others.
        first = render(outgoing)[0]
        part = replace(first, body={**first.body, "reply_markup": STOP_KEYBOARD})
        if part == self._shown:
            return
        if self._native_id:
            await self._sender.edit(self._thread, self._native_id, part)
        else:
            await self._post(part)
        self._shown = part

    async def _post(self, part: Part) -> None:
        try:
            self._native_id = await self._sender.post(self._thread, part, reply_handle=self._reply_handle)
        except TelegramError as error:
            self._in_doubt = self._adopts and classify(error).maybe_delivered
            raise
        except asyncio.CancelledError:
            # Cancelled in favour of the final answer: the post may still arrive.
            self._in_doubt = self._adopts
            raise

    async def close(self) -> None:
        if self._in_doubt:
            raise InvalidInput("telegram: it is not known yet which message shows the preview")


class Drafts:
    """Streams drafts, and renews idle ones before they expire."""

    def __init__(self, sender: Sender, clock: Clock) -> None:
        self._sender = sender
        self._clock = clock
        self._open: set[DraftView] = set()
        self.supported = True
        """False once the Bot API server has reported that it knows no drafts."""

    def view(self, thread: ThreadKey, key: str) -> DraftView:
        """A view for the answer under `key`; the same key gives the same draft."""
        return DraftView(self, thread, draft_id_of(key))

    async def renew(self) -> None:
        """Renew idle drafts until cancelled."""
        while True:
            await self._clock.sleep(_LOOK_EVERY_S)
            now = self._clock.monotonic()
            for view in tuple(self._open):
                if now - view.begun_at > _LONGEST_DRAFT_S:
                    self._open.discard(view)
                elif now - view.shown_at > _RENEW_AFTER_S:
                    await view.show_again()

    def opened(self, view: DraftView) -> None:
        """Start renewing `view`."""
        self._open.add(view)

    def closed(self, view: DraftView) -> None:
        """Stop renewing `view`."""
        self._open.discard(view)

    def now(self) -> float:
        """The monotonic time."""
        return self._clock.monotonic()

    async def send(self, thread: ThreadKey, draft_id: int, part: Part) -> float:
        """Show a draft; the monotonic time of the call."""
        try:
            await self._sender.draft(thread, draft_id, part)
        except EndPointNotFound:
            self.supported = False
            raise
        return self.now()


class DraftView:
    """A preview in a private chat that is no message: it disappears when the answer arrives."""

    native_id = ""

    def __init__(self, drafts: Drafts, thread: ThreadKey, draft_id: int) -> None:
        self._drafts = drafts
        self._thread = thread
        self._draft_id = draft_id
        self._shown: Part | None = None
        self._sending = asyncio.Lock()
        self._closed = False
        self.begun_at = 0.0
        self.shown_at = 0.0

    async def show(self, outgoing: Outgoing) -> None:
        # The newest text is at the end: an answer of several messages shows its last one.
        part = render(outgoing)[-1]
        async with self._sending:
            if part == self._shown:
                return
            self.shown_at = await self._drafts.send(self._thread, self._draft_id, part)
            if self._shown is None:
                self.begun_at = self.shown_at
                self._drafts.opened(self)
            self._shown = part

    async def show_again(self) -> None:
        """Show the text again. Errors are ignored: the next update shows it anyway."""
        if self._shown is None or self._sending.locked():
            return
        async with self._sending:
            if self._closed:
                return
            try:
                self.shown_at = await self._drafts.send(self._thread, self._draft_id, self._shown)
            except TelegramError as error:
                _log.info("a preview was not renewed", extra={"reason": classify(error).message})
                if isinstance(error, FloodWait):
                    # Set as if shown later, so that the next renewal comes after the wait.
                    waited_from = self._drafts.now() + error.seconds - _RENEW_AFTER_S
                    self.shown_at = max(self.shown_at, waited_from)
                if isinstance(error, BadRequest | EndPointNotFound):
                    self._drafts.closed(self)

    async def close(self) -> None:
        self._drafts.closed(self)
        # Wait for a running renewal: after the answer it would show the draft above it again.
        async with self._sending:
            self._closed = True


def draft_id_of(key: str) -> int:
    """A draft's number, derived from the answer's key: never zero, and the same for every attempt."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % (2**31 - 1) + 1
