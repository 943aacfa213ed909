"""`parlour people erase`: delete everything that is kept of a person, with or without a running gateway.

The command adds a job, which the gateway carries out: within a minute, or at its next start.
"""

from __future__ import annotations

import asyncio

from adapters.formatting.visible import visible
from adapters.web.inbound import threads_of
from adapters.web.settings import ACCOUNT, CHANNEL
from gateway.cli.graph import complain, write_out
from gateway.cli.stored_books import store_place, stored_books
from gateway.config import Settings
from gateway.people.erasing import erasure_job, named_identity
from gateway.people.page_people import remove_person
from gateway.storage.erasure import PersonKeys
from pipeline.domain.clock import Clock, SystemClock

_OK = 0


def erase(settings: Settings, name: str, *, confirmed: bool, clock: Clock | None = None) -> int:
    """Have the person `name` erased; without `confirmed`, say what there is and change nothing.

    Exit code 0, or 1 without such a person or without confirmation. Raises StorageError and InvalidInput.
    """
    now = (clock or SystemClock()).now()
    person, counts = asyncio.run(known_person(settings, name))
    if person is None:
        return complain(
            f"no one is called {visible(name)}; `parlour people list` shows who is invited to the page, and "
            "everyone else is CHANNEL:ACCOUNT:USER, as `parlour pair` and the log show them"
        )
    shown = ", ".join(visible(f"{one.channel}:{one.account}:{one.user}") for one in person.identities)
    kept = ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "nothing in the store"
    write_out(f"{shown}: {kept}\n")
    if not confirmed:
        return complain("nothing was erased; it cannot be undone, so repeat the command with --yes")
    asyncio.run(_begin(settings, person, now))
    write_out(
        "The erasure has begun: a running gateway carries it out within a minute, another one at its next "
        "start. `parlour jobs list` shows it until it is done. Copies that you have made, such as backups "
        "and exports, stay: delete them too.\n"
    )
    return _OK


async def known_person(settings: Settings, name: str) -> tuple[PersonKeys | None, dict[str, int]]:
    """The person that `name` means, and how many rows of each kind the store has of them. Raises
    StorageError, and InvalidInput for a text that names no one."""
    async with stored_books(store_place(settings, "people")) as books:
        identity = named_identity(name, await books.people.people())
        if identity is None:
            return None, {}
        person = await books.records.keys_of(identity)
        return person, await books.records.counts(person)


async def _begin(settings: Settings, person: PersonKeys, now: float) -> None:
    async with stored_books(store_place(settings, "people")) as books:
        # The job first: what follows only shortens the time in which the person can still write.
        await books.jobs.add(erasure_job(person, now))
        for one in person.identities:
            if (one.channel, one.account) == (CHANNEL, ACCOUNT):
                await remove_person(books.people, one.user, threads=threads_of(one.user), now=now)
