"""Post, edit and find the bot's messages. A post contains its key as metadata, by which it is found again.

One attempt per call; a message whose formatting is rejected is tried once more as plain text. The edits of
one message run one after the other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

from slack_sdk.web.async_client import AsyncWebClient

from adapters.channel import Failure, Part, Receipt
from adapters.json_fields import mapping
from adapters.slack.calls import Calls
from adapters.slack.failures import FORMAT_CODES, CallFailed
from adapters.slack.fields import stamp
from adapters.slack.inbound import Bot
from adapters.slack.outbound import plain_body, without_question
from adapters.slack.shown_states import MessageState, MessageStates
from pipeline.domain.ids import ThreadKey

PostKind = Literal["parlour_reply", "parlour_preview"]
_PAGE = 100
_MOST_PAGES = 5
_CLOCKS_DIFFER_S = 120.0
"""Seconds by which Slack's clock may be slow when a post is searched for."""
Body = Mapping[str, Any]


class Posts:
    """The messages of one bot."""

    def __init__(self, calls: Calls, bot: Callable[[], Awaitable[Bot]]) -> None:
        self._calls = calls
        self._bot = bot
        self._states = MessageStates()

    async def post(
        self, thread: ThreadKey, part: Part, *, key: str, kind: PostKind = "parlour_reply"
    ) -> Receipt:
        """Post a message or a file. Raises CallFailed."""
        if part.file is not None:
            return await self._upload(thread, part, key)
        metadata = {"event_type": kind, "event_payload": {"key": key}}

        async def send(body: Body) -> Mapping[str, Any]:
            return await self._calls.run(
                "chat.postMessage",
                lambda client: client.chat_postMessage(
                    channel=thread.chat,
                    thread_ts=thread.topic,
                    metadata=metadata,
                    unfurl_links=False,
                    unfurl_media=False,
                    parse="none",
                    **body,
                ),
            )

        answer = await _or_plain(send, part)
        ts = stamp(answer.get("ts"))
        if not ts:
            words = "Slack took a message and did not say which it is"
            raise CallFailed(Failure(kind="transient", message=words, maybe_delivered=True))
        return Receipt(native_id=f"{thread.chat}:{ts}")

    async def delete(self, thread: ThreadKey, native_id: str) -> None:
        """Delete a message; a missing one is no error. Raises CallFailed."""
        try:
            await self._calls.run(
                "chat.delete", lambda client: client.chat_delete(channel=thread.chat, ts=ts_of(native_id))
            )
        except CallFailed as failed:
            if failed.failure.kind != "not_found":
                raise

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> Receipt:
        """Edit one of the bot's messages to show `part`. A stream that is still open in it is ended first."""
        ts = ts_of(native_id)
        async with self._states.editing(thread.chat, ts) as state:

            async def send(body: Body) -> Mapping[str, Any]:
                return await self._update(thread, ts, body, state)

            try:
                await _or_plain(send, part)
            except CallFailed as refused:
                if refused.code != "streaming_state_conflict":
                    raise
                await self.stop_stream(thread, ts)
                await _or_plain(send, part)
        return Receipt(native_id=native_id)

    async def close_question(
        self, thread: ThreadKey, ts: str, handle: str, pressed: Mapping[str, Any]
    ) -> None:
        """Remove the buttons of one question, and keep the text. `pressed` is the message as contained in a
        press: it is used where this process has not edited the message. Raises CallFailed."""
        async with self._states.editing(thread.chat, ts) as state:
            body = without_question(pressed if state.body is None else state.body, handle)
            if body is not None:
                await self._update(thread, ts, body, state)

    async def _update(self, thread: ThreadKey, ts: str, body: Body, state: MessageState) -> Mapping[str, Any]:
        """Call chat.update; the metadata is not changed. Raises CallFailed."""
        before, state.body = state.body, body
        try:
            return await self._calls.run(
                "chat.update",
                lambda client: client.chat_update(channel=thread.chat, ts=ts, parse="none", **body),
            )
        except CallFailed as refused:
            if not refused.failure.maybe_delivered:
                state.body = before
            raise

    async def stop_stream(self, thread: ThreadKey, ts: str) -> None:
        """End a stream; no error if it has already ended. Raises CallFailed."""
        try:
            await self._calls.run(
                "chat.stopStream", lambda client: client.chat_stopStream(channel=thread.chat, ts=ts)
            )
        except CallFailed as refused:
            if refused.code not in ("message_not_in_streaming_state", "stopped_by_user"):
                raise

    async def find(
        self, thread: ThreadKey, *, since: float, key: str, kind: PostKind = "parlour_reply"
    ) -> Receipt | None:
        """The message that a post under `key` made, or its file. Raises CallFailed."""
        mark = file_title(key, "")

        def is_it(message: Mapping[str, Any]) -> bool:
            metadata = mapping(message.get("metadata"))
            payload = mapping(metadata.get("event_payload"))
            if metadata.get("event_type") == kind and payload.get("key") == key:
                return True
            files = message.get("files")
            return isinstance(files, list) and any(
                str(mapping(file).get("title")).endswith(mark) for file in files
            )

        return await self.find_ours(thread, since=since, is_it=is_it)

    async def find_ours(
        self, thread: ThreadKey, *, since: float, is_it: Callable[[Mapping[str, Any]], bool]
    ) -> Receipt | None:
        """The bot's newest message in the thread since then for which `is_it` is True. Raises CallFailed."""
        bot = await self._bot()
        oldest = f"{max(0.0, since - _CLOCKS_DIFFER_S):.6f}"
        cursor: str | None = None
        found: Receipt | None = None
        for _ in range(_MOST_PAGES):
            answer = await self._page(thread, oldest, cursor)
            messages = answer.get("messages")
            for message in messages if isinstance(messages, list) else ():
                ts = stamp(mapping(message).get("ts"))
                if ts and message.get("user") == bot.user and is_it(message):
                    found = Receipt(native_id=f"{thread.chat}:{ts}")
            cursor = mapping(answer.get("response_metadata")).get("next_cursor") or None
            if found is not None or not answer.get("has_more") or not isinstance(cursor, str):
                break
        return found

    async def _page(self, thread: ThreadKey, oldest: str, cursor: str | None) -> Mapping[str, Any]:
        method = "conversations.replies" if thread.topic else "conversations.history"

        def ask(client: AsyncWebClient) -> Awaitable[Any]:
            common: dict[str, Any] = {
                "channel": thread.chat,
                "oldest": oldest,
                "limit": _PAGE,
                "cursor": cursor,
                "include_all_metadata": True,
            }
            if thread.topic:
                return client.conversations_replies(ts=thread.topic, **common)
            return client.conversations_history(**common)

        return await self._calls.run(method, ask)

    async def _upload(self, thread: ThreadKey, part: Part, key: str) -> Receipt:
        answer = await self._calls.run(
            "files.completeUploadExternal",
            lambda client: client.files_upload_v2(
                channel=thread.chat,
                thread_ts=thread.topic,
                content=part.file,
                filename=part.file_name,
                title=file_title(key, str(part.body.get("title", "answer"))),
                alt_txt=part.body.get("alt"),
                initial_comment=part.body.get("comment") or None,
            ),
            uploads=True,
        )
        files = answer.get("files")
        name = mapping(files[0]).get("id") if isinstance(files, list) and files else None
        return Receipt(native_id=f"{thread.chat}:{name}")


def ts_of(native_id: str) -> str:
    """The timestamp in `<channel>:<ts>`. Raises CallFailed for anything else."""
    ts = stamp(native_id.rpartition(":")[2])
    if not ts:
        raise CallFailed(Failure(kind="invalid", message="this is not the id of a Slack message"))
    return ts


def file_title(key: str, name: str) -> str:
    """A file's title, which ends in a digest of the upload's key, because files have no metadata."""
    return f"{name} {hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:10]}"


async def _or_plain(send: Callable[[Body], Awaitable[Mapping[str, Any]]], part: Part) -> Mapping[str, Any]:
    try:
        return await send(part.body)
    except CallFailed as refused:
        if refused.code not in FORMAT_CODES:
            raise
    return await send(plain_body(part))
