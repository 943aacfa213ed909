"""Build the session commands, with the links between the identities of a person."""

from __future__ import annotations

from gateway.access.policy import AccessPolicy
from gateway.agents.agent_book import AgentBook
from gateway.app.components import Foundation
from gateway.app.tools import SharedTools
from gateway.people.announcements import Announcer
from gateway.people.linking import Linking
from gateway.turns.commands import SessionCommands
from gateway.turns.link_commands import LinkCommands


def build_commands(
    base: Foundation,
    agents: AgentBook,
    tools: SharedTools,
    access: AccessPolicy,
) -> SessionCommands:
    """Build them."""
    linking = Linking(
        book=base.store.identities,
        people=base.people,
        preferences=base.preferences,
        sums=tools.budgets,
        carry_over=tools.carry_over,
        clock=base.clock,
    )
    announcer = Announcer(
        store=base.store, clock=base.clock, wake=base.bus.wake, still_allowed=access.still_allows
    )
    return SessionCommands(
        preferences=base.preferences,
        can_speak=base.replies.possible,
        copies=base.broadcaster.copies,
        agents=agents,
        links=LinkCommands(linking, announcer),
    )
