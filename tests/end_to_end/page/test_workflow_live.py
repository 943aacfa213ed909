"""The picture of a workflow in Chromium while its run is at work: the page follows each step as it happens.

Covers: adapters/web/static/editor-runs.js, adapters/web/static/editor-canvas.js.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.page.acts import ready
from tests.end_to_end.page.worker_port import port_setting
from tests.pipeline.workflows.documents import agent, approval, document, start, way
from tests.support.page_people import Client, open_page

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_LETTERS = document(
    start(),
    agent("draft", userPrompt="Write to: {{MESSAGE}}"),
    approval("review", prompt="Send this?"),
    agent("send", userPrompt="{{PREVIOUS_OUTPUT}}"),
    routes=[
        way("start > draft"),
        way("draft > review"),
        way("review > send", "approve"),
        way("review > draft", "reject"),
    ],
)


async def test_each_step_is_shown_as_it_begins_works_waits_and_ends(page: Page, tmp_path: Path) -> None:
    drafts, sends = asyncio.Event(), asyncio.Event()
    answers = [
        ScriptedAnswer(chunks=(text,), gate=gate) for text, gate in (("Dear Ann", drafts), ("Sent.", sends))
    ]
    port = port_setting()
    editor = 'channels.web.editor=["owner"]'
    async with open_page(tmp_path, editor, port, llm=ScriptedLlm(answers)) as gateway, Client() as client:
        await client.connect(gateway.url, gateway.owner_token)
        await client.ask(type="workflow_save", name="letters", base=0, document=_LETTERS)
        await page.set_viewport_size({"width": 1820, "height": 900})
        await page.goto(f"{gateway.url}/#token={gateway.owner_token}")
        await ready(page)
        await page.get_by_test_id("workflows").click()
        await page.get_by_test_id("wf-documents").get_by_text("letters").click()
        await page.get_by_test_id("wf-tab-runs").click()
        await page.get_by_test_id("wf-run-text").fill("Ann")
        await page.get_by_test_id("wf-run-start").click()

        async def shows(**states: str) -> None:
            for name, state in states.items():
                step = page.locator(f'.wf-step[data-id="{name}"]')
                await expect(step).to_have_attribute("data-state", state)

        # The model is asked, and answers only when the test lets it.
        await shows(start="done", draft="running")
        drafts.set()
        await shows(draft="done", review="waiting")
        await page.get_by_test_id("wf-approve").click()
        await shows(review="done", send="running")
        sends.set()
        await shows(send="done")
        await expect(page.get_by_test_id("wf-run-status")).to_have_text("Completed")
