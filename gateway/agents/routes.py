"""Find the agents of a chat by the configured routes."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.api.run_ids import KEY, workflow_of
from gateway.config import DEFAULT_AGENT, RouteSettings
from pipeline.domain.ids import ThreadKey

_DEFAULT = RouteSettings()


class AgentRoutes:
    """The routes in their order: the first that matches counts."""

    def __init__(self, routes: Sequence[RouteSettings] = ()) -> None:
        self._routes = tuple(routes)

    def names(self, thread: ThreadKey, author: str, *, private: bool) -> tuple[str, ...]:
        """The name of the agent that answers the author's messages in that chat, and after it those that
        people can choose there instead. A run of the API names its agent itself."""
        if thread.account_key == KEY:
            return (workflow_of(str(thread.topic)) or DEFAULT_AGENT,)
        if not self._routes:
            return (DEFAULT_AGENT,)
        route = next((one for one in self._routes if _matches(one, thread, author, private)), _DEFAULT)
        return tuple(dict.fromkeys((route.agent, *route.also)))

    def answering(self, thread: ThreadKey, author: str, *, private: bool, chosen: str) -> str:
        """The name of the agent that answers the author's next message. `chosen` is the one that was chosen
        in the chat, empty for none: it counts as long as this author may choose it."""
        names = self.names(thread, author, private=private)
        return chosen if chosen in names else names[0]


def _matches(route: RouteSettings, thread: ThreadKey, author: str, private: bool) -> bool:  # noqa: FBT001 - one call
    return (
        route.channel in (None, thread.channel)
        and route.account in (None, thread.account)
        and route.room in (None, thread.chat)
        and route.person in (None, author)
        and route.kind in (None, "private" if private else "room")
    )
