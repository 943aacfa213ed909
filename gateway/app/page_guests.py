"""Build what the gateway does for the invited people of the page: let them in, and end what the removed ones
have begun."""

from __future__ import annotations

from collections.abc import Callable

from adapters.guests import person_of
from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.app.components import Foundation
from gateway.ingress.chat_deletion import ERASURE, ChatDeletion, WhenIdle
from gateway.ingress.inbox import WaitingTurns
from gateway.ingress.thread_stops import ThreadStops
from gateway.people.page_people import PageAccounts
from gateway.scheduling.jobs import JobKind, JobRunner
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
    ) -> None:
        self._accounts = accounts
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
        await self._accounts.watch(
            devices=self._devices, sign_out=self._sign_out, stop=lambda _removed: self._stop_unknown()
        )

    async def _stop_unknown(self) -> None:
        await self._stops.stop_where(self._is_removed)

    def _is_removed(self, key: str) -> bool:
        thread = ThreadKey.decode(key)
        person = person_of(thread.chat)
        return (
            thread.account_key == (CHANNEL, ACCOUNT) and person != "" and not self._accounts.is_known(person)
        )


def build_page_guests(
    base: Foundation,
    waiting: WaitingTurns,
    owner_of: Callable[[str], str],
    jobs: JobRunner,
    when_idle: WhenIdle,
) -> PageGuests:
    """Build it, with what deletes conversations; without a page there are no devices."""
    page = base.page.adapter
    stops = ThreadStops(
        base.store, waiting, lambda control: base.bus.control(owner_of(control.thread), control)
    )
    chats = ChatDeletion(
        store=base.store,
        deleted=base.guests,
        stops=stops,
        when_idle=when_idle,
        added=jobs.note_added,
        discard_files=base.files.discard_thread,
        clock=base.clock,
    )
    jobs.handle(JobKind(name=ERASURE, run=chats.run, at_once=_AT_ONCE))
    if page is not None:
        page.attach_chats(chats)
    return PageGuests(
        base.guests,
        stops,
        devices=frozenset if page is None else page.devices,
        sign_out=_nothing if page is None else page.sign_out,
    )


def _nothing(_devices: frozenset[str]) -> None:
    """Do nothing: there is no page."""
