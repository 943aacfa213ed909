"""What a host gives the pipeline besides the model and the ears; by default nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.null_services import (
    NoBudgets,
    NoFacts,
    NoRooms,
    NoSkills,
    NoTools,
    NoWorkspace,
    links_stay,
)
from pipeline.runtime.ports import Budgets, FactBook, InertLinks, Rooms, SkillBook, ToolGate, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The parts of every turn's context that are the same for all of them."""

    tools: ToolGate = field(default_factory=NoTools)
    skills: SkillBook = field(default_factory=NoSkills)
    workspace: Workspace = field(default_factory=NoWorkspace)
    facts: FactBook = field(default_factory=NoFacts)
    budgets: Budgets = field(default_factory=NoBudgets)
    rooms: Rooms = field(default_factory=NoRooms)
    redactor: Redactor = field(default_factory=Redactor)
    cheaper: LlmClient | None = None
    """The model for whose budget is nearly spent."""
    inert_links: InertLinks = links_stay
    """What answers of conversations with foreign text go through."""
