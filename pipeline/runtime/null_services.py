"""Null implementations of the ports: no tools, skills, workspace, facts or budgets.

For hosts that only want a conversation, and for code that builds a run by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipeline.domain.chat import ToolCall, ToolDefinition
from pipeline.domain.conversation import Conversation, Summary
from pipeline.domain.messages import ApprovalReply, InboundMessage
from pipeline.domain.rooms import RoomTalk
from pipeline.runtime.ports import Allowance, SkillSummary, ToolResult, WorkspaceTexts
from pipeline.runtime.scope import TurnScope


class NullTools:
    """A gate without tools."""

    async def prepare(self, _groups: Sequence[str], _scope: TurnScope) -> None:
        return None

    def offered(self, _groups: Sequence[str], _scope: TurnScope) -> tuple[ToolDefinition, ...]:
        return ()

    async def propose(self, call: ToolCall, _groups: Sequence[str], _scope: TurnScope) -> ToolResult:
        return ToolResult(content=f"Unknown tool: {call.name}", success=False, summary="there are no tools")


class NullRooms:
    """No names and no earlier messages of a room."""

    async def named(self, message: InboundMessage) -> InboundMessage:
        return message

    async def talk(self, _message: InboundMessage | ApprovalReply, _said: Conversation) -> RoomTalk:
        return RoomTalk()


_NOTHING_SAID = Conversation()
_NO_TALK = RoomTalk()


class KnownHistory:
    """A history that needs no reading; empty by default. Its summaries are not kept."""

    def __init__(self, conversation: Conversation | None = None, room: RoomTalk | None = None) -> None:
        self._conversation = conversation or _NOTHING_SAID
        self._room = room or _NO_TALK

    async def conversation(self) -> Conversation:
        return self._conversation

    async def room(self) -> RoomTalk:
        return self._room

    async def summarise(self, _summary: Summary) -> bool:
        return False


class NullSkills:
    """No skills."""

    def summaries(self) -> tuple[SkillSummary, ...]:
        return ()

    def body(self, _name: str) -> str | None:
        return None


class NullWorkspace:
    """No workspace texts."""

    def texts(self, _scope: TurnScope) -> WorkspaceTexts:
        return WorkspaceTexts()


class NullFacts:
    """Stores no facts."""

    async def remember(self, scope: TurnScope, facts: Sequence[str]) -> None:
        del scope, facts


class NullBudgets:
    """No limits on tokens or cost."""

    async def allowance(self, _scope: TurnScope) -> Allowance:
        return Allowance()

    async def spent(self, _scope: TurnScope, *, tokens: int, cost: float) -> None:
        del tokens, cost


def keep_links(markdown: str, may_link: Callable[[str], bool], *, rewrite: bool = False) -> str:
    """An `InertLinks` that changes nothing, for a host that shows no links."""
    del may_link, rewrite
    return markdown
