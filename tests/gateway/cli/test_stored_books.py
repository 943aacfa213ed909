"""The commands on a store that a gateway has open: the same in a file and in a database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path

import pytest

from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.cli.main import main
from gateway.people.codes import hash_of
from gateway.runtime.data_dir import STORE_FILE
from gateway.storage.audit import NewAuditRecord
from gateway.storage.feedback import Feedback
from gateway.storage.file_changes import FileState, NewChange
from gateway.storage.identities import Identity
from gateway.storage.jobs import NewJob
from gateway.storage.pairings import PairedChat, PairingRequest
from gateway.storage.ports import Store
from gateway.storage.postgres import PostgresStore
from gateway.storage.sqlite import SqliteStore
from tests.contracts.memory_values import fact, write
from tests.contracts.store_values import entry, record

AT = 4_000_000_000.0
CODE = "ACDE3479"


class Parlour:
    """The command, with the settings of one store."""

    def __init__(self, store: Store, settings: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        self.store = store
        self._settings = [word for one in settings for word in ("--set", one)]
        self._capsys = capsys

    async def run(self, *arguments: str, code: int = 0) -> str:
        """What the command prints; it ends with `code`."""
        ended = await asyncio.to_thread(main, [*arguments, *self._settings])
        printed = self._capsys.readouterr()
        assert ended == code, printed.err
        return printed.out + printed.err


@pytest.fixture(params=["sqlite", "postgres"])
async def parlour(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    database_url: str,
) -> AsyncIterator[Parlour]:
    settings = [f'data.dir="{tmp_path}"', 'server.public_origins=["https://bot.example"]']
    store: Store = SqliteStore(tmp_path / STORE_FILE)
    if database_url:
        monkeypatch.setenv("STORE_URL", database_url)
        settings += ['storage.kind="postgres"', 'storage.url="env:STORE_URL"']
        store = PostgresStore(database_url)
    await store.open()
    yield Parlour(store, settings, capsys)
    await store.close()


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of the empty database; "" for the store in a file."""
    on_postgres = request.node.callspec.params["parlour"] == "postgres"
    return str(request.getfixturevalue("postgres_url")) if on_postgres else ""


async def test_strangers_are_listed_let_in_and_removed(parlour: Parlour) -> None:
    place = PairedChat(channel="telegram", account="main", chat="1", user="ann")
    request = PairingRequest(place=place, name="Ann", code_hash=hash_of(CODE), asked_at=AT - 9, expires_at=AT)
    assert await parlour.store.pairings.ask(request, limit=9, again_after_s=60)
    assert "Ann" in await parlour.run("pair")
    await parlour.run("pair", CODE, "--yes")
    assert await parlour.store.pairings.is_paired(place)
    await parlour.run("pair", "--remove", "telegram", "ann")
    assert not await parlour.store.pairings.is_paired(place)


async def test_people_are_invited_exported_and_erased(parlour: Parlour, tmp_path: Path) -> None:
    assert "https://bot.example/#invitation=" in await parlour.run("people", "invite", "--name", "Ann")
    assert "Ann, not here yet" in await parlour.run("people", "list")
    (person,) = await parlour.store.page.people.people()
    body = {"native_id": "1", "author": person.id, "name": "Ann", "text": "hello"}
    await parlour.store.accept(entry("1", thread=f"{CHANNEL}:{ACCOUNT}:{person.id}-c", body=body))
    await write(
        parlour.store, Identity(channel=CHANNEL, account=ACCOUNT, user=person.id).key, fact("f", "I like tea")
    )
    await parlour.run("people", "export", "Ann", "--to", str(tmp_path / "out"))
    found = json.loads((tmp_path / "out" / "person.json").read_text())
    assert [one["body"]["text"] for one in found["messages"]] == ["hello"]
    assert found["page_account"][0]["name"] == "Ann"
    assert "1 messages" in await parlour.run("people", "erase", "Ann", "--yes")
    assert [job.kind for job in await parlour.store.jobs.listed(limit=9)] != []
    assert await parlour.store.page.people.people() == ()


