"""The shield alone, in this process: a proposal judged and recorded, the gate, the check of the audit, and
the cases of `make eval NAME=shield`."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.report import Report, median, percentile, scratch_folder
from evals.shield import figures as cases_figures
from evals.shield import judge_all, read_cases
from gateway.cli.serve import COLLECTED_AFTER
from gateway.shield.audit_trail import StoreAudit
from gateway.storage.audit_check import check_audit
from gateway.storage.sqlite import SqliteStore
from pipeline.domain.clock import ManualClock
from pipeline.shield.action_types import ActionType
from pipeline.shield.audit_events import evaluated, event_of
from pipeline.shield.flow import Taints
from pipeline.shield.injection.scanner import InjectionScanner
from pipeline.shield.permissions import Permissions
from pipeline.shield.policy_book import PolicyBook
from pipeline.shield.proposal import Proposal
from pipeline.shield.shield import Shield
from pipeline.tools.notes import notes_group
from tests.support.contexts import scope
from tests.support.tool_gate import call, gate, propose

_ROUNDS = 200
_CALLS = 20
"""In one turn; fewer than one owner may propose in a minute."""
_TURNS = 15
_RECORDS = 100_000
_AT_ONCE = 1_000
_MINUTE_S = 61.0
_WORDS = (
    "Shopping list for Saturday: two litres of milk, bread from the bakery at the corner, and 500 g of tea. "
    "Call Anna at 17:30 about the concert tickets; she said http://example.org/tickets has the seats. Bring "
    "back the well-known book on gardening, and pay the electricity bill before the 14th. The plumber comes "
    "on Tuesday between 8 and 10; the key is with the neighbours. Ask whether the window in the kitchen "
    "can be repaired as well, and what a new one would cost if it cannot, with and without the frame."
)
_CASES: tuple[tuple[str, ActionType, dict[str, Any]], ...] = (
    ("read a file", "read_file", {"path": "own/plans/garden.md"}),
    ("search the web", "search_web", {"query": "opening hours of the public library in Vienna on Saturdays"}),
    ("keep a note of 120 characters", "write_note", {"title": "Saturday", "text": _WORDS[:120]}),
    ("keep a note of 500 characters", "write_note", {"title": "Saturday", "text": _WORDS[:500]}),
)
_LONG = _CASES[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gate:
    plain_us: float
    judged_us: float


async def run() -> Report:
    """Every figure is processor time of the process, with the threads of the store."""
    with scratch_folder() as folder:
        store = SqliteStore(folder / "shield.sqlite3", synchronous="NORMAL")
        await store.open()
        try:
            clock = ManualClock()
            shield = _shield(store, clock)
            with _collector_of_the_gateway():
                judged = [await _judged(shield, clock, *case[1:]) for case in _CASES]
                through = await _through_the_gate(shield, clock, folder / "notes")
            verify_s = await _verified(store, clock)
        finally:
            await store.close()
    cases = cases_figures(await judge_all(read_cases()))
    together = [one for times in judged for one in times]
    ratio = through.judged_us / through.plain_us
    rows = [
        (name, f"{median(times):.0f} µs", f"{percentile(times, 0.99):.0f} µs")
        for (name, _, _), times in zip(_CASES, judged, strict=True)
    ]
    rows += [
        ("all of them", f"{median(together):.0f} µs", f"{percentile(together, 0.99):.0f} µs"),
        ("the tool that keeps the note, called alone", f"{through.plain_us:.0f} µs", ""),
        ("the same through the gate", f"{through.judged_us:.0f} µs", ""),
        ("ratio of the two", f"{ratio:.2f}", ""),
        (f"check of an audit of {_RECORDS:,} records", f"{verify_s:.2f} s", ""),
        ("attacks stopped", f"{cases['stopped']} of {cases['attacks']}", ""),
        ("legitimate actions without a question", f"{cases['unaided']} of {cases['legitimate']}", ""),
    ]
    return Report(
        bench="shield",
        title="shield: processor time of a proposal through tiers 0 and 1 with its audit record",
        head=("", "median", "p99"),
        rows=rows,
        notes=(
            f"{_ROUNDS} proposals of each kind",
            f"the gate: {_CALLS * _TURNS} notes, with events, hashes and the record of the run",
        ),
        figures={
            "judge_us": round(median(together)),
            "judge_p99_us": round(percentile(together, 0.99)),
            "judge_500_chars_us": round(median(judged[-1])),
            "gate_ratio": round(ratio, 2),
            **{name: cases[name] for name in ("attacks", "stopped", "legitimate", "unaided")},
            "audit_verify_s": round(verify_s, 2),
        },
    )


@contextmanager
def _collector_of_the_gateway() -> Iterator[None]:
    """The garbage collector as `parlour serve` sets it: a collection of all objects takes 20 ms."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECTED_AFTER)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _shield(store: SqliteStore, clock: ManualClock) -> Shield:
    return Shield(
        policies=PolicyBook(),
        audit=StoreAudit(store.shield.audit, clock),
        taints=Taints(store.shield.taints),
        permissions=Permissions(store.shield.permissions, clock),
        clock=clock,
        scanner=InjectionScanner(),
    )


