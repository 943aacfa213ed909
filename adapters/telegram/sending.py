"""Send content: one attempt per call, and a second one without formatting where Telegram rejects it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from telegram import InputFile
from telegram.error import BadRequest, TelegramError

from adapters.channel import Part, VoiceClip
from adapters.json_fields import integer, mapping
from adapters.telegram.api import TelegramApi
from adapters.telegram.failures import is_not_modified, is_refused_format, words_of
from adapters.telegram.outbound import place_of, reply_fields, unformatted
from pipeline.domain.bounded_dict import BoundedDict
from pipeline.domain.errors import InvalidInput
from pipeline.domain.ids import ThreadKey

_VOICE_NAME = "answer.ogg"
_DOCUMENT = ("sendDocument", "document")
_METHODS: Mapping[str, tuple[str, str]] = {
    "image": ("sendPhoto", "photo"),
    "audio": ("sendAudio", "audio"),
    "video": ("sendVideo", "video"),
}
"""The method for a kind of file, and the field of its content."""
_NEWEST = 8
_CHATS = 2_000
"""The most chats whose newest messages are remembered."""


class Sender:
    """Sends parts to chats. Raises TelegramError, and InvalidInput for content that can never be sent."""

    def __init__(self, api: TelegramApi) -> None:
        self._api = api
        self._confirmed = BoundedDict[str, deque[str]](_CHATS)

    def confirmed(self, thread: ThreadKey) -> tuple[str, ...]:
        """The newest messages that this process posted in the chat, oldest first."""
        return tuple(self._confirmed.get(thread.chat, ()))

    async def post(self, thread: ThreadKey, part: Part, *, reply_handle: str = "") -> str:
        """Post a message; its id."""
        fields = {**_place(thread), **reply_fields(thread, reply_handle)}
        if part.file is not None:
            shown = await self._send_file(part, part.file, fields)
        else:
            shown = await self._show("sendMessage", part, fields)
        return self._noted(thread, _id_of(shown))

    async def _send_file(self, part: Part, content: bytes, fields: Mapping[str, Any]) -> Any:
        """Send a file as what it is; as a document where Telegram refuses that, such as a picture that is too
        long and narrow."""
        method, field = _METHODS.get(part.file_kind or "file", _DOCUMENT)
        try:
            upload = InputFile(content, filename=part.file_name)
            return await self._api.call(method, {**part.body, **fields, field: upload})
        except BadRequest:
            if field == "document":
                raise
        upload = InputFile(content, filename=part.file_name)
        return await self._api.call("sendDocument", {**part.body, **fields, "document": upload})

    async def voice(self, thread: ThreadKey, clip: VoiceClip, *, reply_handle: str = "") -> str:
        """Post a voice message; its id. Telegram computes the waveform itself."""
        fields = {**_place(thread), **reply_fields(thread, reply_handle), "duration": round(clip.seconds)}
        upload = InputFile(clip.data, filename=_VOICE_NAME)
        return self._noted(thread, _id_of(await self._api.call("sendVoice", {**fields, "voice": upload})))

    async def delete(self, thread: ThreadKey, native_id: str) -> None:
        """Delete one of the bot's messages."""
        fields = {"chat_id": _place(thread)["chat_id"], "message_id": int(native_id)}
        try:
            await self._api.call("deleteMessage", fields)
        except BadRequest as error:
            if "not found" not in words_of(error):
                raise

    async def edit(self, thread: ThreadKey, native_id: str, part: Part) -> None:
        """Edit one of the bot's messages to show `part`; an unchanged message is no error. Of a file only the
        caption is edited, which succeeds for a message with a file alone."""
        if not native_id.isdecimal():
            raise InvalidInput(f"telegram: message {native_id!a} cannot become this part by an edit")
        fields = {"chat_id": _place(thread)["chat_id"], "message_id": int(native_id)}
        try:
            if part.file is not None:
                await self._api.call("editMessageCaption", {**part.body, **fields})
            else:
                await self._show("editMessageText", part, fields)
        except BadRequest as error:
            if not is_not_modified(error):
                raise

    async def draft(self, thread: ThreadKey, draft_id: int, part: Part) -> None:
        """Show a preview that expires after 30 seconds, with a Stop button. Private chats only."""
        body = {key: part.body[key] for key in ("text", "entities") if key in part.body}
        fields = {**_place(thread), "draft_id": draft_id, "can_stop": True}
        await self._show("sendMessageDraft", Part(body=body, plain=part.plain), fields)

    async def typing(self, thread: ThreadKey) -> None:
        """Show a typing indicator."""
        await self._api.call("sendChatAction", {**_place(thread), "action": "typing"})

    async def react(self, thread: ThreadKey, message_id: str, emoji: str) -> None:
        """Set the bot's reaction on a message; an empty one removes it."""
        reaction = [{"type": "emoji", "emoji": emoji}] if emoji else []
        fields = {"chat_id": int(thread.chat), "message_id": int(message_id), "reaction": reaction}
        await self._api.call("setMessageReaction", fields)

    async def set_buttons(self, chat: int, message_id: int, markup: Mapping[str, Any]) -> None:
        """Replace the buttons below a message; an empty keyboard removes them."""
        fields = {"chat_id": chat, "message_id": message_id, "reply_markup": dict(markup)}
        try:
            await self._api.call("editMessageReplyMarkup", fields)
        except BadRequest as error:
            if not is_not_modified(error):
                raise

    def _noted(self, thread: ThreadKey, native_id: str) -> str:
        self._confirmed.get_or_add(thread.chat, lambda: deque(maxlen=_NEWEST)).append(native_id)
        return native_id

    async def _show(self, method: str, part: Part, fields: Mapping[str, Any]) -> Any:
        try:
            return await self._api.call(method, {**part.body, **fields})
        except BadRequest as error:
            if not is_refused_format(error):
                raise
        return await self._api.call(method, {**unformatted(part), **fields})


def _id_of(shown: Any) -> str:
    number = integer(mapping(shown).get("message_id"))
    if number is None:
        # Presumably delivered; without the id it cannot be edited later.
        raise TelegramError("Telegram confirmed a message without saying its id")
    return str(number)


def _place(thread: ThreadKey) -> dict[str, Any]:
    try:
        return place_of(thread)
    except ValueError:
        raise InvalidInput(f"telegram: {thread.encode()} is no chat of Telegram's") from None
