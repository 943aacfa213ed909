"""Run the command /model: list the models of the agent that answers, or choose one for the conversation."""

from __future__ import annotations

from gateway.agents.agent_book import Agent, AgentBook
from gateway.storage.codec import menu_of
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import Clock
from pipeline.domain.messages import SessionCommand

_ONLY_ONE = "`{name}` answers here, and there is no other model to choose."
_LIST = (
    "Here you can choose between:\n\n{lines}\n\n"
    "Send `/model` with a name to choose one. It answers from then on in this conversation."
)
_PROMPT = "Which model do you want?"
_UNKNOWN = "There is no model `{name}` here.\n\n{list}"
_SAME = "`{name}` answers here already."
_CHOSEN = "`{name}` answers from now on in this conversation."
_MOST_CHARS = 100


class ModelChoice:
    """Runs the command in all threads."""

    def __init__(self, agents: AgentBook, clock: Clock) -> None:
        self._agents = agents
        self._clock = clock

    def is_possible(self, command: SessionCommand) -> bool:
        """Whether the agent that answers the author has a choice of models."""
        return bool(self._agent(command, "").choices)

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show the models, or choose the named one. Raises StorageError."""
        agent = self._agent(command, journal.chosen_agent)
        current = agent.using(journal.chosen_model).models.name
        names = (agent.models.name, *agent.choices)
        wanted = command.argument.casefold()
        found = next((name for name in names if name.casefold() == wanted), None)
        if not wanted:
            others = tuple(name for name in names if name != current)
            at = self._clock.now()
            menu = menu_of(command, _PROMPT, others, journal.session_id, at=at) if others else None
            await journal.commit_notice(_listed(names, current), menu=menu)
        elif found is None:
            name = " ".join(command.argument.replace("`", "").split())[:_MOST_CHARS]
            await journal.commit_notice(_UNKNOWN.format(name=name, list=_listed(names, current)))
        elif found == current:
            await journal.commit_notice(_SAME.format(name=found))
        else:
            chosen = "" if found == agent.models.name else found
            await journal.commit_notice(_CHOSEN.format(name=found), model=chosen)

    def _agent(self, command: SessionCommand, chosen: str) -> Agent:
        author = command.author.id
        return self._agents.answering(command.thread, author, private=command.private, chosen=chosen)


def _listed(names: tuple[str, ...], current: str) -> str:
    if len(names) == 1:
        return _ONLY_ONE.format(name=current)
    lines = (f"- `{name}`" + (" (answers now)" if name == current else "") for name in names)
    return _LIST.format(lines="\n".join(lines))
