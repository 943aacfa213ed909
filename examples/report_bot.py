"""A bot that answers in two steps, each with outputs that a judge checks, instead of the free conversation.

    python -m examples.report_bot --config parlour.toml

`gather` finds out what the answer needs, `write` writes it down; both work in one conversation. If a step
gives up, `apologise` says why. The gateway is the usual one, with its channels, tools and model backends.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from gateway.app.bootstrap import Extras, build
from gateway.cli.serve import open_logs
from gateway.config import environment, load
from pipeline.agent.task import TASK_CHANNELS, task_node
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.graph.definition.spec import EdgeSpec, Goal, GraphSpec, NodeSpec, OnFailure, OnSuccess
from pipeline.runtime.context import RunContext

GATHER = (
    "Find out what is needed to answer the user's request. Use tools where they help. Put what you have found"
    " into `facts`, as a list of short sentences, and what stays open into `gaps`."
)
WRITE = "Write the answer to the user's request from the facts: a few sentences, in the user's language."


def report_graph() -> GraphSpec[RunContext]:
    """gather -> write -> end; a step that fails goes to apologise."""
    return GraphSpec(
        name="report",
        entry="gather",
        goal=Goal(description="A short, true answer"),
        channels=TASK_CHANNELS,
        nodes={
            "gather": task_node(GATHER, ("facts", "gaps"), nullable=("gaps",), groups=("system",)),
            "write": task_node(
                WRITE, ("report",), criteria="It says nothing that the facts do not support.", answer="report"
            ),
            "apologise": NodeSpec(run=apologise, writes=("agent",)),
        },
        edges=(
            EdgeSpec(source="gather", target="write", when=OnSuccess()),
            EdgeSpec(source="gather", target="apologise", when=OnFailure()),
            EdgeSpec(source="write", target="apologise", when=OnFailure()),
        ),
    )


async def apologise(state: State, _context: RunContext) -> NodeResult:
    """Say what went wrong in the step before."""
    return NodeResult(update={"agent": {"answer": f"I could not do that. {state['failure']['message']}"}})


async def serve(config: Path | None) -> None:
    """Run the gateway until it is interrupted."""
    settings = load(config, environment(), [])
    gateway = build(settings, open_logs(settings), Extras(graph=report_graph()))
    await gateway.start()
    try:
        sys.stdout.write(f"The report bot is at {gateway.url}\n")
        await asyncio.Event().wait()
    finally:
        await gateway.stop()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A bot that answers in two judged steps.")
    parser.add_argument("--config", type=Path, help="a configuration file; the defaults without one")
    try:
        asyncio.run(serve(parser.parse_args().config))
    except KeyboardInterrupt:
        sys.stdout.write("Stopped.\n")


if __name__ == "__main__":
    main()
