"""Which agent answers where: every key of a route, their order, and what matches nowhere.

Covers: gateway/agents/routes.py.
"""

from __future__ import annotations

import pytest

from gateway.agents.routes import AgentRoutes
from gateway.config import RouteSettings
from pipeline.domain.ids import ThreadKey

HERE = ThreadKey(channel="telegram", account="shop_bot", chat="-100")


def names(*routes: RouteSettings, author: str = "ann", private: bool = False) -> tuple[str, ...]:
    return AgentRoutes(routes).names(HERE, author, private=private)


@pytest.mark.parametrize(
    ("matches", "differs"),
    [
        (RouteSettings(agent="a", channel="telegram"), RouteSettings(agent="a", channel="slack")),
        (RouteSettings(agent="a", account="shop_bot"), RouteSettings(agent="a", account="main")),
        (RouteSettings(agent="a", room="-100"), RouteSettings(agent="a", room="-101")),
        (RouteSettings(agent="a", person="ann"), RouteSettings(agent="a", person="bob")),
        (RouteSettings(agent="a", kind="room"), RouteSettings(agent="a", kind="private")),
    ],
)
def test_each_key_of_a_route_chooses_messages(matches: RouteSettings, differs: RouteSettings) -> None:
    assert names(matches) == ("a",)
    assert names(differs) == ("default",)


def test_a_private_chat_is_no_room() -> None:
    route = RouteSettings(agent="a", kind="private")
    assert names(route, private=True) == ("a",)
    assert names(route, private=False) == ("default",)


def test_every_key_has_to_match_and_the_first_route_counts() -> None:
    both = RouteSettings(agent="a", channel="telegram", person="bob")
    later = RouteSettings(agent="b", also=("c", "b", "d"))
    last = RouteSettings(agent="e")
    assert names(both, later, last) == ("b", "c", "d")
    assert names(both, later, last, author="bob") == ("a",)


def test_without_a_route_the_default_agent_answers() -> None:
    assert names() == ("default",)
