"""`parlour pair`: pair strangers by their codes and end pairings, with or without a running gateway.

The gateway reads the pairings at every message, so every change works at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from adapters.formatting.visible import visible
from gateway.cli.graph import complain, write_out
from gateway.cli.stored_books import StorePlace, stored_books
from gateway.people.codes import hash_of
from gateway.storage.pairings import PairedChat, PairingBook, PairingRequest
from pipeline.domain.clock import Clock, SystemClock

T = TypeVar("T")
Confirm = Callable[[str], bool]

_OK = 0


def list_pairings(place: StorePlace, clock: Clock | None = None) -> int:
    """Print the open requests and the paired people. Exit code 0. Raises StorageError."""
    now = (clock or SystemClock()).now()
    asking = _in_book(place, lambda book: book.requests(now=now))
    paired = _in_book(place, lambda book: book.pairings())
    write_out(f"asking to be let in: {len(asking) or 'no one'}\n")
    for request in asking:
        minutes = max(1, round((request.expires_at - now) / 60))
        write_out(f"  {_who(request.place, request.name)}, code good for {minutes} min\n")
    write_out(f"paired: {len(paired) or 'no one'}\n")
    for pairing in paired:
        write_out(f"  {_who(pairing.place, pairing.name)}\n")
    return _OK


def pair(
    place: StorePlace,
    code: str,
    *,
    confirmed: bool,
    confirm: Confirm | None = None,
    clock: Clock | None = None,
) -> int:
    """Pair the person who was shown `code`, after a yes on the terminal unless it is `confirmed` already.

    Exit code 0, or 1 when no person was paired. Raises StorageError.
    """
    now = (clock or SystemClock()).now()
    wanted = hash_of(code)
    asking = _in_book(place, lambda book: book.requests(now=now))
    request = next((one for one in asking if one.code_hash == wanted), None)
    if request is None:
        return complain(
            "no one waits with this code: it is mistyped, used, or older than 15 minutes. "
            "The person who was shown it gets another one an hour after the first"
        )
    who = _who(request.place, request.name)
    if not confirmed and not (confirm or _ask_on_terminal)(f"Let {who} talk to the bot in private?"):
        return complain("no one was let in; `parlour pair CODE --yes` does not ask")
    return _let_in(place, request, clock or SystemClock())


def remove_pairing(place: StorePlace, channel: str, user: str) -> int:
    """End every pairing of `user` on `channel`. Exit code 0, or 1 without any. Raises StorageError."""
    ended = _in_book(place, lambda book: book.remove(channel, user))
    if not ended:
        return complain(f"{visible(user)} is not paired on {visible(channel)}; `parlour pair` lists who is")
    write_out(f"{visible(user)} is no longer paired on {visible(channel)}\n")
    return _OK


def _let_in(place: StorePlace, request: PairingRequest, clock: Clock) -> int:
    pairing = _in_book(place, lambda book: book.pair(request.code_hash, now=clock.now()))
    if pairing is None:
        return complain("the code has expired meanwhile; no one was let in")
    write_out(f"paired: {_who(pairing.place, pairing.name)}\n")
    return _OK


def _in_book(place: StorePlace, ask: Callable[[PairingBook], Awaitable[T]]) -> T:
    async def asked() -> T:
        async with stored_books(place) as books:
            return await ask(books.pairings)

    return asyncio.run(asked())


def _who(place: PairedChat, name: str) -> str:
    """A person as one line. The quoted name cannot imitate other parts of the line."""
    shown = visible(" ".join(name.split())).replace('"', "'")
    called = f' "{shown}"' if shown else ""
    return f"{place.channel} ({place.account}) {visible(place.user)}{called}"


def _ask_on_terminal(question: str) -> bool:
    if not sys.stdin.isatty():
        return False
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
