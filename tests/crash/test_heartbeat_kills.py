"""Death around a heartbeat: an event is neither lost nor repeated, and what it says is posted once."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.config import environment
from gateway.runtime.failpoints import Label
from tests.support.heartbeat_child import watched_file

pytestmark = pytest.mark.crash

_CRASHED = 137
_ROOT = Path(__file__).parents[2]
_LABELS: tuple[Label, ...] = (
    "watch-fired-before",
    "watch-fired-after",
    "heartbeat-commit-before",
    "heartbeat-commit-after",
    "heartbeat-news-queued",
)


async def _gateway(folder: Path, crash_at: str, begin: int) -> tuple[int, dict[str, Any]]:
    """The exit code of a gateway and what it has printed; empty if it died."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.heartbeat_child", str(folder), crash_at, str(begin)),
        cwd=_ROOT,
        env=dict(environment()),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    lines = printed.decode().splitlines()
    return await process.wait(), json.loads(lines[-1]) if lines else {}


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
