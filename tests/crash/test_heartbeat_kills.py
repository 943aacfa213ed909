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
from pipeline.domain.ids import identity_key
from pipeline.tools.confine import person_folder

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


async def _gateway(folder: Path, crash_at: str, begin: int, steps: int) -> tuple[int, dict[str, Any]]:
    """The exit code of a gateway and what it has printed; empty if it died."""
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "tests.support.heartbeat_child",
            str(folder),
            crash_at,
            str(begin),
            str(steps),
        ),
        cwd=_ROOT,
        env=dict(environment()),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await process.communicate()
    lines = printed.decode().splitlines()
    return await process.wait(), json.loads(lines[-1]) if lines else {}


def _place(folder: Path) -> Path:
    (folder / "workspace").mkdir(parents=True)
    (folder / "workspace" / "HEARTBEAT.md").write_text("- watch file own/list.txt -- say what is new\n")
    files = person_folder(folder / "workspace", identity_key("console", "local", "owner")) / "files"
    files.mkdir(parents=True)
    return files / "list.txt"


@pytest.mark.parametrize("label", _LABELS)
async def test_a_death_at_a_label_loses_no_event_and_repeats_none(tmp_path: Path, label: Label) -> None:
    place = _place(tmp_path)
    place.write_text("milk\n")
    code, seen = await _gateway(tmp_path, "", 0, 3)
    assert (code, seen) == (0, {"sent": [], "calls": 0})
    place.write_text("milk\ntea\n")
    code, _ = await _gateway(tmp_path, f"{label}:1", 1_000, 3)
    assert code == _CRASHED
    code, after = await _gateway(tmp_path, "", 2_000, 3)
    assert code == 0
    assert after["sent"] == ["It has changed."]
    code, later = await _gateway(tmp_path, "", 3_000, 3)
    assert (code, later) == (0, {"sent": [], "calls": 0})
