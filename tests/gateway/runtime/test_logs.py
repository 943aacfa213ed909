"""Logs carry ids and leave out secrets, no matter which logger wrote the line."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from gateway.runtime.logs import bind_ids, configure_logging, unbind_ids
from pipeline.domain.clock import ManualClock
from pipeline.redaction.known import MARK
from pipeline.redaction.redactor import Redactor

SECRET = "s3cr3t-value-of-the-page"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    out = io.StringIO()
    configure_logging(level="info", style="json", redactor=Redactor(lambda: (SECRET,)), stream=out)
    yield out
    unbind_ids()


def test_a_line_carries_the_ids_of_its_turn(lines: io.StringIO) -> None:
    bind_ids(thread_key="web:local:c1", message_id="m_1")
    logging.getLogger("gateway.turns.runner").info("turn interrupted", extra={"run_id": "run_1"})
    line = json.loads(lines.getvalue())
    assert (line["thread_key"], line["message_id"], line["run_id"]) == ("web:local:c1", "m_1", "run_1")
    assert (line["event"], line["level"], line["logger"]) == (
        "turn interrupted",
        "info",
        "gateway.turns.runner",
    )
    assert line["timestamp"].endswith("Z")


def test_a_known_secret_in_an_exception_of_a_library_is_masked(lines: io.StringIO) -> None:
    error = ConnectionError(f"GET https://api.example.org/?key={SECRET} failed")
    logging.getLogger("some.sdk").error("request failed", exc_info=error)
    text = lines.getvalue()
    assert SECRET not in text
    assert MARK in text
    assert "ConnectionError" in text


@pytest.mark.parametrize(
    "leak",
    [
        "https://api.telegram.org/file/bot123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw/voice.oga",
        "xoxb-123456789012-abcdefABCDEF",
        "xapp-1-A0123-456-abcdef",
        "sk-proj-abcdefghijklmnop1234",
        "Authorization: Bearer abcdef123456789",
    ],
)
def test_what_looks_like_a_secret_is_masked_without_being_known(lines: io.StringIO, leak: str) -> None:
    logging.getLogger("any").warning("seen %s here", leak)
    text = lines.getvalue()
    assert MARK in text
    assert leak not in text


@pytest.mark.parametrize("secret", ['quo"ted-value', "back\\slash-value", "ünïcödé-value"])
def test_a_secret_is_masked_in_the_spelling_of_a_json_line(secret: str) -> None:
    redactor = Redactor(lambda: (secret,))
    for line in (json.dumps({"event": secret}), json.dumps({"event": secret}, ensure_ascii=False)):
        assert redactor.text(line) == json.dumps({"event": "back" + MARK if secret[0] == "b" else MARK})


def test_a_traceback_for_people_shows_no_local_variables() -> None:
    out = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logging(level="info", style="console", redactor=Redactor(tuple), stream=out)
        _fails_with_a_local("what the user wrote")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    assert "ZeroDivisionError" in out.getvalue()
    assert "what the user wrote" not in out.getvalue()


def _fails_with_a_local(text: str) -> None:
    length = len(text)
    try:
        assert length / 0
    except ZeroDivisionError:
        logging.getLogger("any").exception("failed")


def test_ordinary_words_are_left_alone(lines: io.StringIO) -> None:
    logging.getLogger("any").warning("the bearer of news asks: risk-free at 12:30?")
    assert MARK not in lines.getvalue()


def test_a_secret_that_contains_another_is_masked_whole() -> None:
    redactor = Redactor(lambda: ("abcdefgh", "abcdefgh-and-more"))
    assert redactor.text("x abcdefgh-and-more y") == f"x abcd{MARK} y"


def test_a_short_value_is_not_hunted_through_every_line() -> None:
    assert Redactor(lambda: ("abcdefg",)).text("abcdefg") == "abcdefg"


def test_at_the_debug_level_the_libraries_still_only_warn() -> None:
    out = io.StringIO()
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        configure_logging(level="debug", style="json", redactor=Redactor(tuple), stream=out)
        logging.getLogger("openai._base_client").debug("Request options: what the user wrote")
        logging.getLogger("gateway.turns.worker").debug("ours")
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for package in ("gateway", "adapters", "pipeline", "voice"):
            logging.getLogger(package).setLevel(logging.NOTSET)
    assert "what the user wrote" not in out.getvalue()
    assert "ours" in out.getvalue()


def test_lines_below_the_level_are_not_written(lines: io.StringIO) -> None:
    logging.getLogger("any").debug("quiet")
    assert lines.getvalue() == ""


@pytest.mark.parametrize("name", ["event", "thread_key"])
def test_a_secret_in_a_line_of_known_fields_is_masked(lines: io.StringIO, name: str) -> None:
    words = {"event": "turn ended", "thread_key": "web:local:c1"} | {name: f"it is {SECRET}"}
    for _ in range(2):
        bind_ids(thread_key=words["thread_key"], message_id="m_1")
        logging.getLogger("gateway.turns.runner").info(words["event"], extra={"outcome": "answered"})
    assert SECRET not in lines.getvalue()
    assert lines.getvalue().count(MARK) == 2


async def test_what_was_clean_is_looked_at_again_when_a_secret_is_new() -> None:
    clock, secrets = ManualClock(), ["another-secret-value"]
    redactor = Redactor(lambda: secrets, clock=clock)
    assert [redactor.is_clean(f"web:local:{SECRET}") for _ in range(2)] == [True, True]
    secrets.append(SECRET)
    await clock.advance(2.0)
    assert not redactor.is_clean(f"web:local:{SECRET}")
