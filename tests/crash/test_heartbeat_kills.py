"""Death around a heartbeat: an event is neither lost nor repeated, and what it says is posted once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.runtime.failpoints import Label
from tests.support.forked_children import run_child
from tests.support.heartbeat_child import watched_file

pytestmark = pytest.mark.crash

_CRASHED = 137
_LABELS: tuple[Label, ...] = (
    "watch-fired-before",
    "watch-fired-after",
    "heartbeat-commit-before",
    "heartbeat-commit-after",
    "heartbeat-news-queued",
)


async def _gateway(folder: Path, crash_at: str, begin: int) -> tuple[int, dict[str, Any]]:
    """The exit code of a gateway and what it has printed; empty if it died."""
    log = folder / f"child{begin}.log"
    code = await run_child("tests.support.heartbeat_child", str(folder), crash_at, str(begin), log=log)
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
