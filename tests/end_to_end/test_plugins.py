"""Plug-ins add graphs, kinds of nodes and tools; a broken one is named and the rest works.

Covers: pipeline/plugins.py, pipeline/tools/plugins.py, gateway/cli/plugins.py,
pipeline/graph/execution/edge_selection.py.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.main import main
from gateway.cli.plugins import plugin_finding
from pipeline.domain.chat import ToolCall
from pipeline.graph_book import graph_plugins, installed_graphs, kind_plugins
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.plugins import installed
from pipeline.tools.plugins import tool_plugins
from tests.support.harness import GatewayHarness, open_gateway
from tests.support.plugin_package import GOOD, install
from tests.support.posting_channel import MemoryPosts

_CACHES = (installed_graphs, graph_plugins, kind_plugins, tool_plugins)
_GOOD = {
    "parlour.graphs": {"greeting": "demo_good:greeting"},
    "parlour.nodes": {"count": "demo_good:count"},
    "parlour.tools": {"tides": "demo_good:tides"},
}
_BROKEN = {
    "parlour.graphs": {"conversation": "demo_good:greeting", "seven": "demo_good:wrong"},
    "parlour.nodes": {"raises": "demo_raises:x", "exits": "demo_exits:x", "absent": "demo_good:nothing"},
    "parlour.tools": {"seven": "demo_good:wrong"},
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the import path, and no memory of plug-ins before and after."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    _forget()
    yield folder
    _forget()


def _forget() -> None:
    for cache in _CACHES:
        cache.cache_clear()
    for name in [name for name in sys.modules if name.startswith("demo_")]:
        del sys.modules[name]
    importlib.invalidate_caches()


async def _ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def test_a_graph_a_kind_of_node_and_a_tool_of_a_plug_in_answer_on_two_channels(
    site: Path, tmp_path: Path
) -> None:
    install(site, {"demo_good": GOOD}, _GOOD)
    document = tmp_path / "count.json"
    nodes = [
        {"id": "count", "run": "count", "with": {"to": 4}},
        {"id": "look", "run": "tool", "with": {"tool": "tide", "group": "plugins:tides", "output": "tide"}},
        {"id": "say", "run": "reply", "with": {"text": "{counted}. {tide}"}},
    ]
    edges = [{"source": "count", "target": "look"}, {"source": "look", "target": "say"}]
    document.write_text(
        json.dumps({"name": "counting", "entry": "count", "nodes": nodes, "edges": edges}), "utf-8"
    )
    posts = MemoryPosts()
    overrides = (
        f'agent.graph="{document}"',
        'agents.porter.graph="greeting"',
        'routes.1.agent="porter"',
        f'routes.1.account="{posts.account}"',
    )
    async with open_gateway(tmp_path, *overrides, posts=posts) as harness:
        assert await _ask(harness, "how is the tide?") == "4. High water is at six."
        await posts.receive("Ann", native_id="n1", chat="ann", author="ann")
        await posts.until(lambda: "Welcome, Ann!" in "".join(posts.texts("ann")))


async def test_a_model_loads_the_tools_of_a_plug_in_unless_a_setting_turns_them_off(
    site: Path, tmp_path: Path
) -> None:
    install(site, {"demo_good": GOOD}, _GOOD)
    load = ToolCall(id="c1", name="load_tools", arguments='{"groups": ["plugins:tides"]}')
    use = ToolCall(id="c2", name="tide", arguments="{}")
    script = [ScriptedAnswer.calling(load), ScriptedAnswer.calling(use), ScriptedAnswer.of("At six.")]
    llm = ScriptedLlm(script)
    async with open_gateway(tmp_path, llm=llm) as harness:
        assert await _ask(harness, "tide?") == "At six."
        assert "High water is at six." in llm.requests[2].messages[-1].content
    without = ScriptedLlm()
    async with open_gateway(tmp_path, 'tools.groups=["notes"]', llm=without) as harness:
        await _ask(harness, "tide?")
        assert "tides" not in json.dumps([tool.description for tool in without.requests[0].tools])


async def test_broken_plug_ins_are_named_and_left_out(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    modules = {
        "demo_good": GOOD,
        "demo_raises": "raise RuntimeError('no\\nlicence')",
        "demo_exits": "import sys\nsys.exit(3)",
    }
    install(site, modules, {group: {**_GOOD[group], **_BROKEN[group]} for group in _GOOD})
    assert main(["plugins"]) == 1
    printed = capsys.readouterr().out.replace("parlour.", "").replace("(demo-plugins 1.0)  ", "")
    assert printed.splitlines() == [
        "graphs  conversation  left out: ValueError: conversation is the name of a shipped graph",
        "graphs  greeting  in use",
        "graphs  seven  left out: TypeError: expected a GraphSpec or a function that returns one, not int",
        "nodes  absent  left out: AttributeError: module 'demo_good' has no attribute 'nothing'",
        "nodes  count  in use",
        "nodes  exits  left out: SystemExit: 3",
        "nodes  raises  left out: RuntimeError: no licence",
        "tools  seven  left out: TypeError: 'int' object is not callable",
        "tools  tides  in use",
    ]
    found = plugin_finding()
    assert found is not None
    assert not found.good
    assert "parlour.nodes exits (demo-plugins 1.0) is left out: SystemExit: 3" in found.words
    async with open_gateway(tmp_path, 'agent.graph="greeting"') as harness:
        assert await _ask(harness, "Bob") == "Welcome, Bob!"


def test_an_import_that_hangs_is_given_up(site: Path) -> None:
    hangs = "import threading\nthreading.Event().wait()\n"
    install(site, {"demo_hangs": hangs}, {"parlour.graphs": {"slow": "demo_hangs:x"}})
    (plugin,) = installed("parlour.graphs", lambda _name, value: value, wait_s=0.05)
    assert plugin.problem == "its import took longer than 0.05 s"


def test_without_plug_ins_the_command_says_where_to_read(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site.is_dir()
    assert main(["plugins"]) == 0
    assert "docs/guides/plugins.md" in capsys.readouterr().out
