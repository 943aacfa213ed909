"""A pipeline without tools, skills, workspace and budget: the ports' emptiest implementations.

For hosts that want nothing but a conversation, and for whoever builds a run by hand.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.runtime.ports import Allowance, SkillSummary, ToolResult, WorkspaceTexts
from pipeline.runtime.scope import TurnScope


class NoTools:
    """A gate behind which there is nothing."""

    def offered(self, _groups: Sequence[str], _scope: TurnScope) -> tuple[ToolDefinition, ...]:
        return ()

    async def propose(self, call: ToolCall, _groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        return ToolResult(content=f"Unknown tool: {call.name}", success=False, summary="there are no tools")


class NoSkills:
    """A book without a page."""

    def summaries(self) -> tuple[SkillSummary, ...]:
        return ()

    def body(self, _name: str) -> str | None:
        return None


class NoWorkspace:
    """Nothing is written down."""

    def texts(self, _scope: TurnScope) -> WorkspaceTexts:
        return WorkspaceTexts()


class NoFacts:
    """Nothing is remembered."""

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        del scope, facts


class NoBudgets:
    """Everybody may spend what they like."""

    async def allowance(self, _scope: TurnScope) -> Allowance:
        return Allowance()

    async def spent(self, _scope: TurnScope, *, tokens: int, cost: float) -> None:
        del tokens, cost
