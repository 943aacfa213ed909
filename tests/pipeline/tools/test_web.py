"""The group `web`: a page as words for the model."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.domain.clock import SystemClock
from pipeline.shield.policy_book import PolicyBook
from pipeline.tools.html_text import MAX_LINKS, ReadPage
from pipeline.tools.tool import Tool, ToolFailed
from pipeline.tools.web import MAX_TEXT_CHARS, WebGroup
from pipeline.tools.web_client import WebPage
from pipeline.tools.web_text import read_page
from tests.pipeline.tools.web_server import Site, guarded, moved, says, serving
from tests.support.contexts import scope
from tests.support.shields import shield
from tests.support.tables import each
from tests.support.tool_gate import call, gate, propose

ARTICLE = """<!doctype html><html><head><title> The   news &amp; more </title>
<style>body { color: red }</style><script>alert("no")</script></head>
<body><nav><a href="/home">Home</a></nav><h1>Rain</h1><p>It   rains<br>in <b>Bonn</b>.</p>
<noscript>turn it on</noscript><template>later</template><svg/>
<p>Read <a href="more?x=1#top">the rest</a>.</p>
<a href="javascript:alert(1)">press</a><!-- secret --><ul><li>one<li>two</ul></body></html>"""


def page(body: str | bytes, media_type: str = "text/html", charset: str = "utf-8") -> WebPage:
    encoded = body.encode() if isinstance(body, str) else body
    return WebPage(
        url="https://site.example/a/", status=200, media_type=media_type, charset=charset, body=encoded
    )


def read(body: str | bytes, media_type: str = "text/html", charset: str = "utf-8") -> ReadPage:
    return read_page(page(body, media_type, charset), lambda: 0.0)


async def fetch_tool(site: Site) -> Tool:
    (tool,) = await WebGroup(guarded(site), SystemClock()).tools(scope())
    return tool


async def fetched(site: Site, path: str = "/") -> str:
    tool = await fetch_tool(site)
    return (await tool.run({"url": site.url(path)}, scope())).text


def test_a_page_is_its_title_its_words_and_where_its_links_lead() -> None:
    found = read(ARTICLE)

    assert found.title == "The news & more"
    assert found.text == "Home\n\nRain\n\nIt rains\nin Bonn.\n\nRead the rest.\n\npress\n\none\ntwo"
    assert found.links == [
        ("Home", "https://site.example/home"),
        ("the rest", "https://site.example/a/more?x=1"),
    ]


@pytest.mark.parametrize("media_type", ["text/html", "text/plain"])
def test_what_a_page_hides_between_its_letters_is_not_read(media_type: str) -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    found = read(f"It\u200b ra{hidden}ins.\u202e 👩\u200d🚀", media_type)
    assert found.text == "It rains. 👩\u200d🚀"


@each(
    "body, charset",
    [
        ("Größe".encode("latin-1"), "iso-8859-1"),
        ("Größe".encode("cp1252"), "WINDOWS-1252"),
        (b"\xef\xbb\xbf" + "Größe".encode(), ""),
        ('<meta charset="utf-8">Größe'.encode(), ""),
        ("<meta http-equiv=x content='text/html; charset=latin-1'>Größe".encode("latin-1"), ""),
        ("Größe".encode(), "no-such-charset"),
        ("Größe".encode(), "punycode"),
        ("Größe".encode(), "zlib_codec"),
        ("Größe".encode(), "rot13"),
        ("Größe".encode(), "idna"),
    ],
)
def test_a_page_is_read_in_its_own_alphabet(body: bytes, charset: str) -> None:
    assert read(body, charset=charset).text == "Größe"


def test_bytes_that_fit_no_alphabet_are_marked_and_control_characters_go() -> None:
    assert read(b"a\xffb\x00c\x1b[31m\x9b", "text/plain").text == "a\ufffdbc[31m\ufffd"


def test_text_that_is_no_html_stays_as_it_is() -> None:
    assert read('{"a": "<b>"}', "application/json").text == '{"a": "<b>"}'


@each(
    "piece",
    [
        "<!--",
        "<![CDATA[",
        "<!",
        "<?",
        "<a ",
        "</",
        "<a href='",
        "&",
        "<script>",
        "<title>",
        "<x<",
        "&#x",
        "<svg>",
        "</svg>",
    ],
)
def test_a_page_that_is_made_to_tangle_the_parser_up_is_left_in_time(piece: str) -> None:
    """So much of each that anyone who waits for a quadratic parser waits for many minutes."""
    body = ("<p>first</p>" + piece * (600_000 // len(piece)))[:600_000]

    found = read_page(page(body), SystemClock().monotonic)

    assert found.text.startswith("first")


def test_a_page_of_links_gives_the_first_of_them() -> None:
    body = "".join(f'<a href="/{number}">n{number}</a>' for number in range(100))

    assert [url for _, url in read(body).links] == [f"https://site.example/{n}" for n in range(MAX_LINKS)]


async def test_the_model_gets_address_title_text_and_links() -> None:
    async with serving({"/": moved("/article"), "/article": says(ARTICLE)}) as site:
        text = await fetched(site)

        assert text.startswith(f"Address: {site.url('/article')}\nTitle: The news & more\n\nHome\n\nRain")
        assert text.endswith(f"Links:\n- Home: {site.url('/home')}\n- the rest: {site.url('/more?x=1')}")


async def test_a_long_page_is_cut_and_says_so() -> None:
    async with serving({"/": says("<p>word</p>" * 5_000)}) as site:
        text = await fetched(site)

    assert len(text) <= MAX_TEXT_CHARS
    assert text.endswith("\n[The rest of the page is left out.]")


async def test_an_error_page_is_shown_as_one() -> None:
    async with serving({"/": says("Not here", status=404)}) as site:
        output = await (await fetch_tool(site)).run({"url": site.url()}, scope())

    assert not output.success
    assert "status 404" in output.text
    assert "Not here" in output.text


async def test_a_page_without_words_says_so() -> None:
    async with serving({"/": says("<script>1</script>")}) as site:
        assert "The page has no text." in await fetched(site)


async def test_what_cannot_be_fetched_is_a_failure_in_words() -> None:
    async with serving({}) as site:
        tool = await fetch_tool(site)
        with pytest.raises(ToolFailed, match="must begin with http"):
            await tool.run({"url": "file:///etc/passwd"}, scope())


async def test_a_fetch_is_asked_for_with_its_address_and_how_long_that_is() -> None:
    async with serving({}) as site:
        tool = await fetch_tool(site)

    assert not tool.reads_only
    assert not tool.own_only
    assert tool.describe({"url": "https://a.example/x?y=z"}) == "read https://a.example/x?y=z"
    long = tool.describe({"url": "https://a.example/?" + "s" * 1_000})
    assert long.endswith("… (1019 characters)")
    assert len(long) <= 210


async def test_a_redirect_to_a_host_that_the_policy_closes_is_not_followed(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        '[[deny]]\nname = "closed"\naction_types = ["fetch_url"]\nhosts = ["*.closed.example"]\n', "utf-8"
    )
    async with serving({}) as site:
        site.pages |= {
            "/open": moved(site.url("/end", host="other.example")),
            "/closed": moved(site.url("/end", host="a.CLOSED.example.")),
            "/end": says("the end"),
        }
        judge = shield(policies=PolicyBook(policy))
        one = gate(WebGroup(guarded(site), SystemClock()), judge=judge, clock=SystemClock())
        pages = [call("fetch_page", {"url": site.url(path)}, call_id=path) for path in ("/open", "/closed")]
        followed, refused = await propose(one, *pages, scope=scope(), groups=("web",))
        assert "the end" in followed.content
        assert "redirects to a.closed.example, which the security policy closes" in refused.content
        assert [request.path for request in site.requests] == ["/open", "/end", "/closed"]
