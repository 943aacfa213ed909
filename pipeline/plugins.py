"""Load the objects that installed packages offer by entry point. A broken one is named and left out.

docs/guides/plugins.md says what an object of each group is.
"""

from __future__ import annotations

import importlib.metadata
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeVar

from pipeline.domain.frozen import dataclass

_log = logging.getLogger(__name__)

_T = TypeVar("_T")

Group: TypeAlias = Literal["parlour.graphs", "parlour.nodes", "parlour.tools", "parlour.channels"]
IMPORT_S: Final = 10.0
"""Seconds that the import of one object may take."""
_REASON_CHARS = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """One entry point: its object, or why it is left out."""

    group: Group
    name: str
    package: str
    """The distribution with its version, such as `parlour-irc 1.0`."""
    value: Any = None
    problem: str = ""


def installed(
    group: Group, check: Callable[[str, Any], Any], *, only: str = "", wait_s: float | None = None
) -> tuple[Plugin, ...]:
    """The plug-ins of a group, by name, or those of the name `only`. `check` gets a name and the imported
    object, and returns what is to be used; whatever it raises is the problem of that plug-in. `wait_s` limits
    the seconds of one (default: IMPORT_S). Raises nothing."""
    found: list[Plugin] = []
    entries = [entry for entry in _entry_points(group) if only in ("", entry.name)]
    for entry in sorted(entries, key=lambda one: one.name):
        plugin = _loaded(entry, group, check, IMPORT_S if wait_s is None else wait_s)
        if any(other.name == entry.name and not other.problem for other in found):
            plugin = _broken(entry, group, "another package offers the same name")
        if plugin.problem:
            broken = {"group": group, "plugin": plugin.name, "package": plugin.package}
            _log.error("a plug-in is left out: %s", plugin.problem, extra=broken)
        found.append(plugin)
    return tuple(found)


def offered(group: Group) -> Mapping[str, str]:
    """The package of each name in a group. Imports none of them."""
    return {entry.name: _package(entry) for entry in _entry_points(group)}


def _entry_points(group: Group) -> Iterable[importlib.metadata.EntryPoint]:
    return importlib.metadata.entry_points(group=group)


def _loaded(
    entry: importlib.metadata.EntryPoint, group: Group, check: Callable[[str, Any], Any], wait_s: float
) -> Plugin:
    """Import and check it in time."""
    try:
        value = in_time(lambda: check(entry.name, entry.load()), wait_s, name=f"plug-in {entry.name}")
    except TimeoutError:
        return _broken(entry, group, f"its import took longer than {wait_s:g} s")
    except ForeignCodeFailed as failed:
        return _broken(entry, group, f"{type(failed.error).__name__}: {failed.error}")
    return Plugin(group=group, name=entry.name, package=_package(entry), value=value)


class ForeignCodeFailed(Exception):
    """Code of a plug-in raised `error`: anything, SystemExit too."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(type(error).__name__)
        self.error = error


def in_time(call: Callable[[], _T], wait_s: float, *, name: str) -> _T:
    """What `call`, code of a plug-in, returns within `wait_s` seconds. It runs in a thread, so that one that
    hangs holds up nothing but itself. Raises ForeignCodeFailed, and TimeoutError."""
    returned: list[_T] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            returned.append(call())
        except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, SystemExit too
            raised.append(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    thread.join(wait_s)
    if raised:
        raise ForeignCodeFailed(raised[0]) from raised[0]
    if not returned:
        raise TimeoutError
    return returned[0]


def _broken(entry: importlib.metadata.EntryPoint, group: Group, problem: str) -> Plugin:
    reason = " ".join(problem.split())[:_REASON_CHARS]
    return Plugin(group=group, name=entry.name, package=_package(entry), problem=reason)


def _package(entry: importlib.metadata.EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "unknown package"
