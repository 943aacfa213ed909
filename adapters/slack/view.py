"""The preview of one answer: Slack's chat stream in a thread, an edited message everywhere else.

A stream that is rejected, before its start or later, continues as an edited message: every call passes
the whole text, so nothing is lost. A stream's text is inert: Slack would fetch previews of its links
and notify people it mentions, and only the final edit is rendered by this channel's rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adapters.channel import Outgoing
from adapters.slack.calls import Calls
from adapters.slack.failures import CallFailed
from adapters.slack.fields import read_handle, stamp
from adapters.slack.outbound import render
from adapters.slack.posts import Posts, ts_of
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey

_STREAM_CHARS = 11_000
_WAIT_KINDS = frozenset({"rate_limit", "transient", "auth"})
"""Failures that do not mean that streams are unavailable."""
_ZERO_WIDTH_SPACE = "\u200b"


@dataclass(slots=True)
class StreamsAllowed:
    """Whether this workspace accepts streams; one rejection of the method is enough."""

    yes: bool


class SlackView:
    """The LiveView of one answer."""

    def __init__(
        self,
        *,
        calls: Calls,
        posts: Posts,
        clock: Clock,
        thread: ThreadKey,
        key: str,
        reply_handle: str,
        native_id: str,
        streams: StreamsAllowed,
        doubtful_since: float | None = None,
    ) -> None:
        self._calls = calls
        self._posts = posts
        self._clock = clock
        self._thread = thread
        self._key = key
        self._recipient = read_handle(reply_handle)
        self._native_id = native_id
        self._streams = streams
        self._streamed: str | None = None
        """The text of the open stream; None where none is open."""
        self._stopped = False
        """The user stopped the stream: nothing more is shown before the answer."""
        self._tried_at = doubtful_since
        """The start time of a call that may have created the message."""
        self._tried_text: str | None = None
        """The text that this call was to stream; None for a posted message."""

    @property
    def native_id(self) -> str:
        return self._native_id

    async def show(self, outgoing: Outgoing) -> None:
        """Show the newest text. Raises CallFailed."""
        if self._stopped:
            return
        if self._tried_at is not None:
            await self._resolve()
        if self._streamed is not None:
            await self._append(outgoing, self._streamed)
        elif self._native_id:
            await self._posts.edit(self._thread, self._native_id, render(outgoing)[0])
        elif not (self._may_stream() and await self._start(outgoing)):
            await self._post(outgoing)

    async def close(self) -> None:
        """End the stream, and search for a message whose creation was not confirmed."""
        if self._tried_at is not None:
            await self._resolve()
        if self._streamed is not None:
            self._streamed = None
            await self._posts.stop_stream(self._thread, ts_of(self._native_id))

    def _may_stream(self) -> bool:
        return self._streams.yes and self._thread.topic is not None and self._recipient is not None

    async def _start(self, outgoing: Outgoing) -> bool:
        """Whether a stream shows the text now."""
        if self._recipient is None or self._thread.topic is None:
            return False
        _, user, team = self._recipient
        topic, text = self._thread.topic, stream_text(outgoing)
        self._tried_at, self._tried_text = self._clock.now(), text
        try:
            answer = await self._calls.run(
                "chat.startStream",
                lambda client: client.chat_startStream(
                    channel=self._thread.chat,
                    thread_ts=topic,
                    recipient_user_id=user,
                    recipient_team_id=team,
                    markdown_text=text or None,
                    unfurl_links=False,
                    unfurl_media=False,
                ),
            )
        except CallFailed as failed:
            if not failed.failure.maybe_delivered:
                self._tried_at = None
            if failed.failure.kind in _WAIT_KINDS or failed.failure.maybe_delivered:
                raise
            self._streams.yes = self._streams.yes and failed.code not in (
                "unknown_method",
                "method_not_supported",
            )
            return False
        self._tried_at = None
        self._native_id, self._streamed = f"{self._thread.chat}:{stamp(answer.get('ts'))}", text
        return True

    async def _append(self, outgoing: Outgoing, streamed: str) -> None:
        text = stream_text(outgoing)
        if text == streamed:
            return
        if not text.startswith(streamed):
            await self._fall_back(outgoing)
            return
        ts = ts_of(self._native_id)
        try:
            await self._calls.run(
                "chat.appendStream",
                lambda client: client.chat_appendStream(
                    channel=self._thread.chat, ts=ts, markdown_text=text[len(streamed) :]
                ),
            )
        except CallFailed as failed:
            if failed.code == "stopped_by_user":
                self._stopped, self._streamed = True, None
                return
            if failed.failure.maybe_delivered:
                # Appending again could duplicate text; editing the whole text cannot.
                await self._fall_back(outgoing)
                return
            if failed.failure.kind in _WAIT_KINDS:
                raise
            await self._fall_back(outgoing)
            return
        self._streamed = text

    async def _fall_back(self, outgoing: Outgoing) -> None:
        """Switch from the stream to edits of its message; the edit ends a stream that is still open."""
        await self._posts.edit(self._thread, self._native_id, render(outgoing)[0])
        self._streamed = None

    async def _post(self, outgoing: Outgoing) -> None:
        self._tried_at, self._tried_text = self._clock.now(), None
        part = render(outgoing)[0]
        try:
            receipt = await self._posts.post(self._thread, part, key=self._key, kind="parlour_preview")
        except CallFailed as failed:
            if not failed.failure.maybe_delivered:
                self._tried_at = None
            raise
        self._tried_at = None
        self._native_id = receipt.native_id

    async def _resolve(self) -> None:
        """Find the message of a call that got no answer. Raises CallFailed."""
        since = self._tried_at
        if since is None:
            return
        tried = self._tried_text
        if tried is not None:
            found = await self._posts.find_ours(
                self._thread, since=since, is_it=lambda message: _is_stream_of(message, tried)
            )
        else:
            found = await self._posts.find(self._thread, since=since, key=self._key, kind="parlour_preview")
        self._tried_at = None
        if found is not None:
            self._native_id = found.native_id


def stream_text(outgoing: Outgoing) -> str:
    """The text for a stream, which only grows while the answer does: without links and mentions."""
    quote = f"> {' '.join(outgoing.heard.split())}\n\n" if outgoing.heard else ""
    words = (quote + outgoing.text)[:_STREAM_CHARS].encode("utf-8", "replace").decode("utf-8")
    inert = words.replace(":/", f":{_ZERO_WIDTH_SPACE}/").replace("<", f"<{_ZERO_WIDTH_SPACE}")
    return inert.replace("@", f"@{_ZERO_WIDTH_SPACE}")


def _is_stream_of(message: Mapping[str, Any], text: str) -> bool:
    """Whether a message is the start of a stream of `text`: streams have no metadata to identify them.
    Only letters are compared, because Slack returns the text in its own markup."""
    shown = message.get("text")
    if message.get("metadata") or not isinstance(shown, str):
        return False
    letters = _letters(text)
    return bool(letters) and _letters(shown) == letters


def _letters(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
