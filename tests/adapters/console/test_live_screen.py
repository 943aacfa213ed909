"""Answers above a line editor: whole lines only, block by block, once; and the line of progress."""

from __future__ import annotations

from collections.abc import Callable

from adapters.console.live_screen import LiveScreen
from pipeline.domain.clock import ManualClock


class Paper:
    """A terminal that keeps what was printed."""

    def __init__(self) -> None:
        self.text = ""
        self.status: Callable[[], str] = str
        self.columns = 40

    def write(self, text: str) -> None:
        assert text.endswith("\n")
        self.text += text

    def refresh(self) -> None:
        """Nothing is drawn here."""


def _screen() -> tuple[LiveScreen, Paper, ManualClock]:
    paper, clock = Paper(), ManualClock()
    return LiveScreen(paper, clock, bot_name="Bot", prompt="you: "), paper, clock


_BOT = "\x1b[1mBot:\x1b[22m "


def _stream(screen: LiveScreen, *pieces: str) -> str:
    written = ""
    for piece in pieces:
        screen.token("m", piece, len(written))
        written += piece
    return written


def test_finished_blocks_are_printed_and_the_unfinished_one_is_the_status() -> None:
    screen, paper, _ = _screen()
    text = _stream(screen, "Some **bold", "** words.\n", "\nAnd mo", "re")
    assert paper.text == f"{_BOT}Some \x1b[1mbold\x1b[22m words.\n"
    assert paper.status() == "And more"
    screen.answer("m", text)
    assert paper.text == f"{_BOT}Some \x1b[1mbold\x1b[22m words.\n\nAnd more\n"
    assert paper.status() == ""


def test_an_answer_that_is_another_than_its_stream_is_printed_whole() -> None:
    screen, paper, _ = _screen()
    _stream(screen, "draft")
    screen.answer("m", "final")
    assert paper.text == f"{_BOT}final\n"


def test_a_piece_after_a_gap_waits_for_the_final_text() -> None:
    screen, paper, _ = _screen()
    screen.token("m", "one ", 0)
    screen.token("m", "three", 8)
    assert paper.status() == "Bot: one "
    screen.answer("m", "one two three")
    assert paper.text == f"{_BOT}one two three\n"


def test_a_step_and_a_notice_leave_the_answer_whole() -> None:
    screen, paper, _ = _screen()
    text = _stream(screen, "I look", " it up.")
    screen.aside("  · read: a.txt")
    screen.line("notice \x1b[2J")
    screen.answer("m", text)
    assert paper.text == f"\x1b[2m  · read: a.txt\x1b[22m\nnotice \\x1b[2J\n{_BOT}I look it up.\n"


async def test_the_status_says_for_how_long_an_answer_is_waited_for_and_fits_in_the_line() -> None:
    screen, paper, clock = _screen()
    assert paper.status() == ""
    screen.waiting(waits=True)
    await clock.advance(3.0)
    assert paper.status() == "Bot is working · 3 s"
    _stream(screen, "x" * 90 + "\x1b")
    assert len(paper.status()) <= 40
    assert "\x1b" not in paper.status()
    screen.answer("m", "done")
    screen.waiting(waits=False)
    assert paper.status() == ""
