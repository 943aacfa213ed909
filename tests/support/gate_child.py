"""`python -m tests.support.gate_child FOLDER LABEL:N`: run a graph with a gate and crash at the label.

The exit code is the crash label's, or 0 if the label was not reached.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from gateway.storage.ports import Interaction
from tests.support.gate_graph import Ledger, answer_to, gate_graph
from tests.support.harness import THREAD, open_gateway


async def main(folder: Path, crash_at: str) -> None:
    """Ask, answer, and wait for the end of the turn."""
    graph = gate_graph(Ledger(folder / "ledger"))
    async with open_gateway(folder / "data", graph=graph, crash_at=crash_at) as harness:
        asked = await harness.channel.say("pay")
        await harness.channel.reply(asked.message_id)
        pending: tuple[Interaction, ...] = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(pending[0].id, "approve"))
        await harness.channel.reply("m_answer")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
