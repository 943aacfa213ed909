"""Entries that no terminal event reports: an open page gets them live, as a later one reads them.

Covers: gateway/turns/journal.py.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.gateway_process import free_port
from tests.support.harness import open_gateway
from tests.support.web_client import Frame, WebChat


def _entry(frame: Frame) -> tuple[int, str, str]:
    """Its number, its role and its words, as the page shows them."""
    return frame["entry_id"], frame["role"], frame["text"]


async def test_a_page_gets_words_notices_and_sessions_as_they_are_on_record(tmp_path: Path) -> None:
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    async with open_gateway(tmp_path, *web) as harness, WebChat() as chat:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await chat.connect(harness.gateway.url, token)
        live: list[Frame] = []
        for client_id, text, role in (
            ("c1", "hello", "user"),
            ("c2", "/agent", "notice"),
            ("c3", "/new", "session"),
        ):
            await chat.send_text(client_id, text)
            message_id = await chat.accepted(client_id)
            live.append(
                await chat.wait_for(
                    lambda frame, role=role, message_id=message_id: (  # type: ignore[misc]  # bound in the loop
                        frame["type"] == "entry"
                        and (frame["role"], frame["message_id"]) == (role, message_id)
                        and frame["entry_id"] > 0
                    )
                )
            )
        later = await chat.connect(harness.gateway.url, token, after=0)
        stored = [_entry(frame) for frame in later if frame["type"] == "entry"]
    assert [role for _, role, _ in map(_entry, live)] == ["user", "notice", "session"]
    assert {_entry(frame) for frame in live} <= set(stored)


async def test_the_end_of_a_turn_and_its_answer_on_record_come_in_one_message(tmp_path: Path) -> None:
    web = ("channels.web.enabled=true", f"server.port={free_port()}")
    async with open_gateway(tmp_path, *web) as harness, WebChat() as chat:
        token = (tmp_path / "web-token").read_text(encoding="ascii").strip()
        await chat.connect(harness.gateway.url, token)
        await chat.send_text("c1", "hello")
        end = await chat.terminal(await chat.accepted("c1"))
        others = [_entry(frame)[:2] for frame in chat.unread if frame["type"] == "entry"]
    assert (end.entry_id, "assistant") in others
