"""Answer one session's requests about its own conversations and account, one at a time.

Every request concerns the session's own person: a chat is found under that person alone, so the id of another
person's chat names nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from adapters.guests import GuestRefused, PageChats, PagePeople, Visitor, chat_of
from adapters.web import outgoing
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import thread_of
from adapters.web.person_frames import (
    AccountRequest,
    DeleteChat,
    InviteDevice,
    PersonFrame,
    RenameChat,
    RenamePerson,
    SignOut,
)
from adapters.web.protocol import FrameProblem
from adapters.web.shared import CHAT_DELETED, SIGNED_OUT, Shared, problem_of

_OWNER = (
    "you are the owner of this bot: your devices share its access token, and `parlour link` shows the link "
    "for another one"
)
_BUSY = "another change is being made just now; try again when that is done"
_NO_CHATS = "conversations cannot be changed now; try again in a moment"


class PersonRequests:
    """Answers one client's requests. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._task: asyncio.Task[None] | None = None

    def start(self, frame: PersonFrame) -> None:
        """Carry the request out; its answer or a problem follows."""
        if self._task is not None and not self._task.done():
            self._session.report(FrameProblem(code="busy", message=_BUSY), frame.client_id)
            return
        self._task = self._group.create_task(self._answered(frame.client_id, self._carry_out(frame)))

    async def _answered(self, client_id: str, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except GuestRefused as refused:
            self._session.report(FrameProblem(code="refused", message=str(refused)), client_id)
        except Exception as error:  # noqa: BLE001 - a request that fails must not close the chat
            self._session.report(problem_of("changing a chat or an account", error), client_id)

    async def _carry_out(self, frame: PersonFrame) -> None:
        match frame:
            case RenameChat() | DeleteChat():
                chats = self._shared.chats
                if chats is None:
                    raise GuestRefused(_NO_CHATS)
                await self._change_chat(chats, frame)
            case AccountRequest():
                await self._send_account(frame.client_id)
            case RenamePerson():
                await self._people().rename(self._visitor, frame.name)
                await self._send_account(frame.client_id)
            case InviteDevice():
                invitation, expires_at = await self._people().invite_device(self._visitor)
                self._send(outgoing.invitation_frame(frame.client_id, invitation, expires_at))
            case SignOut():
                await self._people().sign_out(self._visitor, frame.device)
                await self._send_account(frame.client_id)
                self._shared.hub.end_devices({frame.device}, SIGNED_OUT)

    async def _change_chat(self, chats: PageChats, frame: RenameChat | DeleteChat) -> None:
        chat = chat_of(self._visitor, frame.chat)
        if isinstance(frame, RenameChat):
            await chats.rename(thread_of(chat), frame.title)
            self._shared.hub.tell(chat, outgoing.chat_renamed_frame(None, chat, frame.title))
            self._send(outgoing.chat_renamed_frame(frame.client_id, chat, frame.title))
            return
        await chats.delete(thread_of(chat))
        self._send(outgoing.chat_deleted_frame(frame.client_id, chat))
        self._shared.hub.end_chat(chat, CHAT_DELETED)

    async def _send_account(self, client_id: str) -> None:
        people = self._shared.people
        if people is None:
            raise GuestRefused(_OWNER)
        account = await people.account(self._visitor)
        self._send(outgoing.account_frame(client_id, self._visitor, account))

    def _people(self) -> PagePeople:
        people = self._shared.people
        if people is None or not self._visitor.person:
            raise GuestRefused(_OWNER)
        return people

    @property
    def _visitor(self) -> Visitor:
        return self._session.visitor

    def _send(self, frame: outgoing.Frame) -> None:
        self._session.deliver(OutgoingFrame(frame=frame))
