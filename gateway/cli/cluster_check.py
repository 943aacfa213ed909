"""`parlour doctor` on the processes that share a database: which are alive, and what each of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gateway import __version__
from gateway.cli.findings import Finding
from gateway.config import Settings
from gateway.storage.formats import StoreFormat
from gateway.storage.owners import ListedOwner
from gateway.storage.upgrade_words import older_words, waiting_words

_EDGES: Final = ("edge", "all")
_WORKERS: Final = ("work", "all")


def cluster_findings(
    settings: Settings,
    owners: Sequence[ListedOwner],
    unowned: int,
    clock_ahead_s: float,
    form: StoreFormat | None = None,
) -> tuple[Finding, ...]:
    """About the processes that have reported to the database within the last day; nothing for a gateway that
    is alone. `unowned` threads have work and no living process; the database's clock is `clock_ahead_s`
    ahead, and its data format `form`."""
    if not settings.cluster.shared:
        return ()
    alive = [one for one in owners if one.left_s > 0]
    gone = len(owners) - len(alive)
    apart_ms = round(1_000 * abs(clock_ahead_s))
    general = f"{_number(len(alive), 'process', 'processes')} alive, {gone} ended within a day; "
    general += f"the database's clock differs from this machine's by {apart_ms} ms"
    problems = _problems(settings, alive, unowned, form or StoreFormat())
    words = (
        "; ".join((general, *problems)) if alive else "no process is alive; start one with `parlour serve`"
    )
    return (
        Finding(name="cluster", good=bool(alive) and not problems, words=words),
        *(Finding(name=f"process {one.owner.name}", good=True, words=_shown(one)) for one in alive),
    )


def _problems(settings: Settings, alive: Sequence[ListedOwner], unowned: int, form: StoreFormat) -> list[str]:
    roles = {one.owner.role for one in alive}
    held = {account for one in alive for account in one.owner.accounts}
    versions = sorted({one.owner.version for one in alive} | {__version__})
    wanted = [f"{one.key[0]}:{one.key[1]}" for one in settings.channels.accounts() if one.settings.active]
    missing = [account for account in wanted if account not in held]
    found = []
    if roles.isdisjoint(_WORKERS):
        found.append('no process runs turns: start a process with cluster.role "work" or "all"')
    if roles.isdisjoint(_EDGES):
        found.append('no process receives messages: start a process with cluster.role "edge" or "all"')
    elif missing:
        names = ", ".join(missing)
        found.append(f"no process has {names}: look at /readyz and the log of those that receive messages")
    if len(versions) > 1:
        found.append(f"the versions {', '.join(versions)} run or are installed here: finish the upgrade")
    newest = max((form.newest, *(one.formats.newest for one in alive)))
    if older := older_words(alive, newest):
        found.append(f"{older}: replace them by the newer release")
    if waits := waiting_words(alive, form):
        found.append(waits)
    if unowned:
        waiting = _number(unowned, "conversation waits", "conversations wait")
        found.append(f"{waiting} for a process that runs turns: start more of them if this stays")
    return found


def _shown(one: ListedOwner) -> str:
    accounts = f"; sends from {', '.join(one.owner.accounts)}" if one.owner.accounts else ""
    holds = _number(one.threads, "lease", "leases")
    left = f"counts as alive for {one.left_s:.0f} s without another report"
    program = f"version {one.owner.version}, data format {one.formats.newest}"
    return f"{one.owner.role}, {program}; {holds}; {left}{accounts}"


def _number(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"
