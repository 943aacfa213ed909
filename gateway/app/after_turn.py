"""Build the work after a turn: titles, summaries and the ends of sessions, as kinds of jobs."""

from __future__ import annotations

from gateway.agents.agent_book import AgentBook
from gateway.app.companion import has_companion
from gateway.app.components import Foundation
from gateway.app.tools import SharedTools
from gateway.scheduling.jobs import JobKind, JobRunner
from gateway.turns.after_answer import FORGETTING, MEMORY, AfterAnswers
from gateway.turns.after_turn import SUMMARY, TITLE, AfterTurn
from gateway.turns.session_ends import (
    ROTATION,
    SESSION_END,
    SESSION_MEMORY,
    SessionEnds,
    WhenIdle,
)
from gateway.turns.session_memory import SessionMemories
from gateway.turns.summarizer import RETRY_AFTER_S, Summaries
from gateway.turns.titler import Titles

_AT_ONCE = 64
"""Jobs that wait for their thread to be idle; titles and summaries ask the model one at a time."""


def build_after_turn(
    base: Foundation, jobs: JobRunner, agents: AgentBook, tools: SharedTools, when_idle: WhenIdle
) -> AfterTurn:
    """Build it, and register its kinds of jobs."""
    titles = None
    if base.settings.agent.titles:
        titles = Titles(
            store=base.store,
            models=agents.models,
            budgets=tools.budgets,
            clock=base.clock,
            redactor=base.redactor,
            on_titled=base.page.show_recorded,
        )
    summaries = Summaries(
        store=base.store,
        models=agents.models,
        budgets=tools.budgets,
        clock=base.clock,
        redactor=base.redactor,
    )
    remembers = has_companion(base.settings)
    ends = SessionEnds(
        store=base.store,
        clock=base.clock,
        models=agents.models,
        when_idle=when_idle,
        on_ended=tools.ending(base.page.show_recorded),
        add=jobs.add if remembers else None,
        crash_labels=base.crash_labels,
    )
    after = AfterTurn(
        titles=titles,
        summaries=summaries,
        ends=ends,
        when_idle=when_idle,
        person_of=base.people.person_of,
        added=jobs.note_added,
        remembers=remembers,
        crises=base.crises,
    )
    jobs.handle(JobKind(name=TITLE, run=after.title, at_once=_AT_ONCE))
    jobs.handle(JobKind(name=SUMMARY, run=after.summarise, at_once=_AT_ONCE, retry_after_s=RETRY_AFTER_S))
    jobs.handle(JobKind(name=SESSION_END, run=ends.run, at_once=_AT_ONCE))
    answers = AfterAnswers(
        store=base.store,
        agents=agents,
        clock=base.clock,
        when_idle=when_idle,
        crash_labels=base.crash_labels,
        person_of=base.people.person_of,
    )
    jobs.handle(JobKind(name=FORGETTING, run=answers.forget, at_once=_AT_ONCE))
    jobs.handle(JobKind(name=MEMORY, run=answers.run, at_once=_AT_ONCE))
    memories = SessionMemories(
        store=base.store, agents=agents, when_idle=when_idle, crash_labels=base.crash_labels
    )
    jobs.handle(JobKind(name=SESSION_MEMORY, run=memories.run, at_once=_AT_ONCE))
    jobs.handle(JobKind(name=ROTATION, run=ends.rotate, at_once=_AT_ONCE))
    return after
