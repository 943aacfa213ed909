"""The workflow editor in Chromium, with a real gateway: drawn by pointer, written by keyboard, saved, run,
approved, followed and replayed.

Covers: adapters/web/static/editor.js, adapters/web/static/editor-canvas.js,
adapters/web/static/editor-list.js, adapters/web/static/editor-runs.js,
adapters/web/static/editor-versions.js.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Dialog, Locator, Page, expect

from tests.end_to_end.page.accessibility import serious_violations
from tests.end_to_end.page.acts import entries, ready
from tests.end_to_end.page.worker_port import port_setting
from tests.support.browser_fixture import Watch
from tests.support.page_people import Client, OpenPage, open_page
from tests.support.workflow_child import DRAFT, triage_model

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

TRIAGE: dict[str, Any] = json.loads(Path("examples/workflows/triage.workflow.json").read_text("utf-8"))
EDITOR = 'channels.web.editor=["owner"]'
BACK = "I want my money back"
_PLACES = {
    "start": (60, 260),
    "sort": (300, 260),
    "kind": (540, 240),
    "draft": (780, 110),
    "answer": (780, 320),
    "hand_over": (780, 470),
    "review": (1020, 130),
    "rewrite": (1250, 260),
}
"""Where the steps are dropped, from the drawing's corner."""


@asynccontextmanager
async def _gateway(folder: Path, *answers: str, settings: str = EDITOR) -> AsyncIterator[OpenPage]:
    async with open_page(folder, settings, port_setting(), llm=triage_model(*answers)) as running:
        yield running


async def _accept(dialog: Dialog) -> None:
    await dialog.accept()


@pytest_asyncio.fixture(loop_scope="session")
async def tab(page: Page) -> AsyncIterator[Page]:
    """An empty tab that accepts what it is asked."""
    page.on("dialog", _accept)
    yield page
    page.remove_listener("dialog", _accept)


async def _open(tab: Page, gateway: OpenPage) -> None:
    """Sign in as the owner, and open the editor."""
    await tab.goto(f"{gateway.url}/#token={gateway.owner_token}")
    await ready(tab)
    await tab.get_by_test_id("workflows").click()
    await expect(tab.get_by_test_id("wf-name")).to_be_visible()


async def _new(tab: Page, name: str) -> None:
    await tab.get_by_test_id("wf-name").fill(name)
    await tab.get_by_test_id("wf-name").press("Enter")
    await expect(tab.get_by_test_id("wf-facts")).to_contain_text("Not saved yet")


def _step(tab: Page, name: str) -> Locator:
    return tab.locator(f'.wf-step[data-id="{name}"]')


def _field(tab: Page, name: str) -> Locator:
    """A field of the form beside the drawing."""
    return tab.locator(".wf-form").get_by_test_id(f"wf-{name}")


