"""Death around a heartbeat: an event is neither lost nor repeated, what it says is posted once, and one that
its person has stopped stays stopped.

Covers: gateway/ingress/stops.py, gateway/storage/running_heartbeats.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.runtime.crash_labels import Label
from tests.support.forked_children import run_child
from tests.support.heartbeat_child import watched_file
from tests.support.heartbeats import document
from tests.support.stopped_heartbeat_child import LINE

pytestmark = pytest.mark.crash

_CRASHED = 137
_LABELS: tuple[Label, ...] = (
    "watch-fired-before",
    "watch-fired-after",
    "heartbeat-commit-before",
    "heartbeat-commit-after",
    "heartbeat-news-queued",
)
_STOPS = (
    "inbox-commit-after:1",  # the command is accepted
    "heartbeat-cancelled:1",  # the heartbeat's entry is cancelled
    "heartbeat-commit-before:1",
    "heartbeat-commit-after:1",
    "turn-commit-before:1",  # the line that says so
    "turn-commit-after:1",
)


async def _gateway(
    folder: Path, crash_at: str, begin: int, child: str = "heartbeat_child"
) -> tuple[int, dict[str, Any]]:
    """The exit code of a gateway and what it has printed; empty if it died."""
    log = folder / f"child{begin}.log"
    code = await run_child(f"tests.support.{child}", str(folder), crash_at, str(begin), log=log)
    lines = log.read_text("utf-8").splitlines()
    return code, json.loads(lines[-1]) if code == 0 else {}


@pytest.mark.parametrize("label", _LABELS)
async def test_a_death_at_a_label_loses_no_event_and_repeats_none(tmp_path: Path, label: Label) -> None:
    place = watched_file(tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text("milk\n")
    document = tmp_path / "workspace" / "HEARTBEAT.md"
    document.write_text("- watch file own/list.txt -- say what is new\n")
    code, _ = await _gateway(tmp_path, f"{label}:1", 0)
    assert code == _CRASHED
    code, after = await _gateway(tmp_path, "", 1_000)
    assert code == 0
    assert after["sent"] == ["It has changed."]
    # The last answer of the model is durable with the commit; from then on it is not asked again.
    assert after["calls"] == (0 if label in ("heartbeat-commit-after", "heartbeat-news-queued") else 1)


@pytest.mark.parametrize("crash_at", _STOPS)
async def test_a_stopped_heartbeat_stays_stopped_over_a_death_and_is_said_once(
    tmp_path: Path, crash_at: str
) -> None:
    document(tmp_path, LINE)
    code, _ = await _gateway(tmp_path, crash_at, 0, "stopped_heartbeat_child")
    assert code == _CRASHED
    code, after = await _gateway(tmp_path, "", 1_600, "stopped_heartbeat_child")
    assert (code, after["calls"]) == (0, 0)
    said = [line for line in after["lines"] if not line.startswith("heartbeat: ")]
    # Where the cancelled entry is all that the next process finds, there is nothing left for it to stop.
    assert said in (["Stopped 1 heartbeat."], ["There is nothing to stop."])
    # A line that was committed before the death and not sent is sent now; none is sent twice.
    assert after["sent"] == said
