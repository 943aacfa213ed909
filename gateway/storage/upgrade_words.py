"""Words on an upgrade during which processes of two releases share a store, for the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from gateway.storage.formats import StoreFormat, listed
from gateway.storage.owners import ListedOwner

_DEAD_END = (
    "this program is too old for the store: it has data format {found.version}, for programs from format "
    "{found.oldest} on, and this program has {found.newest}; start the newer release in its place"
)


def upgrade_words(alive: Sequence[ListedOwner], found: StoreFormat) -> str:
    """What is unfinished, without names of machines, and what to do; empty where all is of one release."""
    if not found.is_usable:
        return _DEAD_END.format(found=found)
    versions = Counter((one.owner.version, one.formats.newest) for one in alive)
    parts = []
    if len({version for version, _ in versions}) > 1:
        shown = ", ".join(_version(*one, number) for one, number in sorted(versions.items(), key=_by_format))
        parts.append(f"{shown}; replace the older ones")
    if waits := waiting_words(alive, found):
        parts.append(waits)
    return "; ".join(parts)


def older_processes(alive: Iterable[ListedOwner], than: int) -> tuple[str, ...]:
    """The names of the processes whose data format is older, each with its version."""
    return tuple(f"{one.owner.name} ({one.owner.version})" for one in alive if one.formats.newest < than)


def older_words(alive: Sequence[ListedOwner], newest: int) -> str:
    """Which living processes have an older data format than `newest`; empty if none has."""
    older = older_processes(alive, newest)
    return f"older than data format {newest}: {listed(older)}" if older else ""


def waiting_words(alive: Sequence[ListedOwner], found: StoreFormat) -> str:
    """What is not applied of this program's steps; empty if all are."""
    if not found.version or not found.waiting:
        return ""
    steps = f"the data format goes from {found.version} to {found.newest}"
    if any(one.formats.newest < found.newest for one in alive):
        return f"{steps} when the processes of the older release have ended"
    return f"{steps} within seconds"


def _version(version: str, newest: int, number: int) -> str:
    processes = "1 process" if number == 1 else f"{number} processes"
    return f"{processes} of version {version} (data format {newest})"


def _by_format(one: tuple[tuple[str, int], int]) -> tuple[int, str]:
    return one[0][1], one[0][0]
