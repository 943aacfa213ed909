"""Records of a run as rows: short, and the same when they are read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from gateway.storage.json_bodies import decode_body, encode_body
from gateway.storage.log_records import STEPS
from gateway.storage.ports import Record, RecordKind
from gateway.turns.run_codec import (
    TOGETHER,
    from_row,
    from_rows,
    newest_run,
    runs_of,
    to_embedded,
    to_row,
    to_rows,
)

_HEAD = {"run": "run_1", "graph": "talk/small", "signature": "abc", "entry": "", "inputs": {}}
_END = {"do": "end", "status": "completed", "reason": "completed"}


def _row(body: Mapping[str, Any], kind: RecordKind = "step", message: str = "m_1") -> Record:
    return Record(id=1, thread="t", kind=kind, session_id="s", message_id=message, body=body, at=0.0)


def _stored(record: Mapping[str, Any]) -> dict[str, Any]:
    return decode_body(encode_body(to_row(record)))


@pytest.mark.parametrize(
    "record",
    [
        {"do": "step", "node": "a", "update": {"x": [1, None]}, "to": ["b"], "head": _HEAD},
        {
            "do": "step",
            "node": "a",
            "head": {**_HEAD, "entry": "b", "inputs": {"k": 1}},
            "inputs": {"b": {"y": 2}},
        },
        {"do": "step", "node": "a", "frame": "/x", "error": {"node": "a", "code": "c", "message": "m"}},
        {"do": "snapshot", "run": {"path": ["a"]}},
        {"do": "effect", "node": "a", "key": "k", "state": "began"},
        {"do": "enter", "node": "a", "head": _HEAD},
        _END,
    ],
)
def test_a_record_reads_back_as_it_was_written(record: dict[str, Any]) -> None:
    assert from_row(_stored(record)) == record


def test_records_that_were_made_together_share_a_row_with_the_head_in_front() -> None:
    first = {"do": "step", "node": "a", "to": ["b"], "head": _HEAD}
    second = {"do": "step", "node": "b", "update": {"x": 1}}
    row = decode_body(encode_body(to_rows([first, second, _END])))
    assert row["run"] == "run_1"
    assert row["graph"] == "talk/small/abc"
    assert from_rows(row) == [first, second, _END]
    assert newest_run([_row({"node": "old", "run": "run_0", "graph": "g/1"}), _row(row)]) == (
        first,
        second,
        _END,
    )
    assert runs_of([_row(row)]) == {"run_1": [first, second, _END]}


def test_a_single_record_shares_no_row() -> None:
    assert to_rows([_END]) == to_row(_END)


def test_a_snapshot_among_records_made_together_is_taken_for_no_head() -> None:
    snapshot = {"do": "snapshot", "run": {"path": ["a"]}}
    assert from_rows(to_rows([snapshot, _END])) == [snapshot, _END]


@pytest.mark.parametrize("damage", ["text", [], [None, 3]])
def test_a_damaged_list_of_records_is_unreadable(damage: object) -> None:
    assert set(from_rows({TOGETHER: damage})) == {None}


def test_a_row_says_nothing_twice() -> None:
    row = to_row({"do": "step", "node": "a", "to": ("b",), "head": _HEAD})
    assert row == {"node": "a", "to": ("b",), "run": "run_1", "graph": "talk/small/abc"}


@pytest.mark.parametrize(
    "body", [{}, {"run": "run_0", "node": "intake", "update": {}, "next": "agent"}], ids=["damaged", "old"]
)
def test_a_row_of_no_known_shape_is_an_unreadable_record(body: dict[str, Any]) -> None:
    assert from_row(body) is None


def test_the_last_records_ride_without_what_no_one_asks_for() -> None:
    step = {
        "do": "step",
        "node": "agent",
        "update": {"agent": {"answer": "long"}},
        "to": ("end",),
        "seconds": 2.5,
    }
    assert to_embedded([step, _END]) == [{"node": "agent"}]
    failed = {"do": "end", "status": "failed", "reason": "error"}
    dead = {"do": "step", "node": "agent", "error": {"code": "x"}}
    assert to_embedded([dead, failed]) == [{"node": "agent", "error": {"code": "x"}, "to": []}, failed]


def test_the_tokens_of_the_last_model_call_are_kept() -> None:
    agent = {"answer": "long", "prompt_tokens": 812, "completion_tokens": 41}
    step = {"do": "step", "node": "agent", "update": {"agent": agent}, "to": ("end",)}
    assert to_embedded([step, _END]) == [{"node": "agent", "used": [812, 41]}]


def test_the_newest_run_of_a_message_begins_at_its_last_head() -> None:
    old, new = {**_HEAD, "run": "run_0"}, {**_HEAD, "run": "run_1"}
    rows = [
        _row(_stored({"do": "step", "node": "a", "to": ["b"], "head": old})),
        _row(_stored({"do": "step", "node": "b", "to": ["a"]})),
        _row(_stored({"do": "step", "node": "a", "to": ["b"], "head": new})),
        _row({}),
    ]
    found = newest_run(rows)
    assert [record and record["node"] for record in found] == ["a", None]
    assert found[0] is not None
    assert found[0]["head"] == new
    assert newest_run([]) == ()


def test_all_runs_of_a_thread_are_found_with_their_last_steps() -> None:
    first = {"do": "step", "node": "a", "to": ["b"], "head": _HEAD}
    last = {"do": "step", "node": "b", "update": {"k": 1}, "to": ["end"]}
    alone = {"do": "step", "node": "a", "to": ["end"], "head": {**_HEAD, "run": "run_2"}}
    rows = [
        _row({"text": "hi"}, "user"),
        _row(_stored(first)),
        _row({"text": "there", STEPS: to_embedded([last, _END])}, "assistant"),
        _row({"text": "short", STEPS: to_embedded([alone, _END])}, "assistant", "m_2"),
        _row({"text": "no run"}, "notice", "m_3"),
    ]
    assert runs_of(rows) == {
        "run_1": [first, {"do": "step", "node": "b", "to": ["end"]}, _END],
        "run_2": [alone, _END],
    }