async def test_jobs_feedback_and_the_audit_are_shown(parlour: Parlour, tmp_path: Path) -> None:
    await parlour.store.jobs.add(NewJob(kind="reminder", key="k", due=AT))
    assert "reminder" in await parlour.run("jobs")
    (job,) = await parlour.store.jobs.listed(limit=1)
    await parlour.run("jobs", "drop", str(job.id))
    assert await parlour.store.jobs.listed(limit=1) == ()
    given = Feedback(
        message_id="m1",
        thread="telegram:main:1",
        channel="telegram",
        account="main",
        user="ann",
        name="Ann",
        value="up",
        run_id="r",
        agent="",
        at=AT,
    )
    await parlour.store.feedback.give(given)
    assert "1 up, 0 down" in await parlour.run("feedback")
    await parlour.store.shield.audit.append([NewAuditRecord(type="x", details={}, at=1.0)] * 3)
    assert "3" in await parlour.run("audit", "verify")
    await parlour.run("audit", "export", str(tmp_path / "lines"))
    assert len((tmp_path / "lines").read_text().splitlines()) == 3
    await parlour.run("audit", "prune", "--before", "2026-01-01")
    assert (await parlour.store.shield.audit.head()) is not None
    assert "no crisis response is recorded" in await parlour.run("crises")


async def test_changes_of_files_are_listed_and_taken_back(parlour: Parlour, tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    (workspace / "a.txt").write_text("new")
    change = NewChange(
        action="a",
        tool="write_file",
        root=str(workspace),
        path="a.txt",
        thread="t",
        message_id="m",
        author="ann",
        owner="o",
        before=FileState(),
        at=1.0,
    )
    (change_id,) = await parlour.store.file_changes.begin([change])
    mode = (workspace / "a.txt").stat().st_mode & 0o777
    after = FileState(content=sha256(b"new").hexdigest(), mode=mode)
    await parlour.store.file_changes.settle({change_id: after})
    assert "a.txt" in await parlour.run("history")
    assert "copies of files: 1" in await parlour.run("history", "--verify", code=1)
    assert "is as it was before" in await parlour.run("undo", str(change_id))
    assert list(workspace.iterdir()) == []


async def test_workflows_are_saved_and_printed(parlour: Parlour) -> None:
    await parlour.run("workflow", "import", "examples/workflows/triage.workflow.json", "mine")
    assert "mine" in await parlour.run("workflow", "list")
    assert json.loads(await parlour.run("workflow", "export", "mine"))
    graph = ("--set", 'agent.graph="saved:mine"')
    assert "no workflow of the configured agents has a run" in await parlour.run("workflow", "runs", *graph)


async def test_a_run_is_found_and_drawn(parlour: Parlour) -> None:
    """The record of a run of one step has its beginning and its end."""
    assert "there is no run on record" in await parlour.run("graph", "trace")
    lease = await parlour.store.acquire_lease("web:site:a", "me", ttl_s=9, now=AT)
    assert lease is not None
    body = {"run": "run-1", "graph": "chat", "text": "\0"}
    await parlour.store.append(lease, [record("step", message="m1", **body)])
    assert "run-1  web:site:a" in await parlour.run("graph", "trace")
    assert "there is no such run" in await parlour.run("graph", "trace", "run-2", code=2)


async def test_a_database_without_a_store_or_of_another_release_is_left_alone(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    version = "UPDATE schema_version SET oldest = oldest + {change}"
    settings = [f'data.dir="{tmp_path}"', 'storage.kind="postgres"', 'storage.url="env:STORE_URL"']
    monkeypatch.setenv("STORE_URL", postgres_url)
    await store.database.write(lambda db: db.execute(version.format(change=1_000)))
    try:
        await Parlour(store, settings, capsys).run("jobs", code=1)
    finally:
        await store.database.write(lambda db: db.execute(version.format(change=-1_000)))
        await store.close()
