"""Answers as HTML: which frames carry it, that it is made once, and that a faulty renderer harms no one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from adapters.web.html_cache import HtmlCache
from adapters.web.hub import Hub
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import LlmToken
from pipeline.domain.timeline import EntryRole
from tests.adapters.web.harness import CHAT, WebHarness, serving
from tests.adapters.web.test_live import THREAD, complete, line, reply


class CountingRenderer:
    """Notes what it was asked to render."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, markdown: str) -> str:
        self.asked.append(markdown)
        return f"<p>{len(markdown)}</p>"


async def test_answers_carry_html_and_nothing_else_does(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    roles: tuple[EntryRole, ...] = ("user", "assistant", "notice", "error", "session")
    for number, role in enumerate(roles, 1):
        harness.timeline.add(THREAD, line(number, f"m_{role}", role, "so **loud**"))
    async with serving(harness) as browser:
        page, frames = await browser.open()
        sender = harness.adapter.sender_for(THREAD)
        await sender.send_event(LlmToken(session_id="s", message_id="m_9", text="so **loud**", offset=0))
        await sender.send_event(complete("m_9", "so **loud**", 9))
        await harness.adapter.send(reply(9, "m_9", "so **loud**"))
        token, terminal, entry = await page.ping()
    carried = {frame["role"]: frame["html"] for frame in frames if "html" in frame}
    assert list(carried) == ["assistant"]
    assert "<strong>loud</strong>" in carried["assistant"]
    assert "html" not in token["event"]
    assert terminal["event"]["html"] == entry["html"] == carried["assistant"]
    assert terminal["event"]["content"] == entry["text"] == "so **loud**"


async def test_hostile_markdown_comes_as_escaped_html_over_the_socket(tmp_path: Path) -> None:
    harness = WebHarness(tmp_path)
    hostile = "<img src=x onerror=pwned()> [x](javascript:pwned()) \ud800"
    harness.timeline.add(THREAD, line(1, "m_1", "assistant", hostile))
    async with serving(harness) as browser:
        _, frames = await browser.open()
    html = frames[1]["html"]
    assert "<img" not in html
    assert "href" not in html
    assert "&lt;img" in html


def test_an_answer_is_rendered_once_however_many_read_it() -> None:
    renderer = CountingRenderer()
    answers = HtmlCache(renderer)
    for _ in range(5):
        assert answers.html_of("words") == "<p>5</p>"
    assert answers.html_of("") == ""
    assert renderer.asked == ["words"]


def test_the_memory_is_bounded_and_forgets_what_was_read_longest_ago() -> None:
    renderer = CountingRenderer()
    answers = HtmlCache(renderer, kept_chars=60)
    for text in ("a" * 10, "b" * 10, "a" * 10, "c" * 10, "d" * 100, "a" * 10):
        answers.html_of(text)
    assert [text[0] for text in renderer.asked] == ["a", "b", "c", "d", "a"]
    assert [len(text) for text in renderer.asked] == [10, 10, 10, 100, 10]


async def test_the_readers_of_a_chat_share_one_rendering_of_its_event_and_its_line() -> None:
    renderer = CountingRenderer()
    hub = Hub(max_per_chat=10, rendered=HtmlCache(renderer), clock=ManualClock())
    readers = [hub.join(CHAT) for _ in range(3)]
    hub.event(THREAD, complete("m_1", "once", 1))
    hub.entry(THREAD, line(1, "m_1", "assistant", "once"))
    queued = [reader.queue.take_all() for reader in readers if reader is not None]
    assert [len(frames) for frames in queued] == [2, 2, 2]
    event, entry = queued[0]
    assert event.frame["event"]["html"] == entry.frame["html"] == "<p>4</p>"
    assert renderer.asked == ["once"]


def test_an_answer_that_cannot_be_rendered_has_no_html_and_its_words_stay_out_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(markdown: str) -> str:
        raise ValueError(markdown)

    with caplog.at_level(logging.ERROR):
        assert HtmlCache(broken).html_of("a secret") == ""
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
