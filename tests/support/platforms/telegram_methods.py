"""The Bot API's methods on the fake's state. Not HTTP: parameters come decoded, errors are ApiErrors."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from pipeline.domain.clock import Clock
from tests.support.platforms.telegram_rules import (
    CAPTION_UNITS,
    DOWNLOAD_BYTES,
    UPLOAD_BYTES,
    ApiError,
    bad_request,
    check_keyboard,
    check_photo,
    check_text,
    check_voice,
    plain_entities,
)
from tests.support.platforms.telegram_state import BOT_ID, Draft, Stored, TelegramState

Params = Mapping[str, Any]
SHOWS = frozenset(
    {
        "sendMessage",
        "editMessageText",
        "editMessageCaption",
        "sendDocument",
        "sendPhoto",
        "sendAudio",
        "sendVideo",
        "sendVoice",
        "sendMessageDraft",
    }
)
"""The methods that flood limits count."""


class BotApi:
    """`await api.call(method, params)` gives the `result`, or raises ApiError."""

    def __init__(self, state: TelegramState, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._methods: dict[str, Callable[[Params], Awaitable[Any]]] = {
            "getMe": self._get_me,
            "getUpdates": self._get_updates,
            "setWebhook": self._set_webhook,
            "deleteWebhook": self._delete_webhook,
            "getWebhookInfo": self._get_webhook_info,
            "sendMessage": self._send_message,
            "editMessageText": self._edit_message_text,
            "editMessageReplyMarkup": self._edit_markup,
            "deleteMessage": self._delete_message,
            "sendMessageDraft": self._send_draft,
            "sendChatAction": self._send_chat_action,
            "sendDocument": partial(self._send_file, "document"),
            "sendPhoto": partial(self._send_file, "photo"),
            "sendAudio": partial(self._send_file, "audio"),
            "sendVideo": partial(self._send_file, "video"),
            "editMessageCaption": self._edit_caption,
            "sendVoice": self._send_voice,
            "answerCallbackQuery": self._answer_callback,
            "getFile": self._get_file,
            "setMyCommands": self._set_my_commands,
            "setMessageReaction": self._set_reaction,
        }

    async def call(self, method: str, params: Params) -> Any:
        """Run the method; its `result`. Raises ApiError."""
        run = self._methods.get(method)
        if run is None or method in self._state.methods_removed:
            raise ApiError(404, "Not Found: method not found")
        try:
            return await run(params)
        finally:
            self._state.changed()

    async def _get_me(self, _: Params) -> Any:
        return {**self._state.bot, **self._state.abilities}

    async def _get_updates(self, params: Params) -> Any:
        updates = self._state.updates
        if updates.webhook:
            raise ApiError(
                409,
                "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete "
                "the webhook first",
            )
        if updates.polling:
            raise ApiError(
                409,
                "Conflict: terminated by other getUpdates request; make sure that only one bot instance is "
                "running",
            )
        if isinstance(params.get("allowed_updates"), list):
            updates.allowed = tuple(params["allowed_updates"]) or None
        updates.confirm_below(int(params.get("offset") or 0))
        updates.polling = True
        self._state.changed()
        try:
            async with self._clock.timeout(min(50.0, float(params.get("timeout") or 0)) or 0.001):
                while not updates.pending:
                    await self._state.next_change()
        except TimeoutError:
            return []
        finally:
            updates.polling = False
        return updates.pending[: max(1, min(100, int(params.get("limit") or 100)))]

    async def _set_webhook(self, params: Params) -> Any:
        url, secret = params.get("url"), params.get("secret_token", "")
        if not isinstance(url, str) or not url.startswith(("https://", "http://127.0.0.1:")):
            raise bad_request("bad webhook: An HTTPS URL must be provided for webhook")
        if not isinstance(secret, str) or len(secret) > 256 or not secret.replace("-", "_").isidentifier():
            raise bad_request("secret token contains unallowed characters")
        if isinstance(params.get("allowed_updates"), list):
            self._state.updates.allowed = tuple(params["allowed_updates"]) or None
        self._state.updates.webhook = {"url": url, "secret": secret}
        return True

    async def _delete_webhook(self, params: Params) -> Any:
        self._state.updates.webhook = {}
        if params.get("drop_pending_updates"):
            self._state.updates.pending.clear()
        return True

    async def _get_webhook_info(self, _: Params) -> Any:
        updates = self._state.updates
        return {
            "url": updates.webhook.get("url", ""),
            "has_custom_certificate": False,
            # Messages wait where they cannot be delivered.
            "pending_update_count": max(len(updates.pending), bool(updates.webhook_error)),
            **({"last_error_message": updates.webhook_error} if updates.webhook_error else {}),
        }

    async def _send_message(self, params: Params) -> Any:
        chat = self._reachable(params)
        check_text(params.get("text"), params.get("entities"))
        _no_parse_mode(params)
        return self._store(chat, params, text=params["text"], entities=params.get("entities"))

    async def _send_file(self, kind: str, params: Params) -> Any:
        chat = self._reachable(params)
        upload = params.get(kind)
        if not isinstance(upload, tuple):
            raise bad_request(f"there is no {kind} in the request")
        name, content = upload
        if not content:
            raise bad_request("file must be non-empty")
        if len(content) > UPLOAD_BYTES:
            raise ApiError(413, "Request Entity Too Large")
        if kind == "photo":
            check_photo(content)
        caption = params.get("caption") or ""
        check_text(caption, params.get("caption_entities"), limit=CAPTION_UNITS, empty=True)
        file_id = f"upload{len(self._state.files)}"
        self._state.files[file_id] = content
        file = {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_name": name,
            "file_size": len(content),
        }
        return self._store(
            chat,
            params,
            text=caption,
            entities=params.get("caption_entities"),
            name=name,
            fields={kind: [file] if kind == "photo" else file},
        )

    async def _send_voice(self, params: Params) -> Any:
        chat = self._reachable(params)
        name, content = check_voice(params.get("voice"), params.get("duration"))
        file_id = f"upload{len(self._state.files)}"
        self._state.files[file_id] = content
        voice = {"file_id": file_id, "duration": int(params["duration"]), "mime_type": "audio/ogg"}
        fields = {"voice": {**voice, "file_unique_id": f"u{file_id}", "file_size": len(content)}}
        return self._store(chat, params, text="", entities=None, name=name, fields=fields)

    async def _edit_message_text(self, params: Params) -> Any:
        chat = self._reachable(params)
        stored = self._own(chat, params, "edit")
        if stored.fields:
            raise bad_request("there is no text in the message to edit")
        check_text(params.get("text"), params.get("entities"))
        _no_parse_mode(params)
        check_keyboard(params.get("reply_markup"))
        entities = [dict(entity) for entity in plain_entities(params.get("entities"))]
        text = params["text"].strip()
        if (text, entities, params.get("reply_markup")) == (stored.text, stored.entities, stored.markup):
            raise _not_modified()
        stored.text, stored.entities, stored.markup = text, entities, params.get("reply_markup")
        stored.edits += 1
        return self._state.as_message(stored)

    async def _edit_caption(self, params: Params) -> Any:
        stored = self._own(self._reachable(params), params, "edit")
        if not stored.fields or "voice" in stored.fields:
            raise bad_request("there is no caption in the message to edit")
        caption = (params.get("caption") or "").strip()
        check_text(caption, params.get("caption_entities"), limit=CAPTION_UNITS, empty=True)
        if (caption, params.get("reply_markup")) == (stored.text, stored.markup):
            raise _not_modified()
        stored.text, stored.markup = caption, params.get("reply_markup")
        stored.edits += 1
        return self._state.as_message(stored)

    async def _edit_markup(self, params: Params) -> Any:
        stored = self._own(self._reachable(params), params, "edit")
        check_keyboard(params.get("reply_markup"))
        markup = params.get("reply_markup")
        if (markup or None) == stored.markup:
            raise _not_modified()
        stored.markup = markup or None
        return self._state.as_message(stored)

    async def _delete_message(self, params: Params) -> Any:
        self._state.remove(self._own(self._reachable(params), params, "delete"))
        return True

    async def _send_draft(self, params: Params) -> Any:
        chat = self._reachable(params)
        if chat < 0:
            raise bad_request("TEXTDRAFT_PEER_INVALID")
        draft_id = params.get("draft_id")
        if type(draft_id) is not int or draft_id == 0:
            raise bad_request("draft_id must be non-zero")
        check_text(params.get("text", ""), params.get("entities"), empty=True)
        self._state.drafts[chat, draft_id] = Draft(
            draft_id=draft_id,
            chat=chat,
            topic=params.get("message_thread_id"),
            text=params.get("text") or "",
            can_stop=bool(params.get("can_stop")),
            at=self._clock.monotonic(),
        )
        return True

    async def _send_chat_action(self, params: Params) -> Any:
        self._reachable(params)
        if params.get("action") != "typing":
            raise bad_request("wrong parameter action in request")
        return True

    async def _set_reaction(self, params: Params) -> Any:
        chat, message = self._reachable(params), params.get("message_id")
        if self._state.find(chat, message) is None:
            raise bad_request("message to react not found")
        emojis = [one["emoji"] for one in params.get("reaction") or []]
        if len(emojis) > 1 or not set(emojis) <= {"👀", "👍", "👎"}:
            raise bad_request("REACTION_INVALID")
        self._state.reactions[chat, int(str(message))] = "".join(emojis)
        return True

    async def _answer_callback(self, params: Params) -> Any:
        words = params.get("text") or ""
        if len(words) > 200:
            raise bad_request("MESSAGE_TOO_LONG")
        query = params.get("callback_query_id")
        if not isinstance(query, str) or query not in self._state.callbacks:
            raise bad_request("query is too old and response timeout expired or query ID is invalid")
        self._state.callbacks[query] = f"+{words}"
        return True

    async def _get_file(self, params: Params) -> Any:
        content = self._state.files.get(str(params.get("file_id")))
        if content is None:
            raise bad_request("invalid file_id")
        if len(content) > DOWNLOAD_BYTES:
            raise bad_request("file is too big")
        file_id = params["file_id"]
        return {
            "file_id": file_id,
            "file_unique_id": f"u{file_id}",
            "file_size": self._state.sizes.get(file_id, len(content)),
            "file_path": self._state.paths.get(file_id, f"files/{file_id}"),
        }

    async def _set_my_commands(self, params: Params) -> Any:
        self._state.commands[params.get("language_code", "")] = params["commands"]
        return True

    def _reachable(self, params: Params) -> int:
        chat = params.get("chat_id")
        self._state.chat(chat)
        if chat in self._state.blocked:
            raise ApiError(403, "Forbidden: bot was blocked by the user")
        return int(chat or 0)

    def _own(self, chat: int, params: Params, what: str) -> Stored:
        stored = self._state.find(chat, params.get("message_id"))
        if stored is None:
            raise bad_request(f"message to {what} not found")
        if stored.author != BOT_ID:
            raise bad_request(f"message can't be {what}ed".replace("ee", "e"))
        return stored

    def _store(
        self,
        chat: int,
        params: Params,
        *,
        text: str,
        entities: object,
        name: str = "",
        fields: dict[str, Any] | None = None,
    ) -> Any:
        check_keyboard(params.get("reply_markup"))
        replied = None
        reply = params.get("reply_parameters")
        if reply:
            replied = reply.get("message_id")
            if self._state.find(chat, replied) is None:
                replied = None
                if not reply.get("allow_sending_without_reply"):
                    raise bad_request("message to be replied not found")
        topic = params.get("message_thread_id")
        stored = Stored(
            message_id=next(self._state.ids),
            chat=chat,
            topic=topic,
            author=BOT_ID,
            text=text.strip(),
            entities=[dict(entity) for entity in plain_entities(entities)],
            markup=params.get("reply_markup"),
            reply_to=replied,
            file_name=name,
            fields=fields or {},
        )
        self._state.add(stored)
        drafts = self._state.drafts
        for key in [key for key, draft in drafts.items() if draft.chat == chat and draft.topic == topic]:
            del drafts[key]
        return self._state.as_message(stored)


def _no_parse_mode(params: Params) -> None:
    if params.get("parse_mode"):
        raise bad_request("can't parse entities: this fake takes entities only")


def _not_modified() -> ApiError:
    return bad_request(
        "message is not modified: specified new message content and reply markup are exactly the same as a "
        "current content and reply markup of the message"
    )


async def never() -> None:
    """Wait until cancelled: a server that does not answer."""
    await asyncio.Event().wait()
