"""The preview of an answer: one message of the bot, edited in place, with a Stop button.

It is posted under the answer's key. If the gateway crashes before it has stored the message's id,
the answer's post under the same key finds the preview, and becomes an edit of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from adapters.channel import Outgoing, Part, Receipt
from adapters.discord.outbound import render

Post = Callable[[Part], Awaitable[Receipt]]
Edit = Callable[[str, Part], Awaitable[Receipt]]


class EditView:
    """The LiveView of one answer. `post` and `edit` are bound to its chat and key."""

    def __init__(self, post: Post, edit: Edit, native_id: str) -> None:
        self._post = post
        self._edit = edit
        self._native_id = native_id
        self._shown: Part | None = None

    @property
    def native_id(self) -> str:
        return self._native_id

    async def show(self, outgoing: Outgoing) -> None:
        # Of a text longer than a message, show the end, which is being written.
        part = render(outgoing)[-1]
        if part == self._shown:
            return
        if self._native_id:
            await self._edit(self._native_id, part)
        else:
            self._native_id = (await self._post(part)).native_id
        self._shown = part

    async def close(self) -> None:
        return
