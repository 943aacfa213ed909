"""The workflow editor over the page's protocol: who may edit, versions, runs, answers and their record.

Covers: adapters/web/workflow_frames.py, adapters/web/workflow_requests.py, gateway/editor/editing.py,
gateway/editor/run_state.py, gateway/editor/saved_agents.py, gateway/agents/agent_book.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.storage.memory import MemoryStore
from pipeline.domain.errors import ConfigurationError
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.page_people import Client, Frame, OpenPage, open_page
from tests.support.workflow_child import DRAFT, triage_model

TRIAGE = json.loads(Path("examples/workflows/triage.workflow.json").read_text("utf-8"))
EDITORS = 'channels.web.editor=["owner", "Ann"]'
BACK = "I want my money back"
ONE = document(start(), agent("a"), routes=[way("start > a")])


async def _owner(page: OpenPage, client: Client) -> None:
    await client.connect(page.url, page.owner_token)


async def _save(client: Client, found: dict[str, Any], name: str = "triage", base: int = 0) -> Frame:
    return await client.ask(type="workflow_save", name=name, base=base, document=found)


async def _begin(client: Client, name: str = "triage", version: int = 1, text: str = BACK) -> str:
    """Begin a run; the client's id of its conversation."""
    begun = await client.ask(type="workflow_start", name=name, version=version, text=text)
    assert begun["type"] == "workflow_started", begun
    return str(begun["chat"])


async def _until(client: Client, chat: str, status: str, *, after: str = "") -> Frame:
    """Ask for the run's state until it has that status, its question where it waits for a person, and the key
    `after`, which an answer has set."""
    while True:
        found = await client.ask(type="workflow_run", chat=chat, seen=0)
        waits = status != "paused" or found["questions"]
        if found["run"]["status"] == status and waits and (not after or after in found["run"]["state"]):
            return found


async def _answer(client: Client, state: Frame, choice: str, note: str = "") -> Frame:
    return await client.ask(
        type="workflow_answer",
        chat=state["chat"],
        interaction=state["questions"][0]["interaction"],
        choice=choice,
        note=note,
    )


async def test_a_saved_workflow_runs_is_approved_with_a_note_and_can_be_replayed(tmp_path: Path) -> None:
    llm = triage_model("refund", DRAFT, "Shorter.")
    async with open_page(tmp_path, EDITORS, llm=llm) as page, Client() as client:
        await _owner(page, client)
        saved = await _save(client, TRIAGE)
        assert (saved["type"], saved["version"], saved["mistakes"]) == ("workflow_saved", 1, [])
        state = await _until(client, chat := await _begin(client), "paused")
        assert (state["name"], state["version"], state["run"]["currentNodeId"]) == ("triage", 1, "review")
        (question,) = state["questions"]
        assert (question["node"], question["options"]) == ("review", ["approve", "reject"])
        assert question["prompt"] == f"Shall this go to the customer?\n\n{DRAFT}"
        again = await client.ask(type="workflow_run", chat=chat, seen=state["records"])
        while "run" in again:  # the records of the pause may follow its question
            again = await client.ask(type="workflow_run", chat=chat, seen=again["records"])
        assert (await _answer(client, state, "reject", "too long"))["type"] == "workflow_answered"
        state = await _until(client, chat, "paused", after="review_approval")
        assert state["run"]["state"]["review_approval"] == {"decision": "reject", "note": "too long"}
        await _answer(client, state, "approve")
        state = await _until(client, chat, "completed")
        (listed,) = (await client.ask(type="workflow_runs", name="triage"))["runs"]
    assert (listed["chat"], listed["version"], listed["status"]) == (chat, 1, "completed")
    logged = [(one["nodeId"], one["type"]) for one in state["run"]["logs"]]
    assert logged[:4] == [
        ("start", "step_start"),
        ("start", "start_prompt"),
        ("sort", "step_start"),
        ("sort", "llm_response"),
    ]
    assert logged.count(("review", "input_received")) == 2
    assert "What the reviewer said: too long" in llm.requests[-1].messages[-1].content


