"""Who a token signs in, and whether an open socket may still do anything."""

from __future__ import annotations

from adapters.guests import Visitor
from adapters.web.hub import Session
from adapters.web.inbound import thread_of
from adapters.web.protocol import FrameProblem
from adapters.web.shared import CHAT_DELETED, SIGNED_OUT, Shared, problem_of


async def visitor_of(shared: Shared, token: str) -> Visitor | None:
    """The person and the device with that token; None for a wrong one. Raises StorageError."""
    if shared.settings.token_check(token):
        return Visitor()
    return None if shared.people is None else await shared.people.sign_in(token)


async def end_of(shared: Shared, session: Session) -> FrameProblem | None:
    """Why the session may do nothing more: its device is signed out, or its chat deleted. None while
    it may. A socket is closed soon after a removal; until then this refuses its frames.
    """
    # First: the chats of a removed person are deleted too.
    if session.visitor.person:
        try:
            known = shared.people is not None and await shared.people.is_signed_in(session.visitor)
        except Exception as error:  # noqa: BLE001 - what cannot be checked is refused, and the client may reconnect
            return problem_of("looking for a signed-in device", error)
        if not known:
            return SIGNED_OUT
    deleted = shared.chats is not None and shared.chats.is_deleted(thread_of(session.chat))
    return CHAT_DELETED if deleted else None
