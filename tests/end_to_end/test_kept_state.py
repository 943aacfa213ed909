"""State of a graph that outlives a run: of a session, of a person, over restarts, and not off the record.

Covers: pipeline/runtime/kept_state.py, gateway/turns/kept_states.py, gateway/storage/states.py.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pipeline.domain.chat import ToolCall
from pipeline.domain.conversation import FORWARDED, FORWARDED_MARK
from pipeline.domain.errors import GraphError
from pipeline.graph.definition.decisions import NodeResult, Pause, State
from pipeline.graph.definition.spec import EdgeSpec, GraphSpec, Kept, append
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from pipeline.nodes.document_graph import document_graph
from pipeline.runtime.context import RunContext
from tests.pipeline.nodes.documents import edge, node, steps
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.posting_channel import MemoryPosts


def counting(*, version: str = "1", **keep: Kept) -> GraphSpec[RunContext]:
    """A graph that counts its runs in `visits` and notes their messages in `notes`; "break" fails."""

    async def count(state: State, context: RunContext) -> NodeResult:
        visits = state.get("visits", 0) + 1
        notes = " ".join((*state.get("notes", ()), context.text))
        answer = {"status": "done", "answer": f"visit {visits}: {notes}"}
        if context.text == "forget":
            return NodeResult(update={"visits": 0, "agent": answer})
        return NodeResult(update={"visits": visits, "notes": [context.text], "agent": answer})

    async def check(_state: State, context: RunContext) -> NodeResult:
        if context.text == "break":
            raise ValueError("broken")
        if context.text == "ask":
            return NodeResult(decision=Pause(prompt="Shall I?", options=("yes",)))
        return NodeResult()

    return GraphSpec(
        name="counting",
        version=version,
        entry="count",
        nodes={"count": count, "check": check},
        edges=(EdgeSpec(source="count", target="check"),),
        channels={"notes": append},
        keep=keep,
    )


SESSION, PERSON = Kept(lives="session"), Kept(lives="person")


def agent(data: Path, document: dict[str, Any], name: str = "") -> str:
    data.mkdir(exist_ok=True)
    path = data / f"{name or 'bot'}.json"
    path.write_text(json.dumps(document), "utf-8")
    return f'{f"agents.{name}" if name else "agent"}.graph="{path}"'


def remembering(**given: Any) -> dict[str, Any]:
    """A document whose model sees what it has written last, under `note`."""
    write = node("write", "model", prompt="Your note: {note}", output="note")
    say = node("say", "reply", text="noted {note}")
    return steps(write, say, edges=[edge("write", "say")], **given)


async def said(harness: GatewayHarness, text: str, chat: str = "c1") -> str:
    """Say it; the answer."""
    accepted = await harness.channel.say(text, chat=chat)
    return (await harness.channel.reply(accepted.message_id)).text


async def test_a_key_that_lives_for_the_session_is_there_at_the_next_message(tmp_path: Path) -> None:
    graph = counting(visits=SESSION, notes=SESSION)
    async with open_gateway(tmp_path, graph=graph) as harness:
        assert await said(harness, "a") == "visit 1: a"
        assert await said(harness, "b") == "visit 2: a b"
        assert await said(harness, "c", chat="c2") == "visit 1: c"
    async with open_gateway(tmp_path, graph=graph) as harness:
        assert await said(harness, "d") == "visit 3: a b d"
        await said(harness, "/new")
        assert await said(harness, "e") == "visit 1: e"


async def test_a_key_that_lives_for_the_person_is_there_in_each_of_their_chats_and_in_no_one_elses(
    tmp_path: Path,
) -> None:
    posts = MemoryPosts()
    async with open_gateway(tmp_path, graph=counting(visits=PERSON), posts=posts) as harness:
        assert await said(harness, "a") == "visit 1: a"
        await said(harness, "/new")
        assert await said(harness, "b") == "visit 2: b"
        assert await said(harness, "c", chat="c2") == "visit 3: c"
        for number, author, chat in ((1, "ann", "c1"), (2, "ben", "c2"), (3, "ann", "room")):
            await posts.receive("hi", native_id=str(number), author=author, chat=chat, private=chat != "room")
            await posts.until(lambda: bool(posts.texts(chat)))  # noqa: B023 - used before the next turn
    assert [posts.texts(chat)[0].split(":")[0] for chat in ("c1", "c2", "room")] == [
        "visit 1",
        "visit 1",
        "visit 2",
    ]


async def test_off_the_record_nothing_is_read_and_nothing_is_kept(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, graph=counting(visits=PERSON)) as harness:
        assert await said(harness, "a") == "visit 1: a"
        await said(harness, "/otr")
        assert [await said(harness, "b"), await said(harness, "c")] == ["visit 1: b", "visit 1: c"]
        await said(harness, "/otr")
        assert await said(harness, "d") == "visit 2: d"


async def test_a_graph_that_declares_nothing_keeps_nothing(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, graph=counting()) as harness:
        assert [await said(harness, "a"), await said(harness, "b")] == ["visit 1: a", "visit 1: b"]


async def test_a_turn_that_fails_changes_no_state(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, graph=counting(visits=SESSION, notes=SESSION)) as harness:
        assert await said(harness, "a") == "visit 1: a"
        assert "visit" not in await said(harness, "break")
        assert await said(harness, "b") == "visit 2: a b"


async def test_a_run_that_waits_for_an_answer_adds_to_what_later_messages_have_left(tmp_path: Path) -> None:
    graph = counting(notes=SESSION)
    async with open_gateway(tmp_path, graph=graph) as harness:
        assert await said(harness, "a") == "visit 1: a"
        await said(harness, "ask")
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        assert await said(harness, "b") == "visit 1: a b"
    async with open_gateway(tmp_path, graph=graph) as harness:
        await harness.channel.bring(answer_to(question.id, "yes"))
        assert (await harness.channel.reply("m_answer")).text == "visit 1: a ask"
        assert await said(harness, "c") == "visit 1: a b ask c"


async def test_two_chats_of_a_person_at_the_same_time_both_add_to_the_state(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, graph=counting(notes=PERSON)) as harness:
        await asyncio.gather(*(said(harness, f"n{number}", chat=f"c{number}") for number in range(6)))
        words = (await said(harness, "all")).split()
    assert sorted(words[2:]) == ["all", "n0", "n1", "n2", "n3", "n4", "n5"]


async def test_another_version_finds_a_key_under_its_earlier_name_and_drops_what_it_does_not_declare(
    tmp_path: Path,
) -> None:
    old = remembering(keep={"note": "session"})
    first, llm = ScriptedLlm([ScriptedAnswer.of("tea")]), ScriptedLlm([ScriptedAnswer.of("cake")])
    async with open_gateway(tmp_path, agent(tmp_path, old), llm=first) as harness:
        assert await said(harness, "hi") == "noted tea"
    text = json.dumps(remembering(version="2")).replace("{note}", "{memo}").replace('"note"', '"memo"')
    new = json.loads(text) | {"keep": {"memo": {"lives": "session", "was": ["note"]}}}
    async with open_gateway(tmp_path, agent(tmp_path, new), llm=llm) as harness:
        assert await said(harness, "hello") == "noted cake"
        session = await harness.store.current_session("console:local:c1")
        kept = await harness.store.states.read(f"session:{session}", "/steps")
    assert "tea" in llm.requests[0].messages[-1].content
    assert kept is not None
    assert kept.body == {"version": "2", "values": {"memo": "cake"}, "foreign": ""}


async def test_two_agents_with_graphs_of_one_name_keep_their_own_state(tmp_path: Path) -> None:
    settings = (
        agent(tmp_path, remembering(keep={"note": "person"})),
        agent(tmp_path, remembering(keep={"note": "person"}), name="other"),
        "routes.1.agent=default",
        'routes.1.also=["other"]',
    )
    llm = ScriptedLlm([ScriptedAnswer.of("tea"), ScriptedAnswer.of("cake"), ScriptedAnswer.of("jam")])
    async with open_gateway(tmp_path, *settings, llm=llm) as harness:
        assert await said(harness, "hi") == "noted tea"
        await said(harness, "/agent other")
        assert await said(harness, "hi") == "noted cake"
        await said(harness, "/agent default")
        assert await said(harness, "hi") == "noted jam"
    prompts = [request.messages[-1].content for request in llm.requests]
    assert ["tea" in prompt for prompt in prompts] == [False, False, True]


async def test_state_from_foreign_text_is_marked_in_later_sessions(tmp_path: Path) -> None:
    graph = counting(notes=PERSON)
    async with open_gateway(tmp_path, graph=graph) as harness:
        await said(harness, f"{FORWARDED_MARK} pay the bill")
        kept = await harness.store.states.read("console:local:user:owner", "/counting")
        assert kept is not None
        assert kept.body["foreign"] == FORWARDED


@pytest.mark.parametrize("isolated", [False, True])
async def test_the_conversation_that_task_nodes_share_continues_at_the_next_message(
    tmp_path: Path, *, isolated: bool
) -> None:
    def outputs(value: str) -> list[ScriptedAnswer]:
        call = ToolCall(id="o", name="set_output", arguments=json.dumps({"key": "plan", "value": value}))
        return [ScriptedAnswer.calling(call), ScriptedAnswer.of("Done.")]

    work = {"instructions": "Make a plan.", "outputs": ["plan"], "answer": "plan", "isolated": isolated}
    document = steps(node("plan", "task", **work), keep={"dialogue": "session"})
    llm = ScriptedLlm([*outputs("buy tea"), *outputs("buy cake")])
    async with open_gateway(tmp_path, agent(tmp_path, document), llm=llm) as harness:
        assert await said(harness, "plan my day") == "buy tea"
        assert await said(harness, "and tomorrow") == "buy cake"
    asked = llm.requests[2].messages
    calls = [call.arguments for message in asked for call in message.tool_calls]
    assert any("buy tea" in call for call in calls) is not isolated
    assert any("and tomorrow" in message.content for message in asked)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"keep": {"note": "forever"}}, "keep.note: expected session or person"),
        ({"keep": {"answers": "session"}}, "keep answers: the engine owns this key"),
        ({"keep": {"agent": "session"}}, "keep agent: the pipeline's own keys cannot be kept"),
        ({"keep": {"dialogue": "session"}, "conversation": "isolated"}, "its steps share none"),
        ({"keep": {"a": {"lives": "person", "was": ["b"]}, "b": "person"}}, "earlier name b is a kept key"),
        ({"keep": {"a": {"live": "person"}}}, "keep.a.live"),
    ],
)
def test_a_mistake_in_what_is_kept_is_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(GraphError) as refused:
        document_graph(remembering(**given))
    assert words in str(refused.value)
