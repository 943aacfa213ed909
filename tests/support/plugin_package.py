"""An installed package with plug-ins, as its files lie in site-packages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GOOD = '''
from pipeline.domain.chat import ToolDefinition
from pipeline.graph.definition.decisions import Continue, NodeResult
from pipeline.graph.definition.spec import GraphSpec, NodeSpec
from pipeline.tools.registry import FixedGroup
from pipeline.tools.tool import Tool, ToolOutput, tool_schema


async def _greet(_state, context):
    return NodeResult(update={"agent": {"status": "done", "answer": f"Welcome, {context.text}!"}})


def greeting():
    return GraphSpec(name="greeting", entry="greet", nodes={"greet": _greet}, edges=())


def count(given):
    """A kind of node that runs again until it has counted to `to`."""
    to = given.whole("to", default=3)

    async def run(state, _context):
        done = state.get("counted", 0) + 1
        return NodeResult(update={"counted": done}, decision=Continue()) if done < to else NodeResult(
            update={"counted": done}
        )

    return NodeSpec(run=run, writes=("counted",))


async def _tide(_arguments, _scope):
    return ToolOutput(text="High water is at six.")


tides = FixedGroup(
    name="tides",
    description="the tides",
    fixed=(
        Tool(
            definition=ToolDefinition(name="tide", description="The tide.", parameters=tool_schema({})),
            group="tides",
            run=_tide,
            reads_only=True,
        ),
    ),
)
wrong = 7
'''


def install(site: Path, modules: Mapping[str, str], entry_points: Mapping[str, Mapping[str, str]]) -> None:
    """Write the package `demo-plugins` 1.0 into a folder of the import path: modules by name, entry points
    by group and name."""
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source, "utf-8")
    info = site / "demo_plugins-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo-plugins\nVersion: 1.0\n", "utf-8")
    lines = []
    for group, names in entry_points.items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")
