"""Steps of the work in a terminal: dim one-liners that tear no answer apart, and none in a pipe."""

from __future__ import annotations

from typing import Any

from adapters.console.conversation import TerminalConversation
from adapters.console.screen import Screen
from adapters.console.steps import step_words
from pipeline.domain.events import (
    ActionCompleted,
    ActionStarted,
    LlmToken,
    NodeStarted,
    OtrBlocked,
    PipelineEvent,
    ResponseComplete,
    SubAgentCancelled,
    SubAgentCompleted,
    SubAgentFailed,
    SubAgentProgress,
    SubAgentSpawned,
)
from tests.support.tables import each

IDS: dict[str, Any] = {"session_id": "s", "message_id": "m"}


class Paper:
    def __init__(self, *, prompt: str = "> ") -> None:
        self.text = ""
        self.conversation = TerminalConversation(Screen(self.write, bot_name="Bot", prompt=prompt))

    def write(self, text: str) -> None:
        self.text += text


@each(
    "event, words",
    [
        (
            ActionStarted(**IDS, tool_name="read_file", summary="Reading the file “a.txt”"),
            "  · Reading the file “a.txt”",
        ),
        (
            ActionStarted(**IDS, tool_name="mcp__weather__is_fine", summary=""),
            "  · Using “is fine (weather)”",
        ),
        (ActionCompleted(**IDS, tool_name="read_file", success=True, summary="3 lines"), ""),
        (
            ActionCompleted(**IDS, tool_name="write_file", success=False, summary="refused"),
            "  · write file was not done: refused",
        ),
        (OtrBlocked(**IDS, reason="it writes"), "  · off the record: it writes"),
        (SubAgentSpawned(**IDS, name="a", task="find\nit"), "  · a begins: find it"),
        (SubAgentProgress(**IDS, name="a", status="page 3"), ""),
        (SubAgentCompleted(**IDS, name="a", result="all"), "  · a is done"),
        (SubAgentFailed(**IDS, name="a", reason="no net"), "  · a could not finish: no net"),
        (SubAgentCancelled(**IDS, name="a"), "  · a was stopped"),
        (NodeStarted(**IDS, node="agent"), ""),
    ],
)
def test_a_step_is_one_line(event: PipelineEvent, words: str) -> None:
    assert step_words(event) == words


def test_a_long_step_is_cut() -> None:
    assert len(step_words(ActionStarted(**IDS, tool_name="x", summary="y" * 500))) < 170


async def test_a_step_in_the_middle_of_an_answer_does_not_repeat_it() -> None:
    paper = Paper()
    await paper.conversation.send_event(LlmToken(**IDS, text="I look.", offset=0))
    await paper.conversation.send_event(ActionStarted(**IDS, tool_name="read", summary="\x1b[31mred"))
    await paper.conversation.send_event(LlmToken(**IDS, text=" It says tea.", offset=7))
    await paper.conversation.send_event(ResponseComplete(**IDS, content="I look. It says tea."))
    assert paper.text == "Bot: I look.\n\x1b[2m  · \\x1b[31mred\x1b[22m\n It says tea.\n"


async def test_a_pipe_gets_the_answer_alone() -> None:
    paper = Paper(prompt="")
    await paper.conversation.send_event(ActionStarted(**IDS, tool_name="read", summary="a.txt"))
    await paper.conversation.send_event(ResponseComplete(**IDS, content="Tea."))
    assert paper.text == "Tea.\n"
