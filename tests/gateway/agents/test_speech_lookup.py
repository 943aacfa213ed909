"""The speech settings of the agent of an answer: from the log, else from the session and the routes.

Covers: gateway/agents/speech_lookup.py.
"""

from __future__ import annotations

from typing import NoReturn

import pytest

from gateway.agents.routes import AgentRoutes
from gateway.agents.speech_lookup import SpeechLookup
from gateway.config import AgentSpeech, RouteSettings
from gateway.storage.log_records import session_body, user_body
from gateway.storage.memory import MemoryStore
from gateway.storage.ports import NewRecord, RecordKind
from pipeline.domain.ids import ThreadKey
from pipeline.runtime.ports import UserWords

HERE = ThreadKey(channel="telegram", account="main", chat="1")
GERMAN, FRENCH = AgentSpeech(language="de"), AgentSpeech(language="fr", voice="fr_FR-siwis-low")
ROUTES = AgentRoutes((RouteSettings(also=("shop",)),))


async def logged(*records: tuple[RecordKind, str, dict[str, object]]) -> MemoryStore:
    """A store with these records of the thread: kind, message and body."""
    store = MemoryStore()
    await store.open()
    lease = await store.acquire_lease(HERE.encode(), "o", ttl_s=10.0, now=0.0)
    assert lease is not None
    for kind, message_id, body in records:
        record = NewRecord(kind=kind, session_id="ses_1", message_id=message_id, body=body, at=0.0)
        await store.append(lease, [record])
    return store


async def test_the_agent_that_the_words_name_gave_the_answer() -> None:
    store = await logged(
        ("user", "m_1", user_body(UserWords(text="bonjour"), "shop")),
        ("user", "m_2", user_body(UserWords(text="hallo"), "")),
        ("user", "m_3", user_body(UserWords(text="ciao"), "removed")),
    )
    speech_of = SpeechLookup({"default": GERMAN, "shop": FRENCH}, ROUTES, store)
    found = [
        await speech_of(HERE, "ann", private=True, message_id=message_id)
        for message_id in ("m_1", "m_2", "m_3", "m_4")
    ]
    assert found == [FRENCH, GERMAN, GERMAN, GERMAN]


@pytest.mark.parametrize(("chosen", "expected"), [("shop", FRENCH), ("", GERMAN), ("other", GERMAN)])
async def test_before_the_words_are_recorded_the_session_and_the_routes_decide(
    chosen: str, expected: AgentSpeech
) -> None:
    store = await logged(("session", "m_0", session_body("", "normal", chosen)))
    agents = {"default": GERMAN, "shop": FRENCH, "other": AgentSpeech(language="it")}
    assert await SpeechLookup(agents, ROUTES, store)(HERE, "ann", private=True) == expected


async def test_where_all_agents_speak_alike_nothing_is_read() -> None:
    class Unread:
        async def current_session(self, thread: str) -> NoReturn:
            raise AssertionError(thread)

        async def read_log(self, thread: str, **_criteria: object) -> NoReturn:
            raise AssertionError(thread)

    speech_of = SpeechLookup({"default": GERMAN, "shop": AgentSpeech(language="de")}, ROUTES, Unread())
    assert await speech_of(HERE, "ann", private=True, message_id="m_1") == GERMAN
