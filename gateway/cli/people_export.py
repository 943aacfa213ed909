"""`parlour people export`: write everything that is kept of a person into a new folder.

`person.json` has what the store holds; `files/` the files of their private chats, and `workspaces/` their
notes and facts, as they lie in the workspaces. Works beside a running gateway.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adapters.formatting.visible import visible
from gateway.cli.graph import complain, write_out
from gateway.cli.people_erase import known_person
from gateway.cli.stored_books import store_place, stored_books
from gateway.config import Settings
from gateway.config.agent_settings import agent_settings
from gateway.files.folder_store import stored_at
from gateway.runtime.data_dir import FILES_DIR
from gateway.storage.erasure import PersonKeys
from pipeline.domain.errors import ConfigurationError
from pipeline.domain.ids import ThreadKey
from pipeline.tools.confine import person_folder

_OK = 0


def export_person(settings: Settings, name: str, folder: Path) -> int:
    """Write the export of the person `name` into `folder`, which only this account may read.

    Exit code 0, or 1 without such a person. Raises StorageError, InvalidInput and ConfigurationError.
    """
    person, _ = asyncio.run(known_person(settings, name))
    if person is None:
        return complain(f"no one is called {visible(name)}; name CHANNEL:ACCOUNT:USER, or who is on the page")
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        raise ConfigurationError(f"--to: {folder} exists; choose a folder that is not there yet") from None
    records = asyncio.run(_records(settings, person))
    identities = [f"{one.channel}:{one.account}:{one.user}" for one in person.identities]
    text = json.dumps({"person": identities, **records}, ensure_ascii=False, indent=1)
    path = folder / "person.json"
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8", errors="replace")
    files = _copy_files(settings, records, folder / "files")
    notes = _copy_notes(_workspaces(settings), person, folder / "workspaces")
    rows = sum(map(len, records.values()))
    write_out(f"{folder}: {rows} records, {files} files, {notes} workspaces\n")
    return _OK


async def _records(settings: Settings, person: PersonKeys) -> dict[str, list[dict[str, Any]]]:
    async with stored_books(store_place(settings, "people")) as books:
        records = await books.records.records(person)
        remembered = [asdict(await books.memories.everything(key)) for key in person.keys]
    kept = [one for one in remembered if any(one[part] for part in ("facts", "arcs", "held"))]
    rules = [one for one in remembered if one["profile"]["revision"] and one not in kept]
    return {**records, "memory": [*kept, *rules]}


def _copy_files(settings: Settings, records: Mapping[str, list[dict[str, Any]]], target: Path) -> int:
    """Copy the stored files that the conversations name, each under its own name; how many."""
    copied = 0
    for record in records["conversations"]:
        body = record["body"]
        for file in body.get("files", ()) if isinstance(body, dict) else ():
            source = stored_at(settings.data.dir / FILES_DIR, ThreadKey.decode(record["thread"]), file["id"])
            if not source.is_file():
                continue
            target.mkdir(mode=0o700, exist_ok=True)
            named = Path(str(file.get("name", ""))).name or "file"
            shutil.copyfile(source, target / f"{file['id'][:12]}-{named}")
            copied += 1
    return copied


def _workspaces(settings: Settings) -> tuple[Path, ...]:
    agents = (agent_settings(settings, name) for name in settings.agents)
    roots = [settings.workspace_path, *(one.workspace_path for one in agents)]
    return tuple(dict.fromkeys(root.resolve() for root in roots))


def _copy_notes(roots: Iterable[Path], person: PersonKeys, target: Path) -> int:
    copied = 0
    for root in roots:
        for key in person.keys:
            source = person_folder(root, key)
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, target / str(copied), symlinks=True)
                copied += 1
    return copied
