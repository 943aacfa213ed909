"""State that a document keeps, from a structured answer of a model, on the page and on Telegram.

Covers: gateway/turns/kept_states.py, pipeline/nodes/model.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.pipeline.nodes.documents import edge, node, steps
from tests.support.two_channels import TwoChannels, open_two_channels

REMEMBER = steps(
    node("known", "condition", **{"if": "'color' in message", "then": "tell", "else": "learn"}),
    node("learn", "model", prompt="Which color does the person name?", outputs={"color": {"type": "string"}}),
    node("noted", "reply", text="Noted: {color}."),
    node("tell", "reply", text="It is {color}."),
    edges=[edge("learn", "noted")],
    keep={"color": "session"},
)


async def test_on_each_channel_a_document_remembers_what_a_structured_answer_gave(tmp_path: Path) -> None:
    path = tmp_path / "remember.json"
    path.write_text(json.dumps(REMEMBER), "utf-8")
    agent = f'agent.graph="{path}"'
    # The first answer is no JSON, so the model is asked once more.
    colors = ("red", "blue")
    answers = [
        ScriptedAnswer.of("I think it is red."),
        *(ScriptedAnswer.of(f'{{"color": "{c}"}}') for c in colors),
    ]
    llm = ScriptedLlm(answers)
    async with open_two_channels(tmp_path, agent, llm=llm) as place:
        for chat, color in zip(place.chats, colors, strict=True):
            assert await chat.ask(f"I like {color}") == f"Noted: {color}."
        for chat, color in zip(place.chats, colors, strict=True):
            assert await chat.ask("which color?") == f"It is {color}."
        sessions = [_session(place, chat.name) for chat in place.chats]
        kept = [await place.harness.store.states.read(f"session:{await one}", "/steps") for one in sessions]
    assert len(llm.requests) == 3
    assert all(request.schema is not None for request in llm.requests)
    assert [one.body["values"] for one in kept if one is not None] == [{"color": "red"}, {"color": "blue"}]


async def _session(place: TwoChannels, channel: str) -> str | None:
    """The id of the session on the channel."""
    store = place.harness.store
    account = "local" if channel == "web" else "main"
    (thread,) = await store.threads_of(channel, account, limit=10)
    return await store.current_session(thread)
