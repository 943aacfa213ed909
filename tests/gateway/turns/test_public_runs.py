"""What a program gets of a run: how far it is, by what is on record and what is still worked on."""

from __future__ import annotations

from gateway.storage.ports import Record
from gateway.turns.public_runs import _Read, _view
from gateway.turns.run_codec import CUT_OFF
from pipeline.workflows.run_record import STOPPED, RunStatus, WorkflowRun
from tests.support.tables import each


@each(
    "recorded, works, stopped, reported",
    [
        ("failed", False, False, "failed"),
        ("completed", False, False, "completed"),
        # The last step is on record, and the answer or the reason is not yet.
        ("failed", True, True, "running"),
        ("completed", True, False, "running"),
        ("paused", True, False, "running"),
        ("paused", False, False, "paused"),
        ("paused", False, True, "failed"),
        ("running", False, False, "failed"),
    ],
)
def test_the_status_of_a_run(recorded: RunStatus, works: bool, stopped: bool, reported: RunStatus) -> None:
    run = WorkflowRun(id="run_1", status=recorded, logs=(), state={})
    read = _Read(run_id="run_1", run=run, works=works, stopped=stopped, pending=(), records=())
    assert read.status == reported


@each("recorded", ["paused", "failed"])
def test_a_stopped_run_has_its_reason_before_the_line_of_the_stop_is_on_record(recorded: RunStatus) -> None:
    run = WorkflowRun(id="run_1", status=recorded, logs=(), state={})
    ended = Record(id=1, thread="t", session_id="s1", message_id="m1", kind="step", body=CUT_OFF, at=1.0)
    read = _Read(run_id="a.1", run=run, works=False, stopped=True, pending=(), records=(ended,))
    view = _view(read)
    assert (view.status, view.error) == ("failed", {"code": "stopped", "message": STOPPED})
