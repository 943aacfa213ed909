"""Process one authenticated client's frames: frames in, acceptances and problems out. It reads no socket.

Every frame gets exactly one answer. A `voice` frame is answered after its audio, `live_start`
and `speak` when they are ready (microphone.py, tts_requests.py), and the audio of an open
microphone by its transcript.
"""

from __future__ import annotations

import asyncio
from typing import assert_never

from adapters.channel import Acceptance
from adapters.web import outgoing
from adapters.web.feedback import FeedbackFrame
from adapters.web.history_requests import LookingBack
from adapters.web.hub import OutgoingFrame, Session
from adapters.web.inbound import to_inbound, voice_to_inbound
from adapters.web.microphone import WebMicrophone
from adapters.web.person_frames import (
    AccountRequest,
    ChatsRequest,
    DeleteChat,
    InviteDevice,
    PersonFrame,
    RenameChat,
    RenamePerson,
    SignOut,
)
from adapters.web.person_requests import PersonRequests
from adapters.web.protocol import (
    ApprovalFrame,
    ClientFrame,
    CommandFrame,
    EarlierRequest,
    FrameProblem,
    Hello,
    LiveFinish,
    LiveStart,
    LiveStop,
    Ping,
    Speak,
    SpeakAlong,
    SpeakStop,
    TextMessage,
    VoiceAnnouncement,
    parse_frame,
)
from adapters.web.shared import UNAVAILABLE, Shared, problem_of
from adapters.web.tts_requests import TtsRequests
from adapters.web.visitors import end_of
from adapters.web.workflow_frames import (
    WorkflowAnswer,
    WorkflowCheck,
    WorkflowDelete,
    WorkflowList,
    WorkflowOpen,
    WorkflowRunList,
    WorkflowRunState,
    WorkflowSave,
    WorkflowStart,
)
from adapters.web.workflow_requests import WorkflowRequests
from pipeline.domain.errors import StorageError
from pipeline.domain.messages import Inbound, InboundMessage


def parse_text(shared: Shared, raw: str) -> ClientFrame | FrameProblem:
    """The frame in a text frame, or the problem with it, its size included."""
    limit = shared.settings.text_frame_bytes
    if len(raw) > limit or len(raw.encode()) > limit:
        return FrameProblem(code="bad_frame", message=f"frame: longer than {limit} bytes of text")
    return parse_frame(raw, shared.limits)


