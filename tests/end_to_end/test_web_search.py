"""A web search, from the message to the stored answer, with a SearXNG server of the test.

Covers: pipeline/tools/web_search.py, gateway/app/search.py.
"""

from __future__ import annotations

import json
from pathlib import Path

from pipeline.domain.chat import ToolCall
from pipeline.domain.events import ActionStarted, ApprovalRequired
from pipeline.llm.scripted import ScriptedAnswer, ScriptedLlm
from tests.end_to_end.test_mcp import allow
from tests.pipeline.tools.web_server import Handler, Site, says, serving
from tests.support.harness import open_gateway

FOUND = {
    "results": [{"title": "Tea", "url": "https://tea.example/green", "content": "Steep for two minutes."}]
}
PAGES: dict[str, Handler] = {"/search": says(json.dumps(FOUND), content_type="application/json")}
ANSWER = "Two minutes, says [the page](https://tea.example/green)."


def _calls(name: str, **arguments: object) -> ScriptedAnswer:
    return ScriptedAnswer.calling(ToolCall(id=name, name=name, arguments=json.dumps(arguments)))


def _settings(site: Site) -> tuple[str, ...]:
    return 'tools.search.backend="searxng"', f'tools.search.url="http://127.0.0.1:{site.port}"'


async def test_the_model_searches_without_asking_and_its_answer_goes_out_without_a_link_of_the_results(
    tmp_path: Path,
) -> None:
    llm = ScriptedLlm(
        [
            _calls("load_tools", groups=["web"]),
            _calls("search_web", query="green tea"),
            ScriptedAnswer.of(ANSWER),
        ]
    )
    async with serving(PAGES) as site, open_gateway(tmp_path, *_settings(site), llm=llm) as harness:
        said = await harness.channel.say("how long does green tea steep?")
        reply = await harness.channel.reply(said.message_id)
        events = harness.channel.events_of(said.message_id)
        (request,) = site.requests
    assert request.query["q"] == "green tea"
    result = llm.requests[-1].messages[-1].content
    assert "1. Tea\n   https://tea.example/green\n   Steep for two minutes." in result
    assert reply.text == "Two minutes, says the page (`tea.example`)."
    assert not any(isinstance(one, ApprovalRequired) for one in events)
    assert [one.summary for one in events if isinstance(one, ActionStarted)] == [
        "Searching the web for “green tea”"
    ]


async def test_after_a_search_what_changes_something_is_asked_for(tmp_path: Path) -> None:
    llm = ScriptedLlm(
        [
            _calls("load_tools", groups=["web", "notes"]),
            _calls("search_web", query="tea"),
            _calls("write_note", title="tea", text="green"),
            ScriptedAnswer.of("Kept."),
        ]
    )
    async with serving(PAGES) as site, open_gateway(tmp_path, *_settings(site), llm=llm) as harness:
        said = await harness.channel.say("search for tea and keep a note")
        await allow(harness.channel, harness, 1)
        await harness.channel.reply(said.message_id)
        (asked,) = [one for one in harness.channel.events if isinstance(one, ApprovalRequired)]
    assert "This conversation holds text from elsewhere: results of a web search." in asked.reasoning


async def test_without_a_connection_to_the_search_engine_the_model_is_not_offered_the_tool(
    tmp_path: Path,
) -> None:
    async with serving(PAGES) as site:
        gone = _settings(site)
    llm = ScriptedLlm([_calls("load_tools", groups=["web"]), ScriptedAnswer.of("I cannot search.")])
    async with open_gateway(tmp_path, *gone, llm=llm) as harness:
        said = await harness.channel.say("search for tea")
        await harness.channel.reply(said.message_id)
    offered = {tool.name for tool in llm.requests[-1].tools}
    assert "fetch_page" in offered
    assert "search_web" not in offered
