"""A session that is left in the cache is the one that the store would give.

Covers: gateway/turns/cached_sessions.py, gateway/cluster/thread_cache.py.
"""

from __future__ import annotations

import pytest

from gateway.storage.memory import MemoryStore
from gateway.storage.ports import Lease
from gateway.turns.cached_sessions import CachedSessions
from gateway.turns.sessions import SessionState
from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.domain.conversation import Conversation, PastTurn, Source, Summary
from pipeline.domain.files import StoredFile

THREAD = "web:page:c_1"
_FILE = StoredFile(id="a" * 64, kind="image", mime="image/png", size=9, name="a.png", about="2 by 2")
_TURN = PastTurn(
    id=12,
    at=1_700_000_000.5,
    messages=(
        ChatMessage(role="user", content="look", pictures=(_FILE,), foreign="a forwarded message"),
        ChatMessage(role="assistant", content="", tool_calls=(ToolCall(id="c1", name="t", arguments="{}"),)),
        ChatMessage(
            role="tool", content="long " * 400, tool_call_id="c1", foreign="a web page", sends=(_FILE,)
        ),
        ChatMessage(role="assistant", content="Ein Öl 😀"),
    ),
    source=Source(message_id="m2", root="m1", text="look", author="ann", files=(_FILE,), attached="[a.png]"),
)
_KNOWN = Conversation(summary=Summary(text="before", upto=9, foreign="a file"), turns=(_TURN,))


class KeptTexts:
    """A cache in a dictionary."""

    def __init__(self) -> None:
        self.kept: dict[str, tuple[int, str]] = {}

    async def take(self, thread: str, fence: int) -> str | None:
        left = self.kept.pop(thread, None)
        return left[1] if left is not None and left[0] == fence else None

    async def put(self, thread: str, fence: int, text: str) -> None:
        self.kept[thread] = fence, text

    async def close(self) -> None:
        self.kept.clear()


def _lease(fence: int) -> Lease:
    return Lease(thread=THREAD, owner="me", fence=fence, expires_at=0.0)


def _session(**changes: object) -> SessionState:
    session = SessionState("ses_1", _KNOWN, stored=True, agent="helper")
    session.model, session.title = "small", "Looking"
    for name, value in changes.items():
        setattr(session, name, value)
    return session


@pytest.fixture
async def store() -> MemoryStore:
    store = MemoryStore()
    await store.open()
    return store


async def test_the_next_holder_has_the_same_session(store: MemoryStore) -> None:
    sessions = CachedSessions(store, KeptTexts())
    await sessions.leave(_lease(4), _session())
    found = await sessions.open(THREAD, _lease(5))
    assert (found.session_id, found.agent, found.model, found.title) == (
        "ses_1",
        "helper",
        "small",
        "Looking",
    )
    assert (found.stored, found.mode, found.is_whole) == (True, "normal", True)
    assert found.conversation == _KNOWN
    (turn,) = found.conversation.turns
    assert (turn.source, turn.at) == (_TURN.source, _TURN.at)
    assert turn.brief is not None
    assert turn.brief.tokens < turn.tokens


@pytest.mark.parametrize("fence", [4, 6])
async def test_another_holder_reads_the_store(store: MemoryStore, fence: int) -> None:
    sessions = CachedSessions(store, KeptTexts())
    await sessions.leave(_lease(4), _session())
    assert (await sessions.open(THREAD, _lease(fence))).session_id != "ses_1"


async def test_without_a_lease_nothing_is_taken(store: MemoryStore) -> None:
    cache = KeptTexts()
    sessions = CachedSessions(store, cache)
    await sessions.leave(_lease(4), _session())
    await sessions.open(THREAD, None)
    assert cache.kept


async def test_what_is_off_the_record_not_stored_or_not_whole_is_not_left(store: MemoryStore) -> None:
    cache = KeptTexts()
    sessions = CachedSessions(store, cache)

    async def unread() -> Conversation:
        return _KNOWN

    for session in (
        _session(mode="otr"),
        _session(stored=False),
        SessionState("ses_1", stored=True, log=unread),
    ):
        await sessions.leave(_lease(4), session)
    assert cache.kept == {}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 2}', '{"format": 1}', "null", '"x"'])
async def test_what_is_not_readable_is_not_believed(store: MemoryStore, text: str) -> None:
    cache = KeptTexts()
    await cache.put(THREAD, 4, text)
    found = await CachedSessions(store, cache).open(THREAD, _lease(5))
    assert not found.stored
