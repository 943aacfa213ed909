"""`parlour doctor` on a store in Postgres: reachable, of a known version and schema, with the right time."""

from __future__ import annotations

from gateway.app.store import database_url
from gateway.cli.cluster_check import cluster_findings
from gateway.cli.findings import Finding
from gateway.config import Settings
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ConfigurationError, ParlourError

_VERSIONS = range(16, 19)
"""The major versions that Parlour is made for."""
_MOST_APART_S = 1.0
"""Between the clocks of the server and of this machine. Leases and due times are compared with both."""


async def database_findings(settings: Settings, clock: Clock) -> tuple[Finding, ...]:
    """About the database of `storage.url` and the jobs in it. Changes nothing."""
    try:
        return await _examined(settings, clock)
    except ParlourError as error:
        return (Finding(name="store", good=False, words=str(error)),)


async def _examined(settings: Settings, clock: Clock) -> tuple[Finding, ...]:
    url = database_url(settings)
    try:
        from gateway.storage.postgres.examination import examined  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        words = "the driver is not installed; run: pip install 'parlour[postgres]'"
        raise ConfigurationError(words) from error
    found = await examined(url, clock)
    where = f"{found.place}, version {found.version}"
    problems = []
    if found.version not in _VERSIONS:
        problems.append("that version is not one of 16, 17 and 18")
    form = found.format
    if not form.is_usable:
        problems.append(
            f"a newer release of Parlour has brought it to data format {form.version}, which this one cannot "
            "use; install that release again"
        )
    if found.standby:
        problems.append("it is a standby server; storage.url must name the primary one")
    if not form.version and not found.may_create:
        problems.append("this user may not create the schema parlour; make it the owner of the database")
    if abs(found.clock_ahead_s) > _MOST_APART_S:
        apart_s = round(abs(found.clock_ahead_s))
        problems.append(f"its clock differs from this machine's by {apart_s} s; synchronise both (NTP)")
    if not found.synchronous:
        problems.append("synchronous_commit is off, so that a crash loses accepted messages; turn it on")
    if problems:
        return (Finding(name="store", good=False, words=f"{where}: {'; '.join(problems)}"),)
    if found.counts is None:
        when = "is made" if not form.version else f"goes from {form.version} to {form.newest}"
        words = f"{where}; its data format {when} when the gateway starts"
        return (Finding(name="store", good=True, words=words),)
    counts, (waiting, dead) = found.counts, found.jobs
    words = f"{counts.inbox_done} messages done, {counts.inbox_open} waiting, "
    words += f"{counts.outbox_open} replies unsent"
    given_up = f"{dead} given up; `parlour jobs` lists them with the reason" if dead else "none given up"
    return (
        Finding(name="store", good=True, words=f"{where}; {words}"),
        Finding(name="jobs", good=not dead, words=f"{waiting} waiting, {given_up}"),
        *cluster_findings(settings, found.owners, found.unowned, found.clock_ahead_s, form),
    )
