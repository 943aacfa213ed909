"""The page's workflow editor on the gateway's side: who may edit, and what they can do with saved workflows.

Not here: what a document means and which mistakes it has (`pipeline/workflows`), and how a run is executed:
it is a message like any other (`gateway/turns`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from adapters.guests import Visitor
from adapters.web.inbound import threads_of
from adapters.workflow_editor import EditRefused, Plain
from gateway.editor.run_state import EditorRunReader
from gateway.storage.page_people import PagePeopleBook
from gateway.storage.ports import Store
from gateway.storage.saved_workflows import SavedRun, SavedSummary
from pipeline.domain.clock import Clock
from pipeline.domain.ids import ThreadKey
from pipeline.graph.documents.json_text import parsed_json
from pipeline.graph_book import MAX_SAVED_NAME, SavedName, is_saved_name
from pipeline.workflows.mistakes import Mistake
from pipeline.workflows.normalising import normalised
from pipeline.workflows.reading import checked

OWNER: Final = "owner"
"""In the list of editors: everyone who has the page's access token."""
MAX_CHARS: Final = 500_000
"""Of a document that the editor saves."""
LISTED_RUNS: Final = 20
_PLACE = re.compile(r"(?:connections|edges)\[(\d+)\]")
_BAD_NAME = (
    f"a workflow's name has at most {MAX_SAVED_NAME} letters, digits, spaces, _ and -, and begins and ends "
    "with a letter or digit"
)
_CONFLICT = (
    "{name} was saved as version {newest} since you opened version {base}: your changes are not saved. Open "
    "the newest version, or save yours over it or under another name"
)
_GONE = "there is no workflow {name} any more; save it under its name again"
_UNKNOWN = "there is no such workflow, or no such version of it"
_FAULTY = "this version has mistakes, so it cannot run: check it, and save it without them"


class Editors:
    """The people who may edit."""

    def __init__(self, names: Collection[str], people: PagePeopleBook) -> None:
        """`names` are those of invited people, without regard to case, and `owner`."""
        self._names = frozenset(name.casefold() for name in names)
        self._people = people

    async def may_edit(self, visitor: Visitor) -> bool:
        """Whether the visitor may edit now. Raises StorageError."""
        if not visitor.person:
            return OWNER in self._names
        person = await self._people.person(visitor.person)
        # An invited person who is called like the word for the owner is not meant by it.
        return person is not None and person.name.casefold() in self._names - {OWNER}


class SavedWorkflowEditor:
    """The port `adapters.workflow_editor.WorkflowEditor` over the store."""

    def __init__(self, store: Store, editors: Editors, clock: Clock) -> None:
        self._book = store.page.workflows
        self._editors = editors
        self._runs = EditorRunReader(store, clock)
        self._clock = clock

    async def may_edit(self, visitor: Visitor) -> bool:
        return await self._editors.may_edit(visitor)

    async def documents(self) -> Sequence[Plain]:
        return [_listed(one) for one in await self._book.newest()]

    async def document(self, name: str, version: int | None) -> Plain:
        versions = await self._book.versions(name)
        shown = next((one for one in versions if version in (None, one.version)), None)
        text = None if shown is None else await self._book.text(name, shown.version)
        if shown is None or text is None:
            raise EditRefused("unknown_workflow", _UNKNOWN)
        document = parsed_json(text, "the document")
        found = normalised(document) if isinstance(document, Mapping) else {}
        return {
            **_listed(shown),
            "document": found,
            "mistakes": self.check(found),
            "versions": [_listed(one) for one in versions],
        }

    def check(self, document: Plain) -> Sequence[Plain]:
        return [_plain(mistake) for mistake in checked(document)[1]]

    async def save(self, name: str, document: Plain, base: int) -> Plain:
        if not is_saved_name(name):
            raise EditRefused("bad_name", _BAD_NAME)
        text = document_text(document)
        if len(text) > MAX_CHARS:
            words = (
                f"the document has more than {MAX_CHARS} characters; import it with `parlour workflow import`"
            )
            raise EditRefused("too_large", words)
        mistakes, at = self.check(document), self._clock.now()
        version = await self._book.save(name, text, base=base, runs=not mistakes, at=at)
        if version is None:
            raise await self._conflict(name, base)
        return {"name": name, "version": version, "saved_at": at, "mistakes": mistakes}

    async def delete(self, name: str, base: int) -> None:
        if not await self._book.delete(name, base=base):
            raise await self._conflict(name, base)

    async def begin(self, thread: ThreadKey, message_id: str, name: str, version: int) -> str:
        versions = await self._book.versions(name)
        summary = next((one for one in versions if one.version == version), None)
        if summary is None:
            raise EditRefused("unknown_workflow", _UNKNOWN)
        if not summary.runs:
            raise EditRefused("refused", _FAULTY)
        run = SavedRun(
            thread=thread.encode(), message_id=message_id, name=name, version=version, at=self._clock.now()
        )
        await self._book.note_run(run)
        return str(SavedName(name=name, version=version))

    async def runs(self, name: str, visitor: Visitor) -> Sequence[Plain]:
        found = await self._book.runs_of(name, threads=threads_of(visitor.person), limit=LISTED_RUNS)
        return [await self._runs.summary(run) for run in found]

    async def run(self, thread: ThreadKey, seen: int) -> Plain:
        run = await self._book.run_in(thread.encode())
        if run is None:
            raise EditRefused("unknown_run", "there is no such run")
        return await self._runs.state(run, seen)

    async def _conflict(self, name: str, base: int) -> EditRefused:
        versions = await self._book.versions(name)
        if not versions:
            return EditRefused("conflict", _GONE.format(name=name))
        return EditRefused("conflict", _CONFLICT.format(name=name, newest=versions[0].version, base=base))


def document_text(document: Plain) -> str:
    """The document as JSON, as the editor saves it."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _listed(summary: SavedSummary) -> dict[str, Any]:
    return {
        "name": summary.name,
        "version": summary.version,
        "runs": summary.runs,
        "saved_at": summary.saved_at,
    }


def _plain(mistake: Mistake) -> dict[str, Any]:
    place = _PLACE.match(mistake.connection)
    return {
        "node": mistake.node,
        "connection": None if place is None else int(place[1]),
        "field": mistake.field,
        "what": mistake.what,
        "words": str(mistake),
    }
