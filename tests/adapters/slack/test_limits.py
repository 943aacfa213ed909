"""Long answers: what a post takes and an edit refuses, and what stays to be read."""

from __future__ import annotations

import html
from collections.abc import AsyncIterator

import pytest

from adapters.button_data import answer_data
from adapters.channel import Outgoing, Part
from adapters.slack.outbound import plain_body, render, without_question
from pipeline.domain.messages import button_handle
from tests.adapters.slack.harness import Running, running, thread_of
from tests.support.platforms.slack import FakeSlack

_UPDATE_BYTES = 4_000
_LONG = ("word " * 2_000, "a & b < c\n" * 900, "шаг " * 2_000, "x" * 3_994 + "&&&&&&&&")


@pytest.fixture
async def live() -> AsyncIterator[Running]:
    async with FakeSlack(echo_own=False) as slack, running(slack) as live:
        yield live


@pytest.mark.parametrize("text", _LONG)
def test_the_text_beside_the_blocks_is_never_too_long_for_an_edit(text: str) -> None:
    for part in render(Outgoing(text=text)):
        for body in (
            part.body,
            plain_body(part),
            without_question(_shown(part), button_handle("q")) or part.body,
        ):
            assert len(body["text"].encode()) <= _UPDATE_BYTES
            assert "&" not in body["text"].replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")


@pytest.mark.parametrize("text", _LONG)
def test_plain_words_of_a_long_answer_are_all_shown(text: str) -> None:
    parts = render(Outgoing(text=text, unfinished=True))
    for part in parts:
        blocks = plain_body(part)["blocks"]
        sections = [block["text"]["text"] for block in blocks if block["type"] == "section"]
        shown = "".join(sections) if sections else plain_body(part)["text"]
        assert shown == part.plain
        assert all(len(section) <= 3_000 and _whole(section) for section in sections)


async def test_a_long_answer_becomes_of_its_preview_by_an_edit(live: Running) -> None:
    place = live.slack.private_chat(live.slack.person("ann"))
    thread = thread_of(place.chat)
    preview = live.adapter.render(Outgoing(text="one", unfinished=True))[0]
    receipt = await live.adapter.post(thread, preview, key="m_1:0")
    answer = live.adapter.render(Outgoing(text="long words " * 700))[0]
    await live.adapter.edit(thread, receipt.native_id, answer)
    assert live.slack.bot_texts(place)[0].split() == ["long", "words"] * 700


def _shown(part: Part) -> dict[str, object]:
    buttons = {"type": "actions", "elements": [{"type": "button", "action_id": answer_data("q", 0)}]}
    return {"text": part.plain, "blocks": [*part.body["blocks"], buttons]}


def _whole(section: str) -> bool:
    return html.escape(html.unescape(section), quote=False) == section