class Intake:
    """One session's incoming side. Work that takes longer than a frame runs in `group`, until `hang_up`."""

    def __init__(self, shared: Shared, session: Session, group: asyncio.TaskGroup) -> None:
        self._shared = shared
        self._session = session
        self._microphone = WebMicrophone(shared, session, group)
        self._reading = TtsRequests(shared, session, group)
        self._looking_back = LookingBack(shared, session, group)
        self._person = PersonRequests(shared, session, group)
        self._workflows = WorkflowRequests(shared, session, group)
        self._announced: VoiceAnnouncement | None = None
        self._swallow_binary = False

    def hang_up(self) -> None:
        """The client is gone: close the microphone, and stop reading aloud."""
        self._microphone.hang_up()
        self._reading.hang_up()
        self._looking_back.hang_up()

    async def take_text(self, raw: str) -> None:
        """Handle one text frame."""
        self._swallow_binary = False
        if self._announced is not None:
            announced, self._announced = self._announced, None
            words = f"size: {announced.size} bytes of audio were announced, a text frame came instead"
            self._session.report(FrameProblem(code="voice_size_mismatch", message=words), announced.client_id)
        frame = parse_text(self._shared, raw)
        problem = await end_of(self._shared, self._session)
        if problem is not None:
            self._refuse(problem, frame)
        elif isinstance(frame, TextMessage):  # what most frames are
            await self._take_item(frame)
        else:
            await self._take(frame)

    async def _take(self, frame: ClientFrame | FrameProblem) -> None:
        match frame:
            case FrameProblem():
                self._swallow_binary = frame.swallow_binary
                self._session.report(frame, frame.client_id)
            case Hello():
                self._session.report(
                    FrameProblem(code="hello_twice", message="hello was already accepted"), None
                )
            case Ping():
                self._session.deliver(OutgoingFrame(frame=outgoing.pong_frame()))
            case VoiceAnnouncement():
                self._take_announcement(frame)
            case LiveStart():
                self._microphone.start(frame)
            case LiveFinish():
                self._microphone.finish()
            case LiveStop():
                self._microphone.stop()
            case (
                Speak()
                | SpeakAlong()
                | SpeakStop()
                | EarlierRequest()
                | ChatsRequest()
                | RenameChat()
                | DeleteChat()
                | AccountRequest()
                | RenamePerson()
                | InviteDevice()
                | SignOut()
            ):
                self._take_wish(frame)
            case (
                WorkflowList()
                | WorkflowOpen()
                | WorkflowCheck()
                | WorkflowSave()
                | WorkflowDelete()
                | WorkflowStart()
                | WorkflowRunList()
                | WorkflowRunState()
                | WorkflowAnswer()
            ):
                self._workflows.start(frame)
            case _:
                await self._take_item(frame)

    async def take_binary(self, content: bytes) -> None:
        """Handle one binary frame: announced audio, the open microphone's audio, or a mistake."""
        announced, self._announced = self._announced, None
        if self._swallow_binary:
            # The audio of a refused announcement; the refusal was already reported.
            self._swallow_binary = False
        elif announced is None and self._microphone.takes_sound:
            self._microphone.feed(content)
        elif announced is None:
            words = "a binary frame must follow a voice frame at once; it was discarded"
            self._session.report(FrameProblem(code="unexpected_binary", message=words), None)
        elif len(content) != announced.size:
            words = f"size: {announced.size} bytes of audio were announced, {len(content)} came"
            self._session.report(FrameProblem(code="voice_size_mismatch", message=words), announced.client_id)
        else:
            await self._submit_voice(announced, content)

    async def _take_item(self, frame: TextMessage | CommandFrame | ApprovalFrame | FeedbackFrame) -> None:
        item = to_inbound(self._session.chat, frame, received_at=self._shared.clock.now())
        acceptance = await self._submit(frame.client_id, item)
        if acceptance is not None and acceptance.status != "refused" and isinstance(item, InboundMessage):
            # The turn of the message removes its uploads.
            await self._shared.media.claim([file.handle for file in item.attachments])

    def _refuse(self, problem: FrameProblem, frame: ClientFrame | FrameProblem) -> None:
        """Answer a frame of a session that may do nothing, and close it, unless that cannot be known now."""
        if problem.close_code is None:
            self._session.report(problem, getattr(frame, "client_id", None))
            return
        self._session.report(problem, None)
        self._session.end(problem.close_code)

    def _take_wish(
        self, frame: Speak | SpeakAlong | SpeakStop | EarlierRequest | ChatsRequest | PersonFrame
    ) -> None:
        match frame:
            case Speak() | SpeakAlong():
                self._reading.start(frame)
            case SpeakStop():
                self._reading.stop()
            case EarlierRequest():
                self._looking_back.earlier(frame)
            case ChatsRequest():
                self._looking_back.chats(frame)
            case _:
                self._person.start(frame)

    def _take_announcement(self, frame: VoiceAnnouncement) -> None:
        if self._shared.settings.voice_enabled:
            self._announced = frame
            return
        self._swallow_binary = True
        self._session.report(
            FrameProblem(code="voice_disabled", message="voice notes are switched off"), frame.client_id
        )

    async def _submit_voice(self, announced: VoiceAnnouncement, content: bytes) -> None:
        try:
            ref = await self._shared.media.store(content, mime=announced.mime, chat=self._session.chat)
        except StorageError as error:
            self._session.report(problem_of("storing a voice note", error), announced.client_id)
            return
        now = self._shared.clock.now()
        item = voice_to_inbound(self._session.chat, announced.client_id, ref, received_at=now)
        acceptance = await self._submit(announced.client_id, item)
        if acceptance is None or acceptance.status == "accepted":
            # Without an answer it is unknown whether the message counts: the sweep removes the file.
            return
        try:
            await self._shared.media.discard(ref)
        except StorageError as error:
            problem_of("removing a voice note", error)

    async def _submit(self, client_id: str, item: Inbound) -> Acceptance | None:
        on_inbound = self._shared.on_inbound
        if on_inbound is None:
            self._session.report(UNAVAILABLE, client_id)
            return None
        try:
            acceptance = await on_inbound(item)
        except Exception as error:  # noqa: BLE001 - one bad message must not take the connection down
            self._session.report(problem_of("taking in a message", error), client_id)
            return None
        match acceptance.status:
            case "accepted" | "duplicate":
                frame = outgoing.accepted_frame(
                    client_id=client_id,
                    message_id=acceptance.message_id,
                    duplicate=acceptance.status == "duplicate",
                )
                self._session.deliver(OutgoingFrame(frame=frame))
            case "refused":
                words = acceptance.reason or "the gateway does not take this message"
                self._session.report(FrameProblem(code="refused", message=words), client_id)
            case _ as unknown:
                assert_never(unknown)
        return acceptance
