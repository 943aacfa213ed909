"""The tool `search_web`: what the model gets, when it is offered, and how often a person may search."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipeline.domain.clock import ManualClock
from pipeline.domain.messages import Author
from pipeline.redaction.redactor import Redactor
from pipeline.tools.search_backends import Hit, SearchFailed
from pipeline.tools.tool import Tool, ToolFailed, ToolOutput
from pipeline.tools.web import WebGroup
from pipeline.tools.web_client import GuardedWeb
from pipeline.tools.web_search import MAX_QUERY_CHARS, WebSearch
from tests.support.contexts import scope

TEA = Hit(
    title="Green <b>tea</b>", url="https://tea.example/green?a=1#top", excerpt="How  to\nbrew &amp; drink."
)


class Engine:
    """A search engine of the test."""

    label = "Engine"

    def __init__(self, hits: Sequence[Hit] = (TEA,), *, error: str = "", problem: str = "") -> None:
        self.hits = hits
        self.error = error
        self.state = problem
        self.queries: list[tuple[str, int]] = []
        self.probes = 0

    async def problem(self) -> str:
        self.probes += 1
        return self.state

    async def search(self, query: str, count: int) -> Sequence[Hit]:
        self.queries.append((query, count))
        if self.error:
            raise SearchFailed(self.error)
        return self.hits


def _search(engine: Engine, clock: ManualClock | None = None, *, per_hour: int = 30) -> WebSearch:
    return WebSearch(engine, clock or ManualClock(), per_hour=per_hour)


async def _tools(search: WebSearch | None) -> dict[str, Tool]:
    group = WebGroup(GuardedWeb(ManualClock()), ManualClock(), search=search)
    return {tool.name: tool for tool in await group.tools(scope())}


async def _run(search: WebSearch, query: str = "green tea", person: str = "ada", **given: int) -> ToolOutput:
    tool = (await _tools(search))["search_web"]
    return await tool.run({"query": query, **given}, scope(author=Author(id=person)))


async def test_results_are_numbered_with_title_address_and_excerpt_and_are_foreign_text() -> None:
    second = Hit(title="", url="http://b.example/x", excerpt="")
    output = await _run(_search(Engine([TEA, second])))

    assert output.text.splitlines() == [
        "2 results from Engine:",
        "1. Green tea",
        "   https://tea.example/green?a=1",
        "   How to brew & drink.",
        "2. http://b.example/x",
        "   http://b.example/x",
    ]
    assert (output.foreign, output.success) == ("results of a web search", True)


async def test_a_search_needs_no_approval_because_its_words_go_to_the_operators_engine_alone() -> None:
    tool = (await _tools(_search(Engine())))["search_web"]

    assert tool.reads_only
    assert tool.built_in
    assert not tool.own_words


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "",
        "https://user:key@a.example/",
        "https://a.example/" + "x" * 400,
        "ftp://a.example",
    ],
)
async def test_a_result_without_a_usable_address_is_left_out(url: str) -> None:
    output = await _run(_search(Engine([Hit(title="bad", url=url, excerpt="bad"), TEA])))

    assert output.text.startswith("1 results from Engine:\n1. Green tea\n")


async def test_what_an_engine_returns_is_bounded_and_cannot_hide_characters() -> None:
    hidden = "".join(chr(0xE0000 + ord(char)) for char in "obey")
    many = [Hit(title="t" * 5_000, url="https://a.example/", excerpt=f"x{hidden}\u202ey" + "z" * 90_000)] * 50
    output = await _run(_search(Engine(many)), count=99)

    assert output.text.count("https://a.example/") == 10
    assert len(output.text) < 5_000
    assert "   xyz" in output.text


@pytest.mark.parametrize(("given", "used"), [(3, 3), (0, 1), (-5, 1), (11, 10)])
async def test_the_number_of_results_is_kept_between_one_and_ten(given: int, used: int) -> None:
    engine = Engine()
    await _run(_search(engine), count=given)

    assert engine.queries == [("green tea", used)]


async def test_a_query_is_one_bounded_line_without_configured_secrets() -> None:
    engine = Engine()
    search = WebSearch(engine, ManualClock(), per_hour=0, redactor=Redactor(lambda: ("hunter2-hunter2",)))
    await _run(search, query="is  hunter2-hunter2\nsafe? " + "x" * 500)

    ((query, _),) = engine.queries
    assert "hunter2-hunter2" not in query
    assert len(query) <= MAX_QUERY_CHARS
    assert query.startswith("is [REDACTED] safe? xx")


async def test_an_empty_query_is_a_failure_in_words() -> None:
    with pytest.raises(ToolFailed, match="the query is empty"):
        await _run(_search(Engine()), query=" \n")


async def test_a_failing_engine_gives_one_clear_line() -> None:
    with pytest.raises(ToolFailed) as raised:
        await _run(_search(Engine(error="Engine answers with status 500.")))

    assert str(raised.value) == "The web was not searched. Engine answers with status 500."


async def test_no_results_are_reported_as_such_and_not_as_a_success() -> None:
    output = await _run(_search(Engine([])))

    assert (output.text, output.success) == ("The search engine returned no results.", False)


async def test_each_person_may_search_a_number_of_times_in_an_hour() -> None:
    clock, engine = ManualClock(), Engine()
    search = _search(engine, clock, per_hour=2)
    for _ in range(2):
        await _run(search)
    with pytest.raises(ToolFailed, match="one person may search 2 times an hour"):
        await _run(search)
    await _run(search, person="bob")
    assert len(engine.queries) == 3, "a refused search reaches no engine, and another person's is not limited"
    await clock.advance(3_601)
    await _run(search)
    assert len(engine.queries) == 4


async def test_the_tool_is_offered_only_while_the_engine_can_be_reached() -> None:
    clock, engine = ManualClock(), Engine(problem="There is no such host.")
    search = _search(engine, clock)

    assert set(await _tools(search)) == {"fetch_page"}
    engine.state = ""
    assert set(await _tools(search)) == {"fetch_page"}, "the state is known for a minute"
    await clock.advance(61)
    assert set(await _tools(search)) == {"fetch_page", "search_web"}
    await clock.advance(200)
    await _tools(search)
    assert engine.probes == 2


async def test_without_an_engine_there_is_no_tool_and_the_group_does_not_promise_one() -> None:
    clock = ManualClock()
    plain, searching = (
        WebGroup(GuardedWeb(clock), clock),
        WebGroup(GuardedWeb(clock), clock, search=_search(Engine())),
    )

    assert set(await _tools(None)) == {"fetch_page"}
    assert "search" not in plain.description
    assert "search" in searching.description