async def test_a_run_is_an_ordinary_conversation_of_its_person(tmp_path: Path) -> None:
    llm = triage_model("From the workflow.", "From the bot.")
    async with open_page(tmp_path, EDITORS, llm=llm) as page, Client() as client:
        await _owner(page, client)
        await _save(client, ONE)
        chat = await _begin(client)
        await _until(client, chat, "completed")
        listed = (await client.ask(type="chats"))["chats"]
        assert (chat, "triage") in [(one["chat"], one["title"]) for one in listed]
        async with Client(chat=chat) as other:
            history = await other.connect(page.url, page.owner_token, after=0)
            texts = [one["text"] for one in history if one["type"] == "entry"]
            assert texts == [BACK, "From the workflow."]
            assert await other.say("and now?") == "From the bot."
        await client.ask(type="delete_chat", chat=chat)
        await page.erased()
        assert (await client.ask(type="workflow_runs", name="triage"))["runs"] == []


async def test_a_restart_continues_a_run_in_the_version_that_began_it(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS, llm=triage_model("refund", DRAFT)) as page, Client() as client:
        await _owner(page, client)
        await _save(client, TRIAGE)
        chat = await _begin(client)
        await _until(client, chat, "paused")
        assert (await _save(client, ONE, base=1))["version"] == 2
    async with open_page(tmp_path, EDITORS, llm=triage_model()) as page, Client() as client:
        await _owner(page, client)
        state = await _until(client, chat, "paused")
        await _answer(client, state, "approve")
        state = await _until(client, chat, "completed")
    assert (state["version"], state["run"]["state"]["previous_output"]) == (1, DRAFT)


async def test_a_repeated_start_begins_one_run(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS, llm=triage_model("yes")) as page, Client() as client:
        await _owner(page, client)
        await _save(client, ONE)
        frame = {"type": "workflow_start", "name": "triage", "version": 1, "text": "hi", "client_id": "k1"}
        chats = []
        for _ in range(2):
            await client.send(**frame)
            chats.append((await client.wait_for(lambda got: got.get("client_id") == "k1"))["chat"])
        await _until(client, chats[0], "completed")
        assert chats[0] == chats[1]
        assert len((await client.ask(type="workflow_runs", name="triage"))["runs"]) == 1


async def test_every_mistake_has_its_place_and_a_draft_is_saved_but_does_not_run(tmp_path: Path) -> None:
    wrong = document(start(), agent("a"), approval("b"), routes=[way("start > b"), way("a > missing")])
    wrong["nodes"][1]["data"]["tool"] = True
    async with open_page(tmp_path, EDITORS) as page, Client() as client:
        await _owner(page, client)
        mistakes = (await client.ask(type="workflow_check", document=wrong))["mistakes"]
        assert [(one["node"], one["connection"], one["field"]) for one in mistakes] == [
            ("a", None, "data.tool"),
            ("", 1, "target"),
            ("b", None, ""),
        ]
        assert mistakes[2]["words"] == f"node b: {mistakes[2]['what']}"
        saved = await _save(client, wrong)
        assert (saved["version"], saved["mistakes"]) == (1, mistakes)
        opened = await client.ask(type="workflow_open", name="triage")
        assert (opened["document"], opened["mistakes"], opened["runs"]) == (wrong, mistakes, False)
        begun = await client.ask(type="workflow_start", name="triage", version=1, text="hi")
        assert "has mistakes" in begun["message"]


async def test_a_save_over_a_newer_version_is_refused_with_words(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS) as page, Client() as one, Client() as other:
        await _owner(page, one)
        await _owner(page, other)
        await _save(one, ONE)
        assert (await _save(other, TRIAGE, base=1))["version"] == 2
        refused = await _save(one, ONE, base=1)
        assert (refused["type"], refused["code"]) == ("problem", "conflict")
        assert "saved as version 2 since you opened version 1" in refused["message"]
        listed = (await one.ask(type="workflows"))["documents"]
        assert [(doc["name"], doc["version"], doc["runs"]) for doc in listed] == [("triage", 2, True)]
        old = await one.ask(type="workflow_open", name="triage", version=1)
        assert (old["document"], [two["version"] for two in old["versions"]]) == (ONE, [2, 1])
        assert (await _save(one, old["document"], base=2))["version"] == 3
        assert (await one.ask(type="workflow_delete", name="triage", base=2))["code"] == "conflict"
        assert (await one.ask(type="workflow_delete", name="triage", base=3))["type"] == "workflow_deleted"
        assert "no workflow triage any more" in (await _save(other, ONE, base=2))["message"]


