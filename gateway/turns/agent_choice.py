"""Run the command /agent: list the agents of a chat, or choose one for a new conversation."""

from __future__ import annotations

from gateway.agents.agent_book import Agent, AgentBook
from gateway.storage.codec import menu_of
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import Clock
from pipeline.domain.messages import SessionCommand

_ONLY_ONE = "There is one agent here, and no other to choose."
_LIST = (
    "Here you can talk to:\n\n{lines}\n\n"
    "Send `/agent` with a name to choose one: it begins a new conversation."
)
_PROMPT = "Which agent do you want to talk to?"
_UNKNOWN = "There is no agent `{name}` here.\n\n{list}"
_SAME = "`{name}` answers here already."
CHOSEN = "New conversation with {name}"


class AgentChoice:
    """Runs the command in all threads."""

    def __init__(self, agents: AgentBook, clock: Clock) -> None:
        self._agents = agents
        self._clock = clock

    def is_possible(self, command: SessionCommand) -> bool:
        """Whether the author of `command` has a choice in that chat."""
        return len(self._choices(command)) > 1

    async def run(self, command: SessionCommand, journal: StoreJournal) -> None:
        """Show the agents, or begin a conversation with the named one. Raises StorageError."""
        choices = self._choices(command)
        current = self._agents.answering(
            command.thread, command.author.id, private=command.private, chosen=journal.chosen_agent
        )
        wanted = command.argument.casefold()
        found = next((agent for agent in choices if agent.name == wanted), None)
        if not wanted:
            others = tuple(agent.name for agent in choices if agent is not current)
            at = self._clock.now()
            menu = menu_of(command, _PROMPT, others, journal.session_id, at=at) if others else None
            await journal.commit_notice(_listed(choices, current), menu=menu)
        elif found is None:
            words = _UNKNOWN.format(name=_plain(command.argument), list=_listed(choices, current))
            await journal.commit_notice(words)
        elif found is current:
            await journal.commit_notice(_SAME.format(name=found.name))
        else:
            words = CHOSEN.format(name=found.name)
            await journal.commit_new_session(words, mode=journal.mode, agent=found.name)

    def _choices(self, command: SessionCommand) -> tuple[Agent, ...]:
        return self._agents.choices(command.thread, command.author.id, private=command.private)


def _listed(choices: tuple[Agent, ...], current: Agent) -> str:
    if len(choices) == 1:
        return _ONLY_ONE
    return _LIST.format(lines="\n".join(_line(agent, is_current=agent is current) for agent in choices))


def _line(agent: Agent, *, is_current: bool) -> str:
    words = f"- `{agent.name}`" + (" (answers now)" if is_current else "")
    return f"{words}: {agent.description}" if agent.description else words


def _plain(argument: str) -> str:
    """What a person wrote as a name, for one line between backticks."""
    return " ".join(argument.replace("`", "").split())[:32]
