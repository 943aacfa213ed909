"""Answer one session's requests to the workflow editor. Each is refused unless its person may edit now.

A run is found under the session's own person, as a chat is. What a run does is a message of that person, in a
separate conversation: `Intake` takes in its answers like those of any other conversation.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from typing import Final

from adapters.channel import Acceptance
from adapters.guests import Visitor, chat_of
from adapters.identity import derived_message_id
from adapters.web import outgoing
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import author_of, thread_of
from adapters.web.protocol import FrameProblem
from adapters.web.settings import ACCOUNT, CHANNEL
from adapters.web.shared import UNAVAILABLE, Shared, problem_of
from adapters.web.workflow_frames import (
    WorkflowAnswer,
    WorkflowCheck,
    WorkflowDelete,
    WorkflowFrame,
    WorkflowList,
    WorkflowOpen,
    WorkflowRunList,
    WorkflowRunState,
    WorkflowSave,
    WorkflowStart,
)
from adapters.workflow_editor import EditRefused, WorkflowEditor
from pipeline.domain.messages import ApprovalReply, Inbound, InboundMessage

_AT_ONCE: Final = 8
_BUSY = "too many requests to the editor are being answered; try again in a moment"
_NOT_ALLOWED = (
    "workflows cannot be edited here; the owner of this bot names those who may (channels.web.editor)"
)


async def may_edit(shared: Shared, visitor: Visitor) -> bool:
    """Whether the visitor may use the editor now. Raises StorageError."""
    return shared.editor is not None and await shared.editor.may_edit(visitor)


class WorkflowRequests:
    """Answers one client's requests. No method waits."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, frame: WorkflowFrame) -> None:
        """Carry the request out; its answer or a problem follows."""
        if len(self._tasks) >= _AT_ONCE:
            self._session.report(FrameProblem(code="busy", message=_BUSY), frame.client_id)
            return
        task = self._group.create_task(self._answered(frame.client_id, self._carry_out(frame)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, client_id: str, work: Coroutine[None, None, None]) -> None:
        try:
            await work
        except EditRefused as refused:
            self._session.report(FrameProblem(code=refused.code, message=str(refused)), client_id)
        except Exception as error:  # noqa: BLE001 - a request that fails must not close the chat
            self._session.report(problem_of("editing a workflow", error), client_id)

    async def _carry_out(self, frame: WorkflowFrame) -> None:
        editor = self._shared.editor
        if editor is None or not await editor.may_edit(self._session.visitor):
            raise EditRefused("refused", _NOT_ALLOWED)
        match frame:
            case WorkflowStart():
                await self._begin(editor, frame)
            case WorkflowAnswer():
                await self._answer(editor, frame)
            case WorkflowRunList(name=name):
                runs = await editor.runs(name, self._session.visitor)
                self._send("workflow_runs", frame.client_id, runs=runs)
            case WorkflowRunState(chat=chat, seen=seen):
                found = await editor.run(thread_of(chat_of(self._session.visitor, chat)), seen)
                self._send("workflow_run", frame.client_id, chat=chat, **found)
            case _:
                await self._edit(editor, frame)

    async def _edit(
        self,
        editor: WorkflowEditor,
        frame: WorkflowList | WorkflowOpen | WorkflowCheck | WorkflowSave | WorkflowDelete,
    ) -> None:
        key = frame.client_id
        match frame:
            case WorkflowList():
                self._send("workflows", key, documents=await editor.documents())
            case WorkflowOpen(name=name, version=version):
                self._send("workflow", key, **await editor.document(name, version))
            case WorkflowCheck(document=document):
                self._send("workflow_checked", key, mistakes=editor.check(document))
            case WorkflowSave(name=name, document=document, base=base):
                self._send("workflow_saved", key, **await editor.save(name, document, base))
            case WorkflowDelete(name=name, base=base):
                await editor.delete(name, base)
                self._send("workflow_deleted", key, name=name)

    async def _begin(self, editor: WorkflowEditor, frame: WorkflowStart) -> None:
        """Begin a run. A frame that is repeated names the same conversation, so it begins one run."""
        visitor = self._session.visitor
        self._require_short("text", frame.text)
        digest = hashlib.sha256(f"{visitor.person}:{frame.client_id}".encode()).hexdigest()
        chat = chat_of(visitor, f"c_{digest[:32]}")
        native_id = f"{chat}:{frame.client_id}"
        message_id = derived_message_id(CHANNEL, ACCOUNT, native_id)
        workflow = await editor.begin(thread_of(chat), message_id, frame.name, frame.version)
        message = InboundMessage(
            message_id=message_id,
            native_id=native_id,
            thread=thread_of(chat),
            author=author_of(chat),
            received_at=self._shared.clock.now(),
            text=frame.text,
            workflow=workflow,
        )
        await self._submit(message)
        if self._shared.chats is not None:
            await self._shared.chats.rename(thread_of(chat), frame.name)
        self._send("workflow_started", frame.client_id, chat=f"c_{digest[:32]}", message_id=message_id)

    async def _answer(self, editor: WorkflowEditor, frame: WorkflowAnswer) -> None:
        self._require_short("note", frame.note)
        chat = chat_of(self._session.visitor, frame.chat)
        await editor.run(thread_of(chat), 0)
        native_id = f"{chat}:{frame.client_id}"
        reply = ApprovalReply(
            message_id=derived_message_id(CHANNEL, ACCOUNT, native_id),
            native_id=native_id,
            thread=thread_of(chat),
            author=author_of(chat),
            received_at=self._shared.clock.now(),
            interaction_id=frame.interaction,
            choice=frame.choice,
            note=frame.note,
        )
        await self._submit(reply)
        self._send("workflow_answered", frame.client_id, chat=frame.chat)

    def _require_short(self, field: str, text: str) -> None:
        limit = self._shared.limits.text_chars
        if len(text) > limit:
            words = f"{field}: {len(text)} characters, the limit is {limit}; write less"
            raise EditRefused("text_too_long", words)

    async def _submit(self, item: Inbound) -> None:
        """Take the item in. Raises EditRefused if it is not accepted."""
        on_inbound = self._shared.on_inbound
        if on_inbound is None:
            raise EditRefused(UNAVAILABLE.code, UNAVAILABLE.message)
        acceptance: Acceptance = await on_inbound(item)
        if acceptance.status == "refused":
            raise EditRefused("refused", acceptance.reason or "the gateway does not take this message")

    def _send(self, kind: str, client_id: str, **fields: object) -> None:
        self._session.deliver(OutgoingFrame(frame=outgoing.workflow_frame(kind, client_id, fields)))
