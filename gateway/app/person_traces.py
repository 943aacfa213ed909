"""Build what an erasure of a person removes outside the store's tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from gateway.app.components import Foundation
from gateway.app.tools import SharedTools
from gateway.ingress.full_erasure import PersonTraces
from gateway.ingress.room_history import ChannelRooms
from gateway.storage.identities import Identity
from gateway.turns.sessions import SessionState, read_again
from pipeline.domain.ids import ThreadKey


def build_traces(
    base: Foundation,
    tools: SharedTools,
    rooms: ChannelRooms,
    discard_files: Callable[[ThreadKey], Awaitable[None]],
    discard_uploads: Callable[[str], Awaitable[None]],
) -> PersonTraces:
    """Build it; the two functions are those of deleted conversations."""

    def forget_people(identities: Collection[Identity]) -> None:
        base.people.forget(identities)
        rooms.forget(identities)

    def forget_session(session: object) -> None:
        if isinstance(session, SessionState):
            session.forget()

    def again(thread: str, session: object) -> None:
        if isinstance(session, SessionState):
            read_again(base.store, thread, session)

    return PersonTraces(
        discard_files=discard_files,
        discard_notes=tools.discard,
        forget_changes=tools.forgetting.of_owner,
        discard_uploads=discard_uploads,
        write_usage=tools.budgets.flush,
        forget_people=forget_people,
        forget_session=forget_session,
        read_again=again,
    )
