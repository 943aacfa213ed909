"""What `parlour doctor` finds about the page's workflow editor, and about agents with saved workflows."""

from __future__ import annotations

from gateway.app.store import saved_graphs
from gateway.cli.stored_books import store_place, stored_books
from gateway.config import DEFAULT_AGENT, Settings, agent_settings
from gateway.editor.editing import OWNER
from pipeline.domain.errors import ConfigurationError, ParlourError
from pipeline.graph_book import SAVED


async def editor_state(settings: Settings) -> tuple[bool, str] | None:
    """Whether everyone named is invited, and what to say; None where no one may edit."""
    names = settings.channels.web.editor
    if not names:
        return None
    try:
        async with stored_books(store_place(settings, "people")) as books:
            invited = {person.name.casefold() for person in await books.people.people()}
    except ParlourError:
        invited = set()
    absent = [name for name in names if name.casefold() not in {*invited, OWNER}]
    words = f"open to {', '.join(names)}"
    if absent:
        words += f"; not invited: {', '.join(absent)} (`parlour people invite --name NAME`)"
    return not absent, words


def saved_graphs_state(settings: Settings) -> tuple[bool, str] | None:
    """Whether the agents' saved workflows can run, and what to say; None where no agent names one."""
    agents = {name: agent_settings(settings, name).agent.graph for name in (DEFAULT_AGENT, *settings.agents)}
    saved = {name: graph for name, graph in agents.items() if graph.startswith(SAVED)}
    if not saved:
        return None
    book = saved_graphs(settings)
    mistakes: list[str] = []
    for graph in dict.fromkeys(saved.values()):
        try:
            book.open(graph)
        except ConfigurationError as error:
            mistakes += str(error).splitlines()
    return not mistakes, "; ".join(mistakes) or ", ".join(
        f"{graph} ({name})" for name, graph in saved.items()
    )