@pytest.mark.parametrize("name", ["", "a/b", "a@2", " a", "x" * 61])
async def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    async with open_page(tmp_path, EDITORS) as page, Client() as client:
        await _owner(page, client)
        refused = await _save(client, ONE, name=name)
        assert refused["code"] in ("bad_name", "bad_frame")
        assert (await client.ask(type="workflows"))["documents"] == []


async def test_unknown_things_are_refused(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS) as page, Client() as client:
        await _owner(page, client)
        await _save(client, ONE)
        for frame in (
            {"type": "workflow_open", "name": "other"},
            {"type": "workflow_open", "name": "triage", "version": 2},
            {"type": "workflow_start", "name": "triage", "version": 2, "text": "hi"},
        ):
            assert (await client.ask(**frame))["code"] == "unknown_workflow", frame
        long = "x" * 8001
        too_long = await client.ask(type="workflow_start", name="triage", version=1, text=long)
        assert too_long["code"] == "text_too_long"
        huge = await _save(client, {**ONE, "description": "x" * 500_001}, base=1)
        assert huge["code"] == "too_large"


async def test_only_the_named_people_may_edit_and_no_one_takes_their_name(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS) as page:
        tokens = {name: await page.join(name) for name in ("Ann", "Ben")}
        async with Client() as ann, Client() as ben:
            await ann.connect(page.url, tokens["Ann"])
            await ben.connect(page.url, tokens["Ben"])
            assert (await _save(ann, ONE))["version"] == 1
            refused = await ben.ask(type="workflows")
            assert (refused["code"], "channels.web.editor" in refused["message"]) == ("refused", True)
            for name in ("ann", "Owner"):
                assert (await ben.ask(type="rename_person", name=name))["type"] == "problem"
            assert (await ann.ask(type="rename_person", name="Anna"))["type"] == "account"
            assert (await ann.ask(type="workflows"))["code"] == "refused"
            taken = await ben.ask(type="rename_person", name="Ann")
            assert "kept for another person" in taken["message"]


async def test_a_run_of_another_editor_is_not_there(tmp_path: Path) -> None:
    async with open_page(tmp_path, EDITORS, llm=triage_model("refund", DRAFT)) as page:
        token = await page.join("Ann")
        async with Client() as ann, Client() as owner:
            await ann.connect(page.url, token)
            await _owner(page, owner)
            await _save(ann, TRIAGE)
            chat = await _begin(ann)
            state = await _until(ann, chat, "paused")
            assert (await owner.ask(type="workflow_runs", name="triage"))["runs"] == []
            assert (await owner.ask(type="workflow_run", chat=chat, seen=0))["code"] == "unknown_run"
            assert (await _answer(owner, state, "approve"))["code"] == "unknown_run"
            assert len((await _until(ann, chat, "paused"))["questions"]) == 1


async def test_an_agent_of_the_configuration_runs_the_newest_version_without_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="saved:triage: no such workflow is saved"):
        async with open_page(tmp_path, 'agent.graph="saved:triage"'):
            pass
    async with open_page(tmp_path, EDITORS) as page, Client() as client:
        await _owner(page, client)
        await _save(client, TRIAGE)
        await _save(client, ONE, base=1)
        await _save(client, document(start()), base=2)
    llm = triage_model("From version 2.")
    async with (
        open_page(tmp_path, 'agent.graph="saved:triage"', llm=llm) as page,
        Client() as client,
    ):
        await _owner(page, client)
        assert await client.say("hello") == "From version 2."
    llm = triage_model("refund", DRAFT)
    async with open_page(tmp_path, 'agent.graph="saved:triage@1"', llm=llm) as page, Client() as client:
        await _owner(page, client)
        assert DRAFT in await client.say(BACK)


async def test_the_store_in_memory_has_the_editor_too(tmp_path: Path) -> None:
    llm = triage_model("yes")
    async with (
        open_page(tmp_path, EDITORS, llm=llm, store=MemoryStore()) as page,
        Client() as client,
    ):
        await _owner(page, client)
        await _save(client, ONE)
        state = await _until(client, await _begin(client), "completed")
        assert state["run"]["state"]["previous_output"] == "yes"