async def _middle(found: Locator) -> tuple[float, float]:
    box = await found.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def _drag(tab: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    await tab.mouse.move(*start)
    await tab.mouse.down()
    await tab.mouse.move(start[0] + 9, start[1] + 9)
    await tab.mouse.move(*end)
    await tab.mouse.up()


async def _drop(tab: Page, node: dict[str, Any]) -> None:
    """Drag a step from the palette to its place, and fill in its form."""
    corner = await tab.get_by_test_id("wf-drawing").bounding_box()
    assert corner is not None
    x, y = _PLACES[node["id"]]
    end = (corner["x"] + x, corner["y"] + y)
    await _drag(tab, await _middle(tab.get_by_test_id(f"wf-add-{node['type']}")), end)
    await _field(tab, "id").fill(node["id"])
    await _field(tab, "id").press("Tab")
    await expect(_step(tab, node["id"])).to_be_visible()
    for field in ("name", "systemPrompt", "userPrompt", "prompt"):
        if field in node["data"]:
            await _field(tab, field).fill(node["data"][field])
    for at, condition in enumerate(node["data"].get("conditions", ())):
        if at:
            await _field(tab, "more").click()
        await _field(tab, f"condition-{at}").fill(condition["value"])


async def _connect(tab: Page, source: str, handle: str, target: str) -> None:
    """Drag from an exit of a step to another step."""
    port = _step(tab, source).locator(f'.wf-port[data-handle="{handle}"] .wf-out')
    box = await _step(tab, target).locator(".wf-box").bounding_box()
    assert box is not None
    await _drag(tab, await _middle(port), (box["x"] + 30, box["y"] + 20))


def _without_places(document: dict[str, Any]) -> dict[str, Any]:
    """The nodes and connections as they are, wherever they are drawn."""
    nodes = {
        node["id"]: {key: value for key, value in node.items() if key not in ("x", "y")}
        for node in document["nodes"]
    }
    routes = {(one["source"], one.get("sourceHandle", ""), one["target"]) for one in document["connections"]}
    return {"nodes": nodes, "routes": routes}


async def _stored(gateway: OpenPage, name: str, version: int) -> dict[str, Any]:
    text = await gateway.store.page.workflows.text(name, version)
    assert text is not None
    document: dict[str, Any] = json.loads(text)
    return document


async def test_the_triage_example_is_drawn_checked_saved_run_approved_and_replayed(
    tab: Page, tmp_path: Path, watch: Watch
) -> None:
    async with _gateway(tmp_path, "refund", DRAFT) as gateway:
        await tab.set_viewport_size({"width": 1820, "height": 900})
        await _open(tab, gateway)
        assert await serious_violations(tab) == []
        await _new(tab, "triage")
        corner = await tab.get_by_test_id("wf-drawing").bounding_box()
        assert corner is not None
        await _drag(
            tab, await _middle(_step(tab, "start").locator(".wf-box")), (corner["x"] + 100, corner["y"] + 270)
        )
        for node in TRIAGE["nodes"][1:]:
            await _drop(tab, node)
        for way in TRIAGE["connections"]:
            if way["source"] != "sort":
                await _connect(tab, way["source"], way.get("sourceHandle", ""), way["target"])
        await tab.get_by_test_id("wf-add-agent").click()
        # The planted mistakes: a note of a step that is none, and nothing after the sorter.
        await _field(tab, "userPrompt").fill("{{NOTE:missing}}")
        await tab.get_by_test_id("wf-check").click()
        mistakes = tab.get_by_test_id("wf-mistakes")
        await expect(mistakes).to_contain_text(
            "node agent: data.userPrompt: {{NOTE:missing}} names no approval"
        )
        await expect(_step(tab, "agent")).to_have_attribute("data-wrong", "yes")
        await expect(tab.get_by_test_id("wf-live")).to_contain_text("names no approval")
        assert await serious_violations(tab) == []
        await mistakes.locator("button").first.click()
        await _field(tab, "remove").click()
        await expect(_step(tab, "agent")).to_have_count(0)
        await tab.get_by_test_id("wf-undo").click()
        await expect(_step(tab, "agent")).to_have_count(1)
        await tab.get_by_test_id("wf-redo").click()
        await expect(_step(tab, "agent")).to_have_count(0)
        await expect(mistakes.locator("li")).to_have_count(0)
        await _connect(tab, "sort", "", "kind")
        # A name that is typed right before the save counts.
        await _step(tab, "hand_over").locator(".wf-title").click()
        await _field(tab, "id").fill("later")
        await tab.get_by_test_id("wf-undo").click()
        await expect(_step(tab, "hand_over")).to_be_visible()
        await _field(tab, "id").fill("hand_over_2")
        await tab.get_by_test_id("wf-save").click()
        await expect(tab.get_by_test_id("wf-facts")).to_have_text("Version 1")
        assert "hand_over_2" in _without_places(await _stored(gateway, "triage", 1))["nodes"]
        await _field(tab, "id").fill("hand_over")
        await tab.get_by_test_id("wf-save").click()
        await expect(tab.get_by_test_id("wf-facts")).to_have_text("Version 2")
        assert _without_places(await _stored(gateway, "triage", 2)) == _without_places(TRIAGE)
        await _run_and_replay(tab)
        await tab.get_by_test_id("wf-talk").click()
        await ready(tab)
        await expect(entries(tab, "assistant").last).to_contain_text(DRAFT)
        await expect(tab.get_by_test_id("chat-title")).to_have_text("triage")
    complaints = [words for words in watch.complaints if "WebSocket connection" not in words]
    assert complaints == []


async def _run_and_replay(tab: Page) -> None:
    await tab.get_by_test_id("wf-tab-runs").click()
    await tab.get_by_test_id("wf-run-text").fill(BACK)
    await tab.get_by_test_id("wf-run-start").click()
    await expect(_step(tab, "review")).to_have_attribute("data-state", "waiting")
    for name in ("start", "sort", "kind", "draft"):
        await expect(_step(tab, name)).to_have_attribute("data-state", "done")
    await expect(tab.locator(".wf-wire[data-taken]")).to_have_count(4)
    question = tab.get_by_test_id("wf-question")
    await expect(question).to_contain_text("Shall this go to the customer?")
    await expect(question).to_contain_text(DRAFT)
    assert await serious_violations(tab) == []
    await tab.get_by_test_id("wf-approve").click()
    await expect(tab.get_by_test_id("wf-run-status")).to_have_text("Completed")
    await expect(_step(tab, "review")).to_have_attribute("data-state", "done")
    await expect(tab.get_by_test_id("wf-past").locator("li")).to_have_count(1)
    count = len(await tab.get_by_test_id("wf-log").locator("li").all())
    await tab.get_by_test_id("wf-replay-first").click()
    await expect(tab.locator(".wf-step[data-state]")).to_have_count(0)
    await tab.get_by_test_id("wf-replay-next").click()
    await expect(_step(tab, "start")).to_have_attribute("data-state", "running")
    await tab.get_by_test_id("wf-replay").fill("4")
    await expect(_step(tab, "sort")).to_have_attribute("data-state", "done")
    await expect(_step(tab, "kind")).not_to_have_attribute("data-state", "done")
    await expect(tab.get_by_test_id("wf-replay-place")).to_have_text(f"4 of {count}")
    await tab.get_by_test_id("wf-replay-last").click()
    await expect(_step(tab, "review")).to_have_attribute("data-state", "done")


async def _focus(tab: Page, test_id: str) -> None:
    """Press Tab until the part of the editor has the focus."""
    for _ in range(160):
        # A locator would take six times as long, and most of what this test does is to press Tab.
        if await tab.evaluate("document.activeElement.dataset.testid") == test_id:
            return
        await tab.keyboard.press("Tab")
    raise AssertionError(f"Tab never reaches {test_id}")


async def _press(tab: Page, test_id: str, key: str = "Enter") -> None:
    await _focus(tab, test_id)
    await tab.keyboard.press(key)


async def _choose(tab: Page, test_id: str, value: str) -> None:
    """Choose in a list by the arrow keys."""
    await _focus(tab, test_id)
    target = tab.get_by_test_id(test_id)
    await tab.keyboard.press("Home")
    for _ in range(await target.locator("option").count()):
        if await tab.evaluate("document.activeElement.value") == value:
            return
        await tab.keyboard.press("ArrowDown")
    await expect(target).to_have_value(value)


SMALL: dict[str, Any] = {
    "nodes": [
        {"id": "start", "type": "start", "data": {}},
        {"id": "draft", "type": "agent", "data": {"userPrompt": "Write to: {{MESSAGE}}"}},
        {"id": "review", "type": "approval", "data": {"prompt": "Send this?"}},
    ],
    "connections": [
        {"source": "start", "target": "draft"},
        {"source": "draft", "target": "review"},
        {"source": "review", "sourceHandle": "reject", "target": "draft"},
    ],
}


async def test_a_workflow_is_written_checked_run_approved_and_replayed_by_keyboard_alone(
    tab: Page, tmp_path: Path, watch: Watch
) -> None:
    async with _gateway(tmp_path, "Dear Ann", "Dearest Ann") as gateway:
        # The width of a phone: the list is shown first.
        await tab.set_viewport_size({"width": 390, "height": 844})
        await tab.goto(f"{gateway.url}/#token={gateway.owner_token}")
        await ready(tab)
        await _press(tab, "workflows")
        await _focus(tab, "wf-name")
        await tab.keyboard.type("letters")
        await tab.keyboard.press("Enter")
        for kind, name, field, words in (
            ("agent", "draft", "userPrompt", "Write to: {{MESSAGE}}"),
            ("approval", "review", "prompt", "Send this?"),
        ):
            await _choose(tab, "wf-list-kind", kind)
            await _press(tab, "wf-list-add")
            # The focus is in the new step's name.
            await expect(tab.locator(":focus")).to_have_value(kind)
            await tab.keyboard.press("Control+a")
            await tab.keyboard.type(name)
            await tab.keyboard.press("Tab")
            card = tab.locator(f'.wf-card[data-id="{name}"]')
            await expect(card).to_be_visible()
            for _ in range(8):
                if await card.get_by_test_id(f"wf-{field}").evaluate(
                    "node => node === document.activeElement"
                ):
                    break
                await tab.keyboard.press("Tab")
            await tab.keyboard.type(words)
        await _choose(tab, "wf-target-draft", "review")
        await _press(tab, "wf-connect-draft")
        await _press(tab, "wf-check")
        await expect(tab.get_by_test_id("wf-live")).to_contain_text("nothing follows the start")
        await expect(tab.locator('.wf-card[data-id="start"]')).to_contain_text("nothing follows the start")
        assert await serious_violations(tab) == []
        await _press(tab, "wf-connect-start")
        await expect(tab.get_by_test_id("wf-live")).to_have_text("then leads to draft")
        await _choose(tab, "wf-exit-review", "reject")
        await _press(tab, "wf-connect-review")
        await expect(tab.get_by_test_id("wf-mistakes").locator("li")).to_have_count(0)
        await _press(tab, "wf-save")
        await expect(tab.get_by_test_id("wf-facts")).to_have_text("Version 1")
        assert _without_places(await _stored(gateway, "letters", 1)) == _without_places(SMALL)
        await _run_by_keyboard(tab)
    assert [words for words in watch.complaints if "WebSocket connection" not in words] == []


async def _run_by_keyboard(tab: Page) -> None:
    await _focus(tab, "wf-tab-mistakes" if await _is_chosen(tab, "mistakes") else "wf-tab-step")
    for _ in range(4):
        if await _is_chosen(tab, "runs"):
            break
        await tab.keyboard.press("ArrowRight")
    await _focus(tab, "wf-run-text")
    await tab.keyboard.type("hello")
    await _press(tab, "wf-run-start")
    card = tab.locator('.wf-card[data-id="review"]')
    await expect(card).to_have_attribute("data-state", "waiting")
    await _focus(tab, "wf-note")
    await tab.keyboard.type("warmer")
    await _press(tab, "wf-reject")
    await expect(tab.get_by_test_id("wf-question")).to_contain_text("Dearest Ann")
    await _press(tab, "wf-approve")
    await expect(tab.get_by_test_id("wf-run-status")).to_have_text("Completed")
    await _focus(tab, "wf-replay")
    await tab.keyboard.press("Home")
    await expect(card).to_have_attribute("data-state", "")
    await tab.keyboard.press("End")
    await expect(card).to_have_attribute("data-state", "done")
    assert await serious_violations(tab) == []


async def _is_chosen(tab: Page, name: str) -> bool:
    return await tab.get_by_test_id(f"wf-tab-{name}").get_attribute("aria-selected") == "true"


async def test_of_two_tabs_the_second_to_save_is_asked_whose_version_counts(
    tab: Page, tmp_path: Path
) -> None:
    async with _gateway(tmp_path) as gateway, Client() as client:
        await client.connect(gateway.url, gateway.owner_token)
        await client.ask(type="workflow_save", name="letters", base=0, document=SMALL)
        one, other = tab, await tab.context.new_page()
        other.on("dialog", _accept)
        for each in (one, other):
            await _open(each, gateway)
            await each.get_by_test_id("wf-documents").get_by_text("letters").click()
            await expect(each.get_by_test_id("wf-facts")).to_have_text("Version 1")
            await each.get_by_test_id("wf-add-agent").click()
        await one.get_by_test_id("wf-save").click()
        await expect(one.get_by_test_id("wf-facts")).to_have_text("Version 2")
        await other.get_by_test_id("wf-save").click()
        await expect(other.get_by_test_id("wf-trouble")).to_contain_text(
            "letters was saved as version 2 since you opened version 1"
        )
        assert len(await gateway.store.page.workflows.versions("letters")) == 2
        await other.get_by_test_id("wf-keep_mine").click()
        await expect(other.get_by_test_id("wf-facts")).to_have_text("Version 3")
        await one.get_by_test_id("wf-tab-versions").click()
        await one.get_by_test_id("wf-restore-1").click()
        await expect(one.get_by_test_id("wf-facts")).to_have_text("Version 4")
        assert _without_places(await _stored(gateway, "letters", 4)) == _without_places(SMALL)


async def test_who_may_not_edit_is_shown_no_editor(page: Page, tmp_path: Path) -> None:
    async with _gateway(tmp_path, settings="log.level=info") as gateway:
        await page.goto(f"{gateway.url}/#token={gateway.owner_token}")
        await ready(page)
        await expect(page.get_by_test_id("settings")).to_be_visible()
        await expect(page.get_by_test_id("workflows")).to_have_count(0)
