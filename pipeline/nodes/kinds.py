"""All kinds of nodes by name. docs/guides/graphs.md explains their parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from pipeline.graph.definition.spec import NodeSpec
from pipeline.graph.documents.fields import Fields
from pipeline.nodes.agents import agent_kind, task_kind
from pipeline.nodes.answers import reply_kind
from pipeline.nodes.flow import condition_kind, delay_kind, question_kind
from pipeline.nodes.model import judge_kind, model_kind
from pipeline.nodes.tools import tool_kind
from pipeline.runtime.context import RunContext

Kind: TypeAlias = Callable[[Fields], NodeSpec[RunContext]]
"""Makes a node from its parameters, and notes what is wrong with them."""

NODE_KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "agent": agent_kind,
        "task": task_kind,
        "model": model_kind,
        "judge": judge_kind,
        "tool": tool_kind,
        "condition": condition_kind,
        "question": question_kind,
        "delay": delay_kind,
        "reply": reply_kind,
    }
)
