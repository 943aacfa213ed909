"""Answers as the page draws them by itself, while they are written: markdown that reads well, and hostile
text that stays text. Finished answers come drawn from the gateway; they are test_finished's."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.end_to_end.page.acts import ask, entries, ready
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.hostile import HOSTILE
from tests.end_to_end.page.probes import DANGERS
from tests.support.browser_fixture import Watch
from tests.support.looks import look_again

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


FEATURES = """# Title

A *soft* and **strong** and ~~gone~~ `code` line
with a second line, 2*3*4 and snake_case_name.

- one
  - two
    1. three
- [x] done

3. third
4. fourth

> quoted
> > twice

| a | b |
|:--|--:|
| 1 | `x\\|y` |

---

```python
print("<b>")
```

[words](https://example.org/page) and https://example.org/bare. Mail <mailto:a@example.org>.
![A cat](https://example.org/cat.png)

שלום **עולם**
"""


async def show(kept: tuple[Page, FakeGateway], text: str) -> Any:
    """Has the bot answer with `text`, without its own HTML; gives the answer's prose."""
    room, gateway = kept
    before = await entries(room, "assistant").count()
    await gateway.answer(await ask(room, gateway, "show it"), text, html="")
    row = entries(room, "assistant").nth(before)
    await expect(row.get_by_role("button", name="Copy answer")).to_be_visible()
    return row.locator(".prose")


async def test_markdown_is_drawn_as_elements(kept: tuple[Page, FakeGateway]) -> None:
    prose = await show(kept, FEATURES)
    await expect(prose.locator("h3")).to_have_text("Title")
    for tag, text in (("em", "soft"), ("strong", "strong"), ("s", "gone")):
        await expect(prose.locator(f"> p {tag}").first).to_have_text(text)
    await expect(prose.locator("> p").first).to_contain_text("2*3*4 and snake_case_name")
    await expect(prose.locator("> ul > li > ul > li > ol > li")).to_have_text("three")
    await expect(prose.locator("li.task input")).to_be_checked()
    await expect(prose.locator("> ol")).to_have_attribute("start", "3")
    await expect(prose.locator("> ol > li")).to_have_count(2)
    await expect(prose.locator("blockquote blockquote")).to_have_text("twice")
    await expect(prose.locator("td").nth(1)).to_have_class("end")
    await expect(prose.locator("td").nth(1)).to_have_text("x|y")
    await expect(prose.locator("hr")).to_have_count(1)
    await expect(prose.locator("pre code")).to_have_text('print("<b>")')
    await expect(prose.locator(".language")).to_have_text("python")
    await expect(prose.locator("> p").last).to_have_attribute("dir", "auto")


async def test_links_say_where_they_go_and_images_are_links(kept: tuple[Page, FakeGateway]) -> None:
    prose = await show(kept, FEATURES)
    links = prose.locator("a")
    await expect(links).to_have_text(
        [
            "words (example.org)",
            "https://example.org/bare",
            "mailto:a@example.org",
            "Image: A cat (example.org)",
        ]
    )
    await expect(prose.locator("img")).to_have_count(0)
    assert await links.nth(3).get_attribute("href") == "https://example.org/cat.png"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[https://bank.example](https://evil.example/login)", "https://bank.example (evil.example)"),
        ("[bank.example](https://bank.example@evil.example)", "bank.example (evil.example)"),
        ("https://bank.example@evil.example/x", "https://bank.example@evil.example/x (evil.example)"),
        ("https://b\u0430nk.example/", "https://b\u0430nk.example/ (xn--bnk-6cd.example)"),
    ],
)
async def test_a_link_that_pretends_names_its_host(
    kept: tuple[Page, FakeGateway], text: str, shown: str
) -> None:
    prose = await show(kept, text)
    await expect(prose.locator("a")).to_have_text(shown)


async def test_a_growing_answer_keeps_the_blocks_that_are_done(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "grow")
    await gateway.begin(message)
    await gateway.say(message, "First paragraph.\n\nSecond")
    first = entries(room, "assistant").locator(".prose > p").first
    await expect(first).to_have_text("First paragraph.")
    node = await first.element_handle()
    await gateway.say(message, " paragraph.\n\n```js\nlet x")
    await expect(entries(room, "assistant").locator("pre")).to_have_text("let x")
    assert node is not None
    assert await node.evaluate("node => node.isConnected")
    await gateway.complete(message, "First paragraph.\n\nSecond paragraph.")


async def test_hostile_text_is_inert_in_every_role(room: Page, gateway: FakeGateway, watch: Watch) -> None:
    watch.list_requests(room.context)
    roles = ("assistant", "user", "notice", "error", "session")
    for role in roles:
        for text in HOSTILE:
            gateway.write(role, text, chat=gateway.chat)
    await room.reload()
    await ready(room)
    for role in roles:
        await expect(entries(room, role)).to_have_count(len(HOSTILE))
    assert await room.evaluate(DANGERS) == []
    assert [url for url in watch.requests if "evil" in url or url.startswith(("data:", "javascript:"))] == []


async def test_hostile_text_is_inert_while_it_is_written(
    room: Page, gateway: FakeGateway, watch: Watch
) -> None:
    watch.list_requests(room.context)
    message = await ask(room, gateway, "continue")
    await gateway.begin(message)
    for text in HOSTILE:
        half = len(text) // 2
        await gateway.event("llm_token", message, text=text[:half], offset=0)
        await room.evaluate("() => new Promise(requestAnimationFrame)")
        await gateway.event("llm_token", message, text=text[half:], offset=half)
        await room.evaluate("() => new Promise(requestAnimationFrame)")
        assert await room.evaluate(DANGERS) == [], text
    assert [url for url in watch.requests if "evil" in url] == []


async def test_hostile_words_from_tools_and_the_gateway_are_inert(room: Page, gateway: FakeGateway) -> None:
    bad = "<img src=x onerror=window.pwned=1>"
    message = await ask(room, gateway, "use a tool")
    await gateway.begin(message)
    await gateway.event("action_started", message, tool_name=bad, summary=bad)
    await expect(room.locator(".activity")).to_have_text(bad)
    question = {
        "interaction_id": "i",
        "tool_name": bad,
        "reasoning": bad,
        "options": [bad],
        "timeout_s": 600.0,
    }
    await gateway.event("approval_required", message, **question)
    await expect(entries(room, "approval").get_by_role("button")).to_have_text(bad)
    await gateway.event("transcript_ready", message, text=bad, language="en", confidence=1.0)
    await expect(room.get_by_test_id("transcript")).to_have_text(bad)
    await gateway.send({"type": "problem", "code": "bad_frame", "message": bad, "client_id": None})
    await expect(room.get_by_role("alert")).to_contain_text(bad)
    await gateway.fail(message, bad, bad)
    await expect(entries(room, "error")).to_contain_text(bad)
    assert await room.evaluate(DANGERS) == []
    assert await room.evaluate("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize(
    "text",
    [
        "# " + "#" * 60_000 + "x",
        "` " + "a" * 60_000 + "`",
        "a* " * 20_000,
        "*a " * 9_000 + "b* " * 9_000,
        "[" * 60_000,
    ],
    ids=["heading", "code", "closers", "nesting", "brackets"],
)
async def test_a_long_row_of_marks_is_drawn_and_the_page_continues(
    kept: tuple[Page, FakeGateway], text: str
) -> None:
    prose = await show(kept, text)
    assert len(await prose.inner_text()) > 30_000
    await show(kept, "next")
    await expect(entries(kept[0], "assistant").last.locator(".prose")).to_have_text("next")


async def test_the_watch_of_these_tests_hears_of_a_request_to_another_host(
    fresh_page: Page, watch: Watch
) -> None:
    await fresh_page.set_content("<img src='http://elsewhere.example/x.png'>")
    await fresh_page.wait_for_function("() => document.querySelector('img').complete")
    await fresh_page.evaluate("() => fetch('http://elsewhere.example/').catch(() => 'failed')")
    while len(watch.complaints) < 2:
        await look_again()
    assert ["ERR_NAME_NOT_RESOLVED" in words for words in watch.complaints] == [True, True]
