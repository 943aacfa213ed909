"""Build what the gateway does for the invited people of the page: let them in, and end what the removed ones
have begun."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from adapters.guests import person_of
from adapters.web.adapter import WebAdapter
from adapters.web.inbound import OWNER
from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.app.components import Foundation
from gateway.app.person_traces import build_traces
from gateway.app.tools import SharedTools
from gateway.ingress.chat_deletion import ERASURE, ChatDeletion, WhenIdle
from gateway.ingress.full_erasure import FullErasure
from gateway.ingress.person_erasure import PersonErasure
from gateway.ingress.room_history import ChannelRooms
from gateway.ingress.thread_stops import ThreadStops
from gateway.people.erasing import FULL_ERASURE, erasure_job
from gateway.people.page_people import PERSON_ERASURE, PageAccounts, erasure_of
from gateway.scheduling.jobs import JobKind, JobRunner
from gateway.storage.erasure import PersonKeys
from gateway.storage.identities import Identity
from gateway.storage.jobs import NewJob
from pipeline.domain.ids import ThreadKey

_AT_ONCE = 8
"""Conversations that are erased at the same time."""


class PageGuests:
    """The part of a gateway's life that concerns the invited people."""

    def __init__(
        self,
        accounts: PageAccounts,
        stops: ThreadStops,
        *,
        devices: Callable[[], frozenset[str]],
        sign_out: Callable[[frozenset[str]], None],
        removed: Callable[[frozenset[str]], None],
    ) -> None:
        """`removed` is called with the ids of removed people, whose erasure is in the job book."""
        self._accounts = accounts
        self._removed = removed
        self._stops = stops
        self._devices = devices
        self._sign_out = sign_out

    async def load(self) -> None:
        """Read who is invited, and stop what removed people have left. Call before any turn runs.

        Raises StorageError.
        """
        await self._accounts.load()
        await self._stop_unknown()

    async def watch(self) -> None:
        """Close the pages and stop the turns of those who are removed, for ever."""
        await self._accounts.watch(devices=self._devices, sign_out=self._sign_out, stop=self._end)

    async def _end(self, people: frozenset[str]) -> None:
        await self._stop_unknown()
        self._removed(people)

    async def _stop_unknown(self) -> None:
        await self._stops.stop_where(self._is_removed, read=self._accounts.reload_people)

    def _is_removed(self, key: str) -> bool:
        thread = ThreadKey.decode(key)
        person = person_of(thread.chat)
        return (
            thread.account_key == (CHANNEL, ACCOUNT) and person != "" and not self._accounts.is_known(person)
        )


def build_page_guests(
    base: Foundation,
    tools: SharedTools,
    owner_of: Callable[[str], str],
    jobs: JobRunner,
    when_idle: WhenIdle,
    rooms: ChannelRooms,
) -> PageGuests:
    """Build it, with what deletes conversations; without a page there are no devices."""
    page = base.page.adapter
    stops = ThreadStops(
        base.store, tools.approvals, lambda control: base.bus.control(owner_of(control.thread), control)
    )
    chats = ChatDeletion(
        store=base.store,
        deleted=base.guests,
        stops=stops,
        when_idle=when_idle,
        added=jobs.note_added,
        close_links=base.links.close,
        discard_files=partial(_discard_files, base, tools),
        clock=base.clock,
        crash_labels=base.crash_labels,
    )
    people = PersonErasure(
        account=(CHANNEL, ACCOUNT),
        store=base.store,
        chats=chats,
        is_linked=lambda person: base.people.linked_as(CHANNEL, ACCOUNT, person) != "",
        discard_uploads=partial(_discard_uploads, page),
        discard_notes=tools.discard,
        forget_changes=tools.forgetting.of_owner,
    )
    jobs.handle(JobKind(name=ERASURE, run=chats.run, at_once=_AT_ONCE))
    jobs.handle(JobKind(name=PERSON_ERASURE, run=people.run))
    traces = build_traces(
        base, tools, rooms, partial(_discard_files, base, tools), partial(_discard_uploads, page)
    )
    full = FullErasure(
        store=base.store,
        files=base.files,
        stops=stops,
        chats=chats,
        when_idle=when_idle,
        traces=traces,
        clock=base.clock,
        crash_labels=base.crash_labels,
    )
    jobs.handle(JobKind(name=FULL_ERASURE, run=full.run))
    if page is not None:
        page.attach_chats(chats)
        _attach_editor(base, page)
    return PageGuests(
        base.guests,
        stops,
        devices=frozenset if page is None else page.devices,
        sign_out=_nothing if page is None else page.sign_out,
        removed=lambda ids: jobs.note_added(_erasures(ids, base.clock.now())),
    )


def _attach_editor(base: Foundation, page: WebAdapter) -> None:
    names = base.settings.channels.web.editor
    if names:
        # Most gateways have no editor, and nothing else of them needs workflows.
        from gateway.editor.editing import Editors, SavedWorkflowEditor  # noqa: PLC0415 - see above

        editors = Editors(names, base.store.page.people)
        page.attach_editor(SavedWorkflowEditor(base.store, editors, base.clock))


def _erasures(people: Iterable[str], now: float) -> list[NewJob]:
    """The jobs that may be there for people who are invited no longer: removed, or erased."""
    found = []
    for one in people:
        identity = Identity(channel=CHANNEL, account=ACCOUNT, user=one)
        person = PersonKeys(identities=(identity,), keys=(identity.key,))
        found += [erasure_of(one, now), erasure_job(person, now)]
    return found


async def _discard_files(base: Foundation, tools: SharedTools, thread: ThreadKey) -> None:
    await _forget_sessions(base, thread)
    await base.files.discard_thread(thread)
    await tools.discard_commands(thread)
    await tools.forgetting.of_thread(thread.encode())
    await _discard_uploads(base.page.adapter, thread.chat)


async def _forget_sessions(base: Foundation, thread: ThreadKey) -> None:
    """Forget what is remembered of a conversation of the page."""
    owner = base.people.person_of(thread, person_of(thread.chat) or OWNER.id)
    for record in await base.store.read_log(thread.encode(), kinds=("session",)):
        await base.memory.book.forget_session(owner, record.session_id)


async def _discard_uploads(page: WebAdapter | None, chats: str) -> None:
    if page is not None:
        await page.discard_waiting(chats)


def _nothing(_devices: frozenset[str]) -> None:
    """Do nothing: there is no page."""
