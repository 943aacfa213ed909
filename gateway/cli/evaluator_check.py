"""Check the shield's evaluator for `parlour doctor` by one real call about a harmless action."""

from __future__ import annotations

from gateway.app.llm import ModelClients
from gateway.app.shield import build_evaluator
from gateway.cli.findings import Finding
from gateway.config import Settings, evaluator_settings
from gateway.storage.memory import MemoryStore
from pipeline.domain.clock import Clock
from pipeline.domain.errors import ParlourError
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.null_services import NullBudgets
from pipeline.shield.levels import UNLABELLED
from pipeline.shield.proposal import Proposal

_NAME = "evaluator"
_SAMPLE = Proposal(
    action_id="doctor",
    action_hash="",
    tool="write_note",
    group="notes",
    type="write_note",
    built_in=True,
    reads_only=False,
    payload={"title": "tea", "text": "buy green tea"},
    session_id="",
    message_id="",
    thread="console:local:doctor",
    person="doctor",
    owner="doctor",
    private=True,
)


async def evaluator_finding(name: str, settings: Settings, clock: Clock) -> Finding:
    """Whether the evaluator, the model `name`, answers with its canary. The call does not count in
    shield.evaluator_per_day."""
    clients, store = ModelClients(settings, clock), MemoryStore()
    try:
        await store.open()
        evaluator = build_evaluator(
            settings.shield,
            clients.main(evaluator_settings(settings)),
            calls=store.shield.evaluator_calls,
            clock=clock,
            budgets=NullBudgets(),
            redactor=Redactor(),
        )
        started = clock.monotonic()
        said = await evaluator.evaluate(_SAMPLE, UNLABELLED, ())
    except ParlourError as error:
        return Finding(name=_NAME, good=False, words=f"{name}: {error}")
    finally:
        await clients.close()
        await store.close()
    if said.counts:
        seconds = clock.monotonic() - started
        words = (
            f"asked whether a note may be kept, it said {said.decision} with its canary after {seconds:.1f} s"
        )
    else:
        detail = f" ({said.detail})" if said.detail else ""
        words = f"{said.reasoning}{detail}; until then a person is asked at tier 2"
    return Finding(name=_NAME, good=said.counts, words=f"{name}: {words}")
