"""Run the command /run: list the workflows of a chat, or prepare the run of one for one message.

The run is a separate turn, durable as any other; the chat's agent and conversation stay as they are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from gateway.agents.agent_book import Agent, AgentBook
from gateway.storage.codec import menu_of
from gateway.turns.journal import StoreJournal
from pipeline.domain.clock import Clock
from pipeline.domain.command_types import Words
from pipeline.domain.messages import InboundMessage, SessionCommand

_NONE: Final[Words] = {
    "en": "There is no workflow here that you could run. The operator of this bot offers one in a chat by a "
    'route: `also = ["NAME"]`, with the name of the agent that runs it.',
    "de": "Hier gibt es keinen Workflow, den du ausführen könntest. Wer diesen Bot betreibt, bietet ihn in "
    'einem Chat mit einer Route an: `also = ["NAME"]`, mit dem Namen des Agenten, der ihn ausführt.',
    "fr": "Il n'y a ici aucun workflow que vous pourriez exécuter. La personne qui gère ce bot en propose un "
    "dans une discussion par une route : `also = [\"NOM\"]`, avec le nom de l'agent qui l'exécute.",
    "es": "Aquí no hay ningún flujo que puedas ejecutar. Quien administra este bot ofrece uno en un chat "
    'mediante una ruta: `also = ["NOMBRE"]`, con el nombre del agente que lo ejecuta.',
}
"""Said in the language that its reader spoke last, or that of the agent."""
_LIST = "Here you can run:\n\n{lines}\n\nSend `/run` with a name, and your message behind it."
_PROMPT = "Which workflow do you want to run?"
_UNKNOWN = "There is no workflow `{name}` here.\n\n{list}"
_NO_TEXT = "Send `/run {name}` with your message behind it: the workflow begins with that."
_BEGUN_WITH = "Begin."
"""What a workflow begins with that needs no message."""


class RunCommand:
    """Prepares the runs of all threads. Keeps no state between two commands."""

    def __init__(
        self, agents: AgentBook, clock: Clock, language_of: Callable[[SessionCommand], Awaitable[str]]
    ) -> None:
        """`language_of` returns the tag of the language that a command's author speaks; empty for none
        known."""
        self._agents = agents
        self._clock = clock
        self._language_of = language_of

    def is_possible(self, command: SessionCommand) -> bool:
        """Whether there is a workflow that the author of `command` may run in that chat."""
        return bool(self._workflows(command))

    async def message_of(self, command: SessionCommand, journal: StoreJournal) -> InboundMessage | None:
        """The message with which the named workflow runs; the journal then has its agent. None if the entry
        is finished with a line: the list of workflows, or what is missing. Raises StorageError."""
        found = self._workflows(command)
        name, text = _parted(command.argument)
        agent = next((one for one in found if one.name.casefold() == name.casefold()), None)
        if agent is None:
            await self._show(command, journal, found, name)
            return None
        if not text and agent.workflow is not None and agent.workflow.needs_text:
            await journal.commit_notice(_NO_TEXT.format(name=agent.name))
            return None
        journal.messages.run_as(self._agents.recorded_name(agent))
        return command.as_message(text or _BEGUN_WITH, journal.mode)

    async def _show(
        self, command: SessionCommand, journal: StoreJournal, found: tuple[Agent, ...], name: str
    ) -> None:
        listed = _listed(found) if found else await self._none(command)
        if name:
            await journal.commit_notice(_UNKNOWN.format(name=_plain(name), list=listed))
            return
        names, at = tuple(agent.name for agent in found), self._clock.now()
        menu = menu_of(command, _PROMPT, names, journal.session_id, at=at) if names else None
        await journal.commit_notice(listed, menu=menu)

    async def _none(self, command: SessionCommand) -> str:
        spoken = (await self._language_of(command)).casefold().partition("-")[0]
        return next((words for language, words in _NONE.items() if language == spoken), _NONE["en"])

    def _workflows(self, command: SessionCommand) -> tuple[Agent, ...]:
        return self._agents.workflows(command.thread, command.author.id, private=command.private)


def _parted(argument: str) -> tuple[str, str]:
    """The name and the text behind it."""
    name, *rest = argument.split(maxsplit=1) or [""]
    return name, rest[0] if rest else ""


def _listed(found: tuple[Agent, ...]) -> str:
    lines = [f"- `{one.name}`" + (f": {one.description}" if one.description else "") for one in found]
    return _LIST.format(lines="\n".join(lines))


def _plain(name: str) -> str:
    """What a person wrote as a name, for one line between backticks."""
    return " ".join(name.replace("`", "").split())[:32]
