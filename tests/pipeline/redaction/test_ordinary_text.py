"""Ordinary text is left as it is, and not held back."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ErrorEvent, LlmToken, ResponseComplete, Thought
from pipeline.redaction.redactor import Redactor
from tests.support.tables import each

KEY = "ghp_" + "a1B2c3D4" * 5
ORDINARY = (
    "The bearer of news asks: risk-free at 12:30? My password is safe with the token ring.",
    "commit 98261a2f4c1d3e5b7a9086fedcba9876543210ab on main; sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4",
    "id 550e8400-e29b-41d4-a716-446655440000 at 1700000000:550e8400-e29b-41d4-a716-446655440000",
    "https://example.org:8443/a/b?page=2&sort=name#part and http://localhost:8765/ by me@example.org",
    "def login(user: str, password: str, token: str | None = None) -> T:\n    return T(password=password)",
    "api_key=os.environ['API_KEY_1']; token = secrets.token_hex(16); password = getpass1(); pwd=$PWD",
    'api_key = "env:PARLOUR_KEY_1"\ntoken = "file:/run/secrets/bot1"\nmax_tokens=20000000\ntokens: 12345678',
    "A PEM file begins with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----; you know.",
    'class="sk-loading-indicator-wrapper task-list" Bearer tokens and basic authentication',
    "Ein Wort wie Donaudampfschifffahrtsgesellschaftskapitän, 日本語の文章、 and ends with a dash --",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 40,
)


@each("text", ORDINARY)
def test_ordinary_text_is_untouched(text: str) -> None:
    redactor = Redactor(lambda: ("a-configured-secret",))
    assert redactor.text(text) == text
    stream = redactor.stream()
    assert "".join(map(stream.feed, text)) + stream.finish() == text


@pytest.mark.parametrize("folder", ["pipeline/domain", "pipeline/graph", "gateway/storage"])
def test_programs_are_untouched(folder: str) -> None:
    redactor = Redactor()
    for path in Path(folder).rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert redactor.text(text) == text, path


def test_no_more_than_the_last_word_is_held_back() -> None:
    stream, shown = Redactor(lambda: ("a-configured-secret",)).stream(), ""
    text = "The quick brown fox jumps over the lazy dog, then rests. 犬は寝ています。 End"
    for at, character in enumerate(text, 1):
        shown += stream.feed(character)
        assert len(shown) >= len(text[:at].rpartition(" ")[0]) - 1
    assert text.startswith(shown)


def test_a_script_without_spaces_is_shown_at_once() -> None:
    stream = Redactor().stream()
    assert stream.feed("犬は寝ています") == "犬は寝ています"


async def test_the_values_are_looked_up_again_and_old_ones_stay() -> None:
    known = ["the-first-secret-value"]
    clock = ManualClock()
    redactor = Redactor(lambda: tuple(known), clock=clock)
    assert redactor.text("the-first-secret-value") == "the-[REDACTED]"
    known[:] = ["the-second-secret-value"]
    await clock.advance(6)
    assert redactor.text("the-second-secret-value the-first-secret-value") == "the-[REDACTED] the-[REDACTED]"


def test_what_is_asked_for_while_another_thread_looks_them_up_is_redacted_as_well() -> None:
    looking, looked = threading.Event(), threading.Event()

    def known() -> tuple[str, ...]:
        if not looking.is_set():
            looking.set()
            looked.wait(60)
        return ("tiger-burning-bright",)

    redactor = Redactor(known)
    other = threading.Thread(target=redactor.text, args=("in a file",))
    other.start()
    try:
        assert looking.wait(60)
        assert redactor.text("tiger-burning-bright") == "tige[REDACTED]"
    finally:
        looked.set()
        other.join()


def test_a_persons_own_words_lose_only_what_is_configured() -> None:
    redactor = Redactor(lambda: ("a-configured-secret",))
    assert redactor.configured(f"a-configured-secret and {KEY}") == f"a-co[REDACTED] and {KEY}"


def test_events_and_messages_are_redacted_in_every_text() -> None:
    redactor = Redactor()
    ids = {"session_id": "s", "message_id": "m"}
    thought = Thought(stage="tool_call", summary=f"x {KEY}", detail={"args": {"a": [KEY]}, "success": True})
    event = redactor.event(ResponseComplete(**ids, content=f"your {KEY}", thoughts=(thought,), entry_id=3))
    assert (event.content, event.entry_id) == ("your ghp_[REDACTED]", 3)
    assert event.thoughts[0].summary == "x ghp_[REDACTED]"
    assert event.thoughts[0].detail == {"args": {"a": ["ghp_[REDACTED]"]}, "success": True}
    error = redactor.event(
        ErrorEvent(session_id="s", message_id="m", code="x", message=KEY, recoverable=True)
    )
    assert error.message == "ghp_[REDACTED]"
    token = LlmToken(**ids, text=KEY, offset=0)
    assert redactor.event(token) is token
    call = ToolCall(id="1", name="web", arguments=f'{{"token": "{KEY}"}}')
    message = redactor.message(ChatMessage(role="assistant", content=KEY, tool_calls=(call,)))
    assert message.content == "ghp_[REDACTED]"
    assert message.tool_calls[0].arguments == '{"token": "[REDACTED]"}'
