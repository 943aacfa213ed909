"""A playbook runs beside a conversation by /run and by the API, and asks and waits there.

Covers: gateway/turns/runs_command.py, gateway/turns/workflow_runs.py, gateway/turns/public_runs.py,
gateway/ingress/answers.py, pipeline/playbooks/public_run.py, adapters/api/run_service.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.storage.inbox_items import run_handle
from gateway.turns.run_codec import runs_of
from pipeline.domain.clock import ManualClock
from pipeline.domain.events import ApprovalResolved
from pipeline.domain.messages import Author, SessionCommand
from pipeline.graph_book import document_text
from pipeline.playbooks.reading import read_playbook
from pipeline.playbooks.run_record import PlaybookRun, playbook_record
from tests.pipeline.playbooks.documents import node, playbook, route, trigger
from tests.support.api_client import TRIAGE, api_overrides, document_file, open_api
from tests.support.gate_graph import answer_to
from tests.support.harness import THREAD, GatewayHarness, open_gateway
from tests.support.playbook_child import DAY, PLAN, scripted
from tests.support.posting_channel import MemoryPosts

pytestmark = pytest.mark.usefixtures("days_pass_quickly")

_ONBOARDING = "examples/workflows/onboarding.playbook.json"
_OFFERED = ('routes.1.agent="default"', 'routes.1.also=["onboarding"]')
_LATER = 4e9
"""A Unix time after the present."""
RUN_ONBOARDING = (f'agents.onboarding.graph="{_ONBOARDING}"', *_OFFERED)


async def _ask(harness: GatewayHarness, text: str) -> str:
    accepted = await harness.channel.say(text)
    return (await harness.channel.reply(accepted.message_id)).text


async def _record(harness: GatewayHarness) -> PlaybookRun:
    """The public record of the only run of the onboarding."""
    playbook = read_playbook(document_text(Path(_ONBOARDING)))
    (found,) = [one for one in runs_of(await harness.records()).values() if _is_onboarding(one)]
    return playbook_record(playbook, found)


def _is_onboarding(records: list[Any]) -> bool:
    return bool(records[0]["head"]["graph"] == "onboarding")


def _asks(folder: Path) -> str:
    """The file of a playbook that asks for a colour and says it."""
    ask = node("user-input", "ask", prompt="Which?", options=["red", "blue"])
    nodes = [trigger(), ask, node("response", "say", text="")]
    return document_file(folder, playbook(*nodes, edges=route("start > ask > say")))


async def test_a_playbook_asks_and_waits_beside_the_conversation(tmp_path: Path) -> None:
    clock, llm = ManualClock(), scripted("Hello.", PLAN, "MET", "I am your assistant.")
    async with open_gateway(tmp_path, *RUN_ONBOARDING, llm=llm, clock=clock) as harness:
        assert await _ask(harness, "hi") == "Hello."
        began = await harness.channel.say("/run onboarding I am new")
        assert "What may I call you?" in (await harness.channel.reply(began.message_id)).text
        handle = run_handle(began.message_id)
        waits = f"- `{handle}` onboarding: paused for less than a minute at `name`. It waits for an answer: "
        assert f"{waits}What may I call you?" in await _ask(harness, "/runs")
        # The open question takes the person's next words, also those of another conversation.
        assert PLAN in await _ask(harness, "Ada")
        listed = await _ask(harness, "/runs")
        assert (
            listed.splitlines()[2] == f"- `{handle}` onboarding: paused for less than a minute at `first_day`"
        )
        # A wait asks nothing: the chat's own agent answers, and knows nothing of the run.
        assert await _ask(harness, "Who are you?") == "I am your assistant."
        said = [message.content for message in llm.requests[-1].messages[1:]]
        assert said == ["hi", "Hello.", "Who are you?"]
        await clock.advance(DAY + 1)
        await harness.channel.until(lambda: "did you find everything?" in harness.channel.sent[-1].text)
        assert "It waits for an answer: Ada, did you find everything?" in await _ask(harness, "/runs")
        assert await _ask(harness, f"/runs stop {handle}") == f"Stopped the run `{handle}` of `onboarding`."
        assert (await _record(harness)).status == "aborted"


async def test_stop_ends_a_playbook_that_asks_and_says_so_everywhere(tmp_path: Path) -> None:
    async with open_gateway(tmp_path, *RUN_ONBOARDING, llm=scripted("Hello Ada.")) as harness:
        began = await harness.channel.say("/run onboarding I am new")
        await harness.channel.reply(began.message_id)
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        stop = await harness.channel.say("/stop")
        assert (await harness.channel.reply(stop.message_id)).text == "Stopped 1 message."
        closed = [
            one for one in harness.channel.events_of(began.message_id) if isinstance(one, ApprovalResolved)
        ]
        assert [one.interaction_id for one in closed] == [question.id]
        handle = run_handle(began.message_id)
        assert f"- `{handle}` onboarding: stopped less than a minute ago at `name`" in await _ask(
            harness, "/runs"
        )
        record = await _record(harness)
        assert (record.status, record.events[-1].type) == ("aborted", "workflow_aborted")
        # The question is closed, so the next words are the chat's.
        assert await _ask(harness, "Ada") == "Hello Ada."


async def test_a_stop_takes_the_buttons_of_a_question_away_on_a_platform(tmp_path: Path) -> None:
    own = _asks(tmp_path)
    posts = MemoryPosts()
    async with open_gateway(tmp_path / "data", f'agent.graph="{own}"', posts=posts) as harness:
        await posts.receive("go", native_id="n1", chat="ann", author="ann")
        await posts.until(lambda: any(one.buttons == ("red", "blue") for one in posts.messages))
        stop = SessionCommand(
            message_id="m_stop",
            native_id="stop",
            thread=posts.thread("ann"),
            author=Author(id="ann"),
            received_at=_LATER,
            name="stop",
        )
        await posts.bring(stop)
        await posts.until(lambda: "Stopped 1 message." in posts.texts("ann"))
        await posts.until(lambda: not any(one.buttons for one in posts.messages))
        assert await harness.store.pending_interactions(posts.thread("ann").encode(), now=0.0) == ()


async def test_a_program_answers_a_playbook_in_words_and_follows_its_wait(tmp_path: Path) -> None:
    clock, llm = ManualClock(), scripted(PLAN, "MET")
    async with open_api(tmp_path, *api_overrides(tmp_path, _ONBOARDING), llm=llm, clock=clock) as api:
        run_id = await api.start("I am new")
        asked = await api.until(run_id, "paused")
        (question,) = asked["questions"]
        assert (question["text"], question["options"], asked["waitingForInput"]) == (
            "Welcome to the bicycle club! I help you through your first three days.\n\nWhat may I call you?",
            [],
            True,
        )
        path = f"/api/runs/{run_id}/answers"
        for wrong in (
            {"choice": "Ada"},
            {},
            {"choice": "x", "text": "Ada"},
            {"text": " "},
            {"text": "x" * 4_001},
        ):
            assert (await api.send("POST", path, body=wrong)).status == 422
        answered = await api.send("POST", path, body={"text": "Ada"})
        assert (answered.status, answered.body) == (202, {"runId": run_id, "text": "Ada"})
        async for event in api.events(run_id):
            if event["data"].get("currentNodeId") == "first_day" and event["data"]["status"] == "paused":
                break
        waits = await api.run(run_id)
        assert (waits["questions"], waits["waitingForInput"]) == ([], False)
        entry = [one for one in waits["logs"] if one["nodeId"] == "name"][-1]
        assert (entry["type"], entry["content"]) == ("node_completed", "Ada")
        assert (await api.send("POST", path, body={"text": "Bob"})).status == 409
        stopped = await api.send("DELETE", f"/api/runs/{run_id}")
        assert (stopped.status, stopped.body["status"]) == (200, "failed")
        record = await api.run(run_id)
    assert record["error"] == {"code": "stopped", "message": "The run was stopped."}
    assert (record["logs"][-1]["nodeId"], record["logs"][-1]["content"]) == ("system", "The run was stopped.")


async def test_a_question_with_options_takes_no_other_words_of_a_program(tmp_path: Path) -> None:
    own = _asks(tmp_path)
    async with open_api(tmp_path, *api_overrides(tmp_path, own)) as api:
        run_id = await api.start("go")
        await api.until(run_id, "paused")
        path = f"/api/runs/{run_id}/answers"
        refused = await api.send("POST", path, body={"text": "red"})
        assert (refused.status, refused.body["errors"][0]["field"]) == (422, "text")
        assert (await api.send("POST", path, body={"choice": "red"})).status == 202
        done = await api.until(run_id, "completed")
    assert done["answer"] == "red"


async def test_a_question_with_options_leaves_other_words_to_the_chats_own_agent(tmp_path: Path) -> None:
    own = _asks(tmp_path)
    settings = (f'agents.onboarding.graph="{own}"', *_OFFERED)
    async with open_gateway(tmp_path / "data", *settings, llm=scripted("Blue is nice.")) as harness:
        await _ask(harness, "/run onboarding go")
        # Where a question has options, other words are the chat's.
        assert await _ask(harness, "What do you think of blue?") == "Blue is nice."
        (question,) = await harness.store.pending_interactions(THREAD, now=0.0)
        await harness.channel.bring(answer_to(question.id, "blue"))
        assert (await harness.channel.reply("m_answer")).text == "blue"


async def test_the_words_of_a_program_are_judged_before_they_answer(tmp_path: Path) -> None:
    llm = scripted(PLAN, "MET")
    async with open_api(tmp_path, *api_overrides(tmp_path, _ONBOARDING), llm=llm, clock=ManualClock()) as api:
        run_id = await api.start("I am new")
        await api.until(run_id, "paused")
        path = f"/api/runs/{run_id}/answers"
        assert (await api.send("POST", path, body={"text": "I want to kill myself"})).status == 202
        # Its turn is over before the next words are judged, and it has answered nothing.
        assert (await api.send("POST", path, body={"text": "Ada"})).status == 202
        async for event in api.events(run_id):
            if event["data"].get("currentNodeId") == "first_day" and event["data"]["status"] == "paused":
                break
        record = await api.run(run_id)
        crises = await api.harness.store.crises.listed(limit=5)
    assert record["state"]["name"]["result"] == "Ada"
    assert len(crises) == 1


async def test_a_saved_workflow_is_run_by_a_command_and_by_a_program(tmp_path: Path) -> None:
    text = document_text(Path(TRIAGE))
    async with open_gateway(tmp_path / "data") as harness:
        assert await harness.store.page.workflows.save("letters", text, base=0, runs=True, at=0.0) == 1
    llm = scripted("question", "From 9.", "question", "Till 18.")
    settings = (
        *api_overrides(tmp_path, "saved:letters"),
        'routes.1.agent="default"',
        'routes.1.also=["triage"]',
    )
    async with open_api(tmp_path, *settings, llm=llm) as api:
        assert await _ask(api.harness, "/run triage When do you open?") == "From 9."
        assert "triage: completed" in await _ask(api.harness, "/runs")
        run_id = await api.start("When do you close?")
        assert (await api.until(run_id, "completed"))["answer"] == "Till 18."
