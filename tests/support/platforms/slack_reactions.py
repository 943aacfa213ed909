"""The fake Slack's reactions: a bot's own, each once on a message."""

from __future__ import annotations

from typing import Any

from tests.support.platforms.slack_state import Workspace


class ReactionMethods:
    """Answers reactions.add and reactions.remove."""

    workspace: Workspace

    def _do_reactions_add(self, payload: dict[str, Any]) -> dict[str, Any]:
        reaction, known = self._reaction(payload)
        if not known:
            return {"error": "message_not_found"}
        if reaction in self.workspace.reactions:
            return {"error": "already_reacted"}
        self.workspace.reactions.append(reaction)
        return {}

    def _do_reactions_remove(self, payload: dict[str, Any]) -> dict[str, Any]:
        reaction, known = self._reaction(payload)
        if not known:
            return {"error": "message_not_found"}
        if reaction not in self.workspace.reactions:
            return {"error": "no_reaction"}
        self.workspace.reactions.remove(reaction)
        return {}

    def _reaction(self, payload: dict[str, Any]) -> tuple[tuple[str, str, str], bool]:
        """The reaction that is meant, and whether its message exists."""
        channel, ts = str(payload.get("channel")), str(payload.get("timestamp"))
        known = any((one.channel, one.ts) == (channel, ts) for one in self.workspace.messages)
        return (channel, ts, str(payload.get("name"))), known
