"""The judge of the kill runs, given broken histories on purpose: each kind of damage is seen."""

from __future__ import annotations

from pathlib import Path

from tests.support.kill_ledger import ChatHistory, Verdict, judge
from tests.support.killed_graph import Ledger, whole_lines
from tests.support.web_client import Frame, Line, Seen

_SENT = {"a": "first", "b": "second"}
_EXPECTED = {"a": "You said: first", "b": "You said: second"}


def _line(entry_id: int, message_id: str, text: str) -> Line:
    return Line(entry_id=entry_id, message_id=message_id, role="assistant", text=text)


_FIRST, _SECOND = _line(2, "m_a", "You said: first"), _line(4, "m_b", "You said: second")


def _judged(*final: Line, also_seen: tuple[Frame, ...] = (), sent: dict[str, str] | None = None) -> Verdict:
    seen = Seen()
    for client_id in _SENT:
        seen.note(_accepted(client_id, f"m_{client_id}"))
    for frame in also_seen:
        seen.note(frame)
    return judge([ChatHistory(sent=sent or _SENT, expected=_EXPECTED, seen=seen, final=final)])


def _accepted(client_id: str, message_id: str) -> Frame:
    return {"type": "accepted", "client_id": client_id, "message_id": message_id, "duplicate": False}


def _completed(message_id: str, entry_id: int, content: str) -> Frame:
    event = {
        "type": "response_complete",
        "message_id": message_id,
        "entry_id": entry_id,
        "content": content,
    }
    return {"type": "event", "event": event}


def test_a_sound_history_breaks_nothing() -> None:
    verdict = _judged(_FIRST, _SECOND, also_seen=(_completed("m_a", 2, "You said: first"),))
    assert verdict == Verdict(accepted=2)
    assert verdict.broken == {}


def test_an_accepted_message_without_an_answer_is_lost() -> None:
    assert _judged(_FIRST).broken == {"lost": 1}


def test_two_answers_to_one_message_count_as_answered_twice() -> None:
    again = _line(6, "m_a", "You said: first")
    assert _judged(_FIRST, _SECOND, again).broken == {"answered_twice": 1}


def test_an_answer_that_was_replaced_on_the_way_counts_as_answered_twice() -> None:
    earlier = _completed("m_a", 1, "You said: first")
    assert _judged(_FIRST, _SECOND, also_seen=(earlier,)).broken == {"answered_twice": 1}


def test_two_terminal_events_of_one_message_count_as_answered_twice() -> None:
    event = _completed("m_a", 2, "You said: first")
    assert _judged(_FIRST, _SECOND, also_seen=(event, event)).broken == {"answered_twice": 1}


def test_answers_in_another_order_than_the_acceptances_are_seen() -> None:
    late = _line(9, "m_a", "You said: first")
    assert _judged(_SECOND, late).broken == {"order_errors": 1}


def test_an_answer_that_belongs_to_another_message_is_seen() -> None:
    wrong = _line(4, "m_b", "You said: first")
    assert _judged(_FIRST, wrong).broken == {"wrong_text": 1}


def test_an_answer_to_a_message_that_no_one_sent_is_seen() -> None:
    assert _judged(_FIRST, _SECOND, _line(6, "m_x", "You said: boo")).broken == {"unknown": 1}


def test_a_client_id_with_two_message_ids_is_seen() -> None:
    assert _judged(_FIRST, _SECOND, also_seen=(_accepted("a", "m_other"),)).broken == {"unknown": 1}


def test_a_message_that_was_never_accepted_is_counted() -> None:
    assert _judged(_FIRST, _SECOND, sent={**_SENT, "c": "third"}).broken == {"unaccepted": 1}


def test_a_line_that_a_kill_cut_off_counts_as_not_written(tmp_path: Path) -> None:
    path = tmp_path / "nodes"
    path.write_text("run_1 - a 1\nrun_1 - b")
    assert whole_lines(path) == ["run_1 - a 1"]
    Ledger(path).note("run_1", "-", "c", 1)
    assert whole_lines(path) == ["run_1 - a 1", "run_1 - c 1"]
