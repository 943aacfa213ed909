"""The lines about the work: one that changes, every step, or none; nothing in them is Markdown."""

from __future__ import annotations

from typing import Any

from gateway.delivery.progress import ProgressLines, Verbosity
from pipeline.domain.events import (
    ActionCompleted,
    ActionProgress,
    ActionStarted,
    LlmToken,
    OtrBlocked,
    SubAgentCompleted,
    SubAgentProgress,
    SubAgentSpawned,
    TurnStarted,
)
from tests.gateway.delivery_harness import open_delivery
from tests.support.posting_channel import MemoryPosts

IDS: dict[str, Any] = {"session_id": "s", "message_id": "m1"}


def started(name: str, summary: str = "") -> ActionStarted:
    return ActionStarted(**IDS, tool_name=name, summary=summary)


def done(name: str, summary: str = "", *, success: bool = True) -> ActionCompleted:
    return ActionCompleted(**IDS, tool_name=name, success=success, summary=summary)


def lines(verbosity: Verbosity, *events: Any) -> list[str]:
    work = ProgressLines(verbosity)
    for event in events:
        work.note(event)
    return work.markdown.splitlines()


def test_one_line_says_what_is_being_done() -> None:
    assert lines("normal", started("read_file", "Reading the file “notes.txt”")) == [
        "Reading the file `notes.txt` …"
    ]
    assert lines("normal", started("list_files", "Listing the files")) == ["Listing the files …"]
    assert lines("normal", started("a"), done("a"), started("keep_it")) == ["Using `keep it` …"]
    assert lines("normal", started("mcp__the_weather__is_fine")) == ["Using `is fine (the weather)` …"]


def test_the_line_goes_when_the_answer_continues() -> None:
    assert lines("normal", started("a"), done("a"), LlmToken(**IDS, text="So", offset=0)) == []


def test_every_step_is_listed_where_that_is_asked_for() -> None:
    shown = lines(
        "detailed",
        started("a", "Reading the file “x”"),
        done("a", "3 lines"),
        started("b", "Reading the file “y”"),
        done("b", "it is *gone*", success=False),
        done("c", success=False),
        started("c"),
    )
    assert [line.rstrip() for line in shown] == [
        "✓ Reading the file `x`",
        "✗ Reading the file `y`: `it is *gone*`",
        "✗ Using `c`",
        "Using `c` …",
    ]


def test_a_long_list_of_steps_is_cut_at_its_beginning() -> None:
    shown = lines("detailed", *(done(f"t{number}") for number in range(20)))
    assert len(shown) == 13
    assert shown[0].startswith("… 8 earlier steps")
    assert shown[-1] == "✓ Using `t19`"


def test_nothing_is_shown_where_it_is_to_be_quiet() -> None:
    events = (
        started("a"),
        done("a"),
        SubAgentSpawned(**IDS, name="x", task="y"),
        OtrBlocked(**IDS, reason="r"),
    )
    assert lines("quiet", *events) == []


def test_sub_agents_are_named_with_what_they_do() -> None:
    spawned = SubAgentSpawned(**IDS, name="reader", task="read all")
    progress = SubAgentProgress(**IDS, name="reader", status="Reading the page “a page”")
    assert lines("normal", spawned) == ["Sub-agent `reader` is at work …"]
    assert lines("normal", spawned, progress) == ["Sub-agent `reader`: Reading the page `a page` …"]
    finished = SubAgentCompleted(**IDS, name="reader", result="all")
    assert lines("detailed", finished) == ["✓ sub-agent `reader`"]


def test_the_newest_output_of_a_command_follows_its_sentence_until_it_is_done() -> None:
    begun = started("run_script", "Running the script “make”")
    line = ActionProgress(**IDS, tool_name="run_script", summary="Running the script “make”", line="*cc* a.c")
    assert lines("normal", begun, line) == ["Running the script `make`: `*cc* a.c` …"]
    assert lines("detailed", begun, line, done("run_script"))[0].rstrip() == "✓ Running the script `make`"


def test_a_new_attempt_begins_without_the_old_steps() -> None:
    assert lines("detailed", done("a"), TurnStarted(**IDS)) == []


def test_no_markdown_and_nothing_hidden_gets_into_a_line() -> None:
    evil = "[here](http://evil) `\u202e**b**\nnext"
    inert = "[here](http://evil) \u2019<U+202E>**b** next"
    assert lines("normal", started("x", f"Reading “{evil}”")) == [f"Reading `{inert}` …"]
    assert lines("normal", started("x", evil)) == [f"`{inert}` …"]
    assert lines("normal", started(evil)) == [f"Using `{inert}` …"]
    assert lines("normal", started("x", f"*Reading* “{evil}”")) == [f"`*Reading* “{inert}”` …"]
    (long,) = lines("normal", started("x", "y" * 500))
    assert len(long) < 140


async def test_the_line_is_below_the_preview_and_never_in_the_answer() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = await out.begin("Hm.")
        await sender.send_event(started("read", "Reading the file “a.md”"))
        await out.clock.advance(2)
        assert out.channel.texts() == ["Hm.\n\nReading the file `a.md` …"]
        await sender.send_event(LlmToken(**IDS, text=" It says", offset=3))
        await out.clock.advance(5)
        assert out.channel.texts() == ["Hm. It says"]
        await sender.send_event(started("read_file", "more.txt"))
        await out.clock.advance(5)
        await out.send("Hm. It says hello.")
        assert out.channel.texts() == ["Hm. It says hello."]


async def test_the_line_changes_at_most_every_three_seconds_and_shows_the_newest() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = await out.begin()
        for number in range(30):
            await sender.send_event(started("read_file", f"Reading the file “{number}.txt”"))
            await out.clock.advance(0.5)
        assert 4 <= len(out.channel.calls) <= 7
        await out.clock.advance(5)
        assert out.channel.texts() == ["Reading the file `29.txt` …"]


async def test_words_behind_open_code_keep_the_line_out_of_it() -> None:
    async with open_delivery(MemoryPosts(resolution="nonce")) as out:
        sender = await out.begin("```py\nx = 1")
        await sender.send_event(started("run"))
        await out.clock.advance(5)
        assert out.channel.texts() == ["```py\nx = 1\n```\n\nUsing `run` …"]
