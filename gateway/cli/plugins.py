"""`parlour plugins`: list the installed plug-ins, and why one is left out; the same for `parlour doctor`."""

from __future__ import annotations

from gateway.cli.findings import Finding
from gateway.cli.graph import write_out
from gateway.config.channel_plugins import channel_plugins
from pipeline.graph_book import graph_plugins, kind_plugins
from pipeline.plugins import Plugin
from pipeline.tools.plugins import tool_plugins


def list_plugins() -> int:
    """Print one line for each plug-in. Exit code 0, or 1 if one is left out."""
    plugins = _all()
    for one in plugins:
        state = f"left out: {one.problem}" if one.problem else "in use"
        write_out(f"{one.group}  {one.name}  ({one.package})  {state}\n")
    if not plugins:
        write_out("There are no plug-ins. docs/guides/plugins.md says how to write one.\n")
    return int(any(one.problem for one in plugins))


def plugin_finding() -> Finding | None:
    """Whether all plug-ins are in use; None without any."""
    plugins = _all()
    broken = [
        f"{one.group} {one.name} ({one.package}) is left out: {one.problem}" for one in plugins if one.problem
    ]
    words = "; ".join(broken) if broken else f"{len(plugins)} in use"
    return Finding(name="plug-ins", good=not broken, words=words) if plugins else None


def _all() -> tuple[Plugin, ...]:
    return (*graph_plugins(), *kind_plugins(), *tool_plugins(), *channel_plugins())
