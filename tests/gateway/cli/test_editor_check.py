"""What the doctor finds about the workflow editor and about agents with saved workflows.

Covers: gateway/cli/editor_check.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from gateway.cli.editor_check import editor_state, saved_graphs_state
from gateway.config import Settings, load
from gateway.people.page_people import invite_person
from gateway.storage.sqlite import SqliteStore

TRIAGE = Path("examples/workflows/triage.workflow.json").read_text("utf-8")
EDITORS = 'channels.web.editor=["owner", "Ann"]'


def _settings(folder: Path, *overrides: str) -> Settings:
    return load(Path("/dev/null"), {}, [f"data.dir={json.dumps(str(folder))}", *overrides])


async def test_nothing_is_said_where_nothing_is_set(tmp_path: Path) -> None:
    settings = _settings(tmp_path)
    assert (await editor_state(settings), saved_graphs_state(settings)) == (None, None)


async def test_people_who_are_not_invited_and_missing_workflows_are_named(tmp_path: Path) -> None:
    settings = _settings(tmp_path, EDITORS, 'agent.graph="saved:letters"')
    state = await editor_state(settings)
    assert state is not None
    assert (state[0], state[1].partition(" (")[0]) == (False, "open to owner, Ann; not invited: Ann")
    good, words = saved_graphs_state(settings) or (True, "")
    assert (good, "saved:letters: no such workflow is saved" in words) == (False, True)


async def test_what_is_there_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "parlour.sqlite3")
    await store.open()
    await invite_person(store.page.people, "ann", now=0.0, valid_s=1.0)
    await store.page.workflows.save("letters", TRIAGE, base=0, runs=True, at=0.0)
    await store.close()
    settings = _settings(tmp_path, EDITORS, 'agent.graph="saved:letters"')
    assert await editor_state(settings) == (True, "open to owner, Ann")
    assert saved_graphs_state(settings) == (True, "saved:letters (default)")