async def _judged(
    shield: Shield, clock: ManualClock, type_: ActionType, payload: dict[str, Any]
) -> Sequence[float]:
    """Microseconds of each proposal: its judgement, and its two records in the audit."""
    times = []
    for number in range(_ROUNDS):
        if number % _CALLS == 0:
            await clock.advance(_MINUTE_S)
        # A new proposal each time: it caches its paths and hosts.
        one = _proposal(type_, payload, number)
        began = time.process_time_ns()
        judgement = await shield.judge(one)
        await shield.record(
            one, [event_of("action_proposed", one), evaluated(one, judgement.verdict, judgement.labels)]
        )
        times.append((time.process_time_ns() - began) / 1_000)
    # Not those that read the policy and the weights for the first time.
    return times[_CALLS:]


def _proposal(type_: ActionType, payload: dict[str, Any], number: int) -> Proposal:
    return Proposal(
        action_id=f"act_{number}",
        action_hash=f"{number:064x}",
        tool=type_,
        group="bench",
        type=type_,
        built_in=True,
        reads_only=type_ in ("read_file", "search_web"),
        payload=payload,
        session_id="ses-1",
        message_id="msg-1",
        thread="console:local:bench",
        person="ada",
        owner="ada",
        private=True,
    )


async def _through_the_gate(shield: Shield, clock: ManualClock, folder: Path) -> _Gate:
    """Microseconds of a call of `write_note` alone, and of one that the model proposes."""
    group = notes_group(folder)
    turn = scope()
    (tool,) = (one for one in await group.tools(turn) if one.name == "write_note")
    payload = _LONG[2]
    plain, judged = [], []
    one = gate(group, judge=shield, clock=clock)
    for number in range(_TURNS):
        began = time.process_time_ns()
        for _ in range(_CALLS):
            await tool.run(payload, turn)
        plain.append((time.process_time_ns() - began) / 1_000 / _CALLS)
        await clock.advance(_MINUTE_S)
        calls = [call("write_note", payload, call_id=f"{number}-{index}") for index in range(_CALLS)]
        began = time.process_time_ns()
        results = await propose(one, *calls, scope=replace(turn, message_id=f"m{number}"), groups=("notes",))
        judged.append((time.process_time_ns() - began) / 1_000 / _CALLS)
        if not all(result.success for result in results):
            raise RuntimeError(f"a note was not kept: {results[0].content}")
    return _Gate(plain_us=median(plain), judged_us=median(judged))


async def _verified(store: SqliteStore, clock: ManualClock) -> float:
    """Seconds of processor time to check an audit of that many records."""
    audit = StoreAudit(store.shield.audit, clock)
    event = event_of("action_executed", _proposal("write_note", {}, 1))
    head = await store.shield.audit.head()
    missing = _RECORDS - (head.n if head else 0)
    while missing > 0:
        await audit.write([event] * min(missing, _AT_ONCE))
        missing -= _AT_ONCE
    began = time.process_time()
    report = await check_audit(store.shield.audit)
    took = time.process_time() - began
    if report.damage or report.records < _RECORDS:
        raise RuntimeError(f"the audit of the bench is not whole: {report}")
    return took
