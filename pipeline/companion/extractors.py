from __future__ import annotations
from typing import Any
from pipeline.companion.state import DIAGNOSTICS
from pipeline.graph.definition.decisions import NodeResult, State
from pipeline.runtime.context import RunContext


async def extract_semantic_facts(state: State, context: RunContext) -> NodeResult:
    return NodeResult(update={DIAGNOSTICS: {"extract_facts_reason": "skipped: x"}})


async def extract_procedural_rules(state: State, context: RunContext) -> NodeResult:
    return NodeResult(update={DIAGNOSTICS: {"extract_procedural_reason": "skipped: x"}})
