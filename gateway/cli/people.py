"""`parlour people`: invite people to the page, list and remove them, with or without a running gateway.

The gateway reads the invited people at every message and looks for changes every second, so every change
works at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

from adapters.formatting.visible import visible
from adapters.web.inbound import threads_of
from gateway.cli.graph import complain, write_out
from gateway.cli.sign_in_link import page_links
from gateway.cli.stored_books import store_place, stored_books
from gateway.config import Settings
from gateway.people.page_people import (
    DAY_S,
    MAX_OPEN,
    NewInvitation,
    invite_device,
    invite_person,
    remove_person,
    tidy_name,
)
from gateway.storage.page_people import PagePeopleBook, PagePerson
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.errors import ConfigurationError

T = TypeVar("T")

_OK = 0
_MOST_DAYS = 365


def invite(settings: Settings, *, name: str, known: str, days: int, clock: Clock | None = None) -> int:
    """Print a link that signs one browser in: as a new person called `name`, or as the person `known`.

    Exit code 0, or 1 if no link was made. Raises StorageError and ConfigurationError.
    """
    if not 1 <= days <= _MOST_DAYS:
        raise ConfigurationError(f"--days: {days} is not between 1 and {_MOST_DAYS}")
    if not settings.channels.web.enabled:
        raise ConfigurationError(
            "channels.web.enabled: the page is switched off, so no one can be invited to it"
        )
    # Fails before a person is added, if no link can be made.
    page_links(settings, "invitation", "")
    now = (clock or SystemClock()).now()

    async def make(book: PagePeopleBook) -> NewInvitation:
        if not known:
            return await invite_person(book, name, now=now, valid_s=days * DAY_S)
        person = await _find(book, known)
        if person is None:
            return NewInvitation(status="unknown", name=known)
        return await invite_device(book, person, now=now, valid_s=days * DAY_S)

    made = _in_book(settings, make)
    shown = visible(made.name)
    match made.status:
        case "made":
            valid = f"{days} day{'s' if days != 1 else ''}"
            write_out(f"{shown} can sign one browser in with this link, once, within {valid}.\n")
            write_out(page_links(settings, "invitation", made.code))
            write_out(f"Anyone who opens the link first is {shown} for the bot.\n")
            return _OK
        case "taken":
            return complain(f"{shown} is invited already; `parlour people invite --for` adds a device")
        case "unknown":
            return complain(f"no one is called {shown}; `parlour people list` shows who is invited")
        case "full":
            return complain(f"{shown} has {MAX_OPEN} links that no one has used; they end by themselves")


def list_people(settings: Settings, clock: Clock | None = None) -> int:
    """Print the invited people, their devices and their open links. Exit code 0. Raises StorageError."""
    now = (clock or SystemClock()).now()
    people = _in_book(settings, lambda book: book.people())
    devices = _in_book(settings, lambda book: book.devices())
    links = _in_book(settings, lambda book: book.open_invitations(now=now))
    write_out(f"invited to the page: {len(people) or 'no one'}\n")
    for person in people:
        open_links = [one for one in links if one.person == person.id]
        until = "".join(f", a link good until {_day(one.expires_at)}" for one in open_links)
        write_out(f"  {visible(person.name)}, {_joined(person)}{until}\n")
        for device in devices:
            if device.person == person.id:
                named = visible(device.name) or "a browser"
                write_out(f"    {named}, last used {_day(device.seen_at)}\n")
    return _OK


def remove(settings: Settings, name: str, clock: Clock | None = None) -> int:
    """Remove a person: their browsers are signed out, and all that is theirs is erased by the gateway.

    Exit code 0, or 1 without such a person. Raises StorageError.
    """
    now = (clock or SystemClock()).now()

    async def end(book: PagePeopleBook) -> PagePerson | None:
        person = await _find(book, name)
        if person is None or not await remove_person(book, person.id, threads=threads_of(person.id), now=now):
            return None
        return person

    removed = _in_book(settings, end)
    if removed is None:
        return complain(f"no one is called {visible(name)}; `parlour people list` shows who is invited")
    write_out(
        f"{visible(removed.name)} was removed: signed out everywhere, and no link of theirs counts. "
        "The gateway erases their conversations, files and notes, now or at its next start.\n"
    )
    return _OK


async def _find(book: PagePeopleBook, name: str) -> PagePerson | None:
    wanted = tidy_name(name).casefold()
    return next((one for one in await book.people() if one.name.casefold() == wanted), None)


def _in_book(settings: Settings, ask: Callable[[PagePeopleBook], Awaitable[T]]) -> T:
    place = store_place(settings, "people")

    async def asked() -> T:
        async with stored_books(place) as books:
            return await ask(books.people)

    return asyncio.run(asked())


def _joined(person: PagePerson) -> str:
    return f"joined {_day(person.joined_at)}" if person.joined_at else "not here yet"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
