"""A conversation in the terminal, from the typed line to the printed one, through a whole gateway."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from adapters.channel import Timeline
from adapters.console.adapter import ConsoleAdapter, ConsoleOptions
from gateway.app.bootstrap import Extras, build
from gateway.config import Secrets, load
from pipeline.domain.clock import SystemClock
from pipeline.graph.definition.spec import GraphSpec
from pipeline.llm.scripted import ScriptedLlm
from pipeline.runtime.context import RunContext
from tests.support.gate_graph import PROMPT, Ledger, gate_graph


async def _talk(data: Path, *typed: str, graph: GraphSpec[RunContext] | None = None) -> str:
    """Type the lines one after the other; what is in the terminal when the input has ended."""
    printed: list[str] = []

    async def lines() -> AsyncIterator[str]:
        for line in typed:
            yield line

    def terminal(timeline: Timeline) -> ConsoleAdapter:
        settings = ConsoleOptions(interactive=False)
        return ConsoleAdapter(settings, timeline, SystemClock(), lines=lines(), write=printed.append)

    quiet = ("channels.web.enabled=false", "channels.console.enabled=true", "agent.titles=false")
    settings = load(None, {}, [*quiet, f'data.dir="{data}"'])
    extras = Extras(channels=(terminal,), llm=ScriptedLlm.echo(), graph=graph, http=False)
    gateway = build(settings, Secrets(()), extras)
    await gateway.start()
    try:
        async with asyncio.timeout(60):
            await gateway.channels_ended()
    finally:
        await gateway.stop(5.0)
    return "".join(printed)


async def test_off_the_record_the_terminal_says_that_it_shows_the_words_itself(tmp_path: Path) -> None:
    shown = await _talk(tmp_path, "/otr")
    assert "off the record" in shown
    assert "This terminal shows it until you clear it." in shown
    assert "page" not in shown


async def test_the_words_of_a_paused_run_appear_once_above_how_to_answer(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    shown = await _talk(tmp_path / "data", "pay", "approve", graph=gate_graph(ledger))
    assert shown.count(PROMPT) == 1
    assert shown.index(PROMPT) < shown.index("Type approve or deny.")
    assert "pay: approve by owner" in shown
    assert ledger.lines() == ["prepare", "ask", "act approve"]


async def test_a_question_that_an_earlier_process_left_is_asked_in_full(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    await _talk(tmp_path / "data", "pay", graph=gate_graph(ledger))
    shown = await _talk(tmp_path / "data", "deny", graph=gate_graph(ledger))
    assert f"ask needs your approval: {PROMPT}\nType approve or deny.\n" in shown
    assert "pay: deny by owner" in shown
