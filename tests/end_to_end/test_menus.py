"""Values of a command as buttons: chosen once, by their person, and never by an ordinary message."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from gateway.storage.codec import MENU_S
from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import ApprovalReply, Author, SessionCommand, button_handle
from tests.support.harness import open_gateway
from tests.support.posting_channel import MemoryPosts

_COOK = ('agents.cook.description="Knows recipes"', 'routes.1.also=["cook"]')


def _agent(posts: MemoryPosts) -> SessionCommand:
    return SessionCommand(
        message_id="m_agent",
        native_id="agent",
        thread=posts.thread(),
        author=Author(id="ann"),
        received_at=0.0,
        name="agent",
    )


def _press(posts: MemoryPosts, number: int, *, author: str = "ann") -> ApprovalReply:
    return ApprovalReply(
        message_id=f"m_press{number}",
        native_id=f"press{number}",
        thread=posts.thread(),
        author=Author(id=author),
        received_at=0.0,
        interaction_id=button_handle("command_m_agent"),
        choice="",
        option=0,
    )


def _said(posts: MemoryPosts) -> str:
    return "".join(posts.texts())


def _has_said(posts: MemoryPosts, text: str) -> bool:
    return text in _said(posts)


async def test_a_press_runs_the_command_once_and_only_for_the_person_who_asked(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, *_COOK, posts=posts):
        await posts.bring(_agent(posts))
        await posts.until(lambda: any(one.buttons == ("cook",) for one in posts.messages))
        assert (await posts.bring(_press(posts, 1, author="bob"))).status == "refused"
        assert (await posts.bring(_press(posts, 2))).status == "accepted"
        await posts.until(lambda: "New conversation with cook" in _said(posts))
        again = await posts.bring(_press(posts, 3))
        assert (again.status, again.over) == ("refused", True)


async def test_a_press_works_after_a_restart_and_not_after_its_time(tmp_path: Path) -> None:
    for late in (False, True):
        posts, clock, data = MemoryPosts(), ManualClock(1_700_000_000.0), tmp_path / str(late)
        async with open_gateway(data, *_COOK, posts=posts, clock=clock):
            await posts.bring(_agent(posts))
            await posts.until(lambda: "Knows" in _said(posts))  # noqa: B023 - used before the next turn
        posts = MemoryPosts()
        await clock.advance(MENU_S if late else 1.0)
        async with open_gateway(data, *_COOK, posts=posts, clock=clock):
            pressed = await posts.bring(_press(posts, 1))
            assert pressed.status == ("refused" if late else "accepted")
            if not late:
                await posts.until(lambda: "New conversation with cook" in _said(posts))  # noqa: B023 - as above


async def test_a_message_that_is_the_name_of_a_value_stays_a_message(tmp_path: Path) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, *_COOK, posts=posts) as harness:
        await posts.bring(_agent(posts))
        await posts.until(lambda: "Knows" in _said(posts))
        for text in ("cook", "1"):
            await posts.receive(text, native_id=text)
            await posts.until(partial(_has_said, posts, f"You said: {text}"))
        assert len(harness.llm.requests) == 2
