"""The services that a host gives the pipeline next to the model and speech-to-text; null by default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from pipeline.domain.frozen import dataclass
from pipeline.domain.ids import ThreadKey, own_person
from pipeline.llm.client import LlmClient
from pipeline.redaction.redactor import Redactor
from pipeline.runtime.attachments import Attachments
from pipeline.runtime.links import InertLinks
from pipeline.runtime.null_services import (
    NullBudgets,
    NullFacts,
    NullRooms,
    NullSkills,
    NullTools,
    NullWorkspace,
    keep_links,
)
from pipeline.runtime.ports import Budgets, FactBook, Rooms, SkillBook, ToolGate, Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineServices:
    """The parts of the context that all turns share."""

    tools: ToolGate = field(default_factory=NullTools)
    skills: SkillBook = field(default_factory=NullSkills)
    workspace: Workspace = field(default_factory=NullWorkspace)
    facts: FactBook = field(default_factory=NullFacts)
    budgets: Budgets = field(default_factory=NullBudgets)
    rooms: Rooms = field(default_factory=NullRooms)
    redactor: Redactor = field(default_factory=Redactor)
    cheaper: LlmClient | None = None
    """The model for people whose budget is nearly spent."""
    person_of: Callable[[ThreadKey, str], str] = own_person
    """The key of the person that a user of an account is."""
    attachments: Attachments | None = None
    """Fetches and reads the attachments of messages; None: they are left out."""
    inert_links: InertLinks = keep_links
    """Removes links from the answers of conversations with foreign text."""
