"""Finished answers: drawn from the gateway's HTML, and harmless even if that HTML were not."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from adapters.formatting.html import render_html
from tests.end_to_end.page.acts import ask, copied, entries, ready
from tests.end_to_end.page.fake_gateway import FakeGateway
from tests.end_to_end.page.hostile import HOSTILE
from tests.end_to_end.page.probes import DANGERS
from tests.end_to_end.page.test_markdown import FEATURES
from tests.support.browser_fixture import Watch

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

_ACTING = (
    "<p onclick=window.pwned=1 style='position:fixed' id=app class=top>words</p>",
    "<a href='javascript:window.pwned=1' onclick=window.pwned=1>x</a>",
    "<a href='https://ok.example/' target=_self rel=opener ping='https://evil.example/' download>x</a>",
    "<a href='java\nscript:window.pwned=1'>x</a>",
    "<a href=' javascript:window.pwned=1'>x</a>",
    "<a href='//evil.example/'>x</a>",
    "<img src='https://evil.example/pixel.png' srcset='https://evil.example/2.png 2x' onload=window.pwned=1>",
    "<img src='javascript:window.pwned=1' alt='<script>window.pwned=1</script>'>",
    "<input type=text name=token autofocus onfocus=window.pwned=1>",
    "<input type=checkbox checked onclick=window.pwned=1 form=composer>",
    "<pre><code class='language-x onclick=window.pwned=1'><img src=x onerror=window.pwned=1></code></pre>",
    "<ol start='-1 onclick=x'><li value=9 onclick=window.pwned=1>x</li></ol>",
    "<table background='https://evil.example/x.png'><tr><td align='x\" onclick=\"y'>x</td></tr></table>",
    "<th scope=col onclick=window.pwned=1>x</th>",
    "<template><img src=x onerror=window.pwned=1></template><slot name=x></slot>",
    "<custom-element is=x onclick=window.pwned=1><p is=evil>x</p></custom-element>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.pwned=1></style></mglyph></table></mtext>",
    "<svg><foreignObject><p onclick=window.pwned=1>x</p></foreignObject></svg>",
    "<svg><p><style><img src=x onerror=window.pwned=1></style></p></svg>",
    "<constructor>x</constructor><__proto__>x</__proto__><tostring>x</tostring>",
    "<blockquote>" * 600 + "deep",
    "<b><i><em>" * 300 + "deep",
    "<table><tr><td>" * 200 + "deep",
    "<!DOCTYPE html><html onclick=x><head><base href='https://evil.example/'></head><body onload=x>y",
)


async def answered(on: tuple[Page, FakeGateway], content: str, html: str | None = None) -> Any:
    """Has the bot answer with `content`, rendered as `html`; gives the prose that is shown then."""
    room, gateway = on
    before = await entries(room, "assistant").count()
    message = await ask(room, gateway, "say it")
    await gateway.begin(message)
    await gateway.complete(message, content, html=html)
    row = entries(room, "assistant").nth(before)
    await expect(row.get_by_role("button", name="Copy answer")).to_be_visible()
    return row.locator(".prose")


async def test_a_finished_answer_is_drawn_from_the_gateways_html(room: Page, gateway: FakeGateway) -> None:
    prose = await answered((room, gateway), "*markdown*", "<h2>From <em>there</em></h2><p>and there</p>")
    await expect(prose.locator("h4 em")).to_have_text("there")
    await expect(prose).to_have_text("From thereand there")
    await room.reload()
    await ready(room)
    await expect(entries(room, "assistant").last.locator(".prose h4")).to_have_text("From there")


async def test_markdown_reads_well_from_the_renderer_to_the_screen(kept: tuple[Page, FakeGateway]) -> None:
    prose = await answered(kept, FEATURES)
    await expect(prose.locator("h3")).to_have_text("Title")
    for tag, text in (("em", "soft"), ("strong", "strong"), ("s", "gone"), ("code", "code")):
        await expect(prose.locator(f"> p {tag}").first).to_have_text(text)
    await expect(prose.locator("> p").first.locator("br")).to_have_count(1)
    await expect(prose.locator("> ul > li > ul > li > ol > li")).to_have_text("three")
    await expect(prose.locator("li.task")).to_have_text("done")
    await expect(prose.locator("li.task input")).to_be_checked()
    await expect(prose.locator("> ol")).to_have_attribute("start", "3")
    await expect(prose.locator("blockquote blockquote")).to_have_text("twice")
    await expect(prose.get_by_role("region", name="Table").locator("td").nth(1)).to_have_text("x|y")
    await expect(prose.locator("hr")).to_have_count(1)
    await expect(prose.locator("pre code")).to_have_text('print("<b>")')
    await expect(prose.locator("> p").last).to_have_attribute("dir", "auto")
    shown = ["words (example.org)", "https://example.org/bare", "mailto:a@example.org", "A cat (example.org)"]
    await expect(prose.locator("a")).to_have_text(shown)


@pytest.mark.parametrize(
    ("text", "shown", "links"),
    [
        ("[https://bank.example](https://evil.example/login)", "https://bank.example (evil.example)", 1),
        ("https://bank.example@evil.example/x", "https://bank.example@evil.example/x", 0),
        ("https://b\u0430nk.example/", "https://b\u0430nk.example/", 0),
        ("[evil.example](https://evil.example/)", "evil.example", 1),
    ],
)
async def test_a_finished_link_names_its_host_or_is_none(
    kept: tuple[Page, FakeGateway], text: str, shown: str, links: int
) -> None:
    prose = await answered(kept, text)
    await expect(prose).to_have_text(shown)
    await expect(prose.locator("a")).to_have_count(links)


async def test_an_answer_without_html_is_drawn_by_the_page(kept: tuple[Page, FakeGateway]) -> None:
    prose = await answered(kept, "so *soft*", "")
    await expect(prose.locator("em")).to_have_text("soft")


async def test_a_written_answer_is_the_pages_own_until_it_is_finished(kept: tuple[Page, FakeGateway]) -> None:
    room, gateway = kept
    message = await ask(room, gateway, "grow")
    await gateway.begin(message)
    await gateway.say(message, "half **done**")
    prose = entries(room, "assistant").last.locator(".prose")
    await expect(prose.locator("strong")).to_have_text("done")
    await gateway.complete(message, "half **done**", html="<p>all <strong>of it</strong></p>")
    await expect(prose).to_have_text("all of it")
    await expect(entries(room, "assistant")).to_have_count(1)


async def test_code_of_a_finished_answer_is_copied_as_it_was_written(
    room: Page, gateway: FakeGateway
) -> None:
    await room.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = 'if a < b && c:\n    print("<b>")\n\n\tlast  '
    prose = await answered((room, gateway), f"See:\n\n```python\n{code}\n```\n")
    await expect(prose.locator(".language")).to_have_text("python")
    assert await copied(room, prose.get_by_role("button", name="Copy code")) == code
    answer = entries(room, "assistant").last.get_by_role("button", name="Copy answer")
    assert await copied(room, answer) == f"See:\n\n```python\n{code}\n```\n"


async def test_html_that_a_faulty_renderer_would_let_through_cannot_act(
    room: Page, gateway: FakeGateway, watch: Watch
) -> None:
    watch.list_requests(room.context)
    for html in (*_ACTING, *HOSTILE):
        gateway.write("assistant", "words", html=html, chat=gateway.chat)
    await room.reload()
    await ready(room)
    await expect(entries(room, "assistant")).to_have_count(len(_ACTING) + len(HOSTILE))
    assert await room.evaluate(DANGERS) == []
    for target in await room.locator(".prose :is(p, li, th, td, input, code)").all():
        await target.dispatch_event("click")
    assert await room.evaluate(DANGERS) == []
    assert [url for url in watch.requests if not url.startswith((gateway.origin, "blob:"))] == []
    # The parsed document is under the page's policy too, which reports what it would have stopped.
    watch.complaints[:] = [words for words in watch.complaints if "Content Security Policy" not in words]


async def test_a_deep_answer_ends_in_text(kept: tuple[Page, FakeGateway]) -> None:
    prose = await answered(kept, "words", "<blockquote>" * 600 + "the end")
    await expect(prose).to_have_text("the end")
    assert await prose.locator("blockquote").count() < 100


async def test_hostile_markdown_is_inert_from_the_renderer_to_the_screen(
    room: Page, gateway: FakeGateway, watch: Watch
) -> None:
    watch.list_requests(room.context)
    for text in HOSTILE:
        assert "html" in gateway.write("assistant", text, chat=gateway.chat)
    nested = (">" * 3000 + " x", "- " * 2000 + "x", "[" * 3000 + "x" + "](https://a.example)" * 3000)
    for text in nested:
        gateway.write("assistant", text, chat=gateway.chat)
    await room.reload()
    await ready(room)
    await expect(entries(room, "assistant")).to_have_count(len(HOSTILE) + len(nested))
    assert await room.evaluate(DANGERS) == []
    assert [url for url in watch.requests if not url.startswith((gateway.origin, "blob:"))] == []
    assert all("<script" not in render_html(text).lower() for text in HOSTILE)


async def test_a_finished_table_is_as_the_answer_says(kept: tuple[Page, FakeGateway]) -> None:
    table = "| what | how many | where |\n|---|--:|:-:|\n| tea | 12 | shop |"
    prose = await answered(kept, table)
    cells = prose.locator("td")
    await expect(cells).to_have_count(3)
    alignments = await cells.evaluate_all("nodes => nodes.map((node) => getComputedStyle(node).textAlign)")
    assert alignments == ["start", "end", "center"]


@pytest.mark.parametrize("finished", [True, False])
async def test_headings_of_an_answer_have_no_gap(room: Page, gateway: FakeGateway, finished: bool) -> None:
    message = await ask(room, gateway, "headings")
    await gateway.begin(message)
    await gateway.say(message, "# one\n\n### three\n\n## two\n\n###### six\n\n# again")
    if finished:
        await gateway.complete(message, "# one\n\n### three\n\n## two\n\n###### six\n\n# again")
    await expect(room.get_by_role("heading", name="again", level=3)).to_be_visible()
    assert await room.evaluate(
        "Array.from(document.querySelectorAll('#app :is(h1, h2, h3, h4, h5, h6)'))"
        ".filter((node) => node.offsetParent).map((node) => Number(node.ariaLevel ?? node.localName[1]))"
    ) == [1, 2, 3, 4, 4, 5, 3]
