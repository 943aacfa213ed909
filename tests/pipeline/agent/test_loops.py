"""Stalls and doom loops are seen in a run's exchange."""

from __future__ import annotations

from typing import Any

from pipeline.agent.loops import END_AT, REFUSE_AT, fingerprint, repeats, stalled
from pipeline.domain.chat import ChatMessage, ToolCall, message_to_plain


def said(text: str, *calls: ToolCall) -> dict[str, Any]:
    return message_to_plain(ChatMessage(role="assistant", content=text, tool_calls=calls))


def result(of: str) -> dict[str, Any]:
    return message_to_plain(ChatMessage(role="tool", content="nothing", tool_call_id=of))


def call(arguments: str = "{}", *, call_id: str = "c1", name: str = "read_file") -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def test_three_identical_answers_in_a_row_are_a_stall() -> None:
    assert not stalled([said("Working.")] * 2)
    assert stalled([said("Working.")] * 3)
    assert stalled([said("Working.")] * 2, newest=" Working.\n")


def test_a_different_answer_in_between_is_no_stall() -> None:
    assert not stalled([said("a"), said("b"), said("a"), said("a")])
    assert not stalled([])


def test_an_answer_without_words_is_no_stall() -> None:
    assert not stalled([said("", call())] * 3)


def test_the_same_words_beside_different_calls_are_no_stall() -> None:
    beside = [said("Let me look.", call(f'{{"path": "{name}"}}')) for name in "abc"]
    assert not stalled(beside)


def test_what_others_said_in_between_does_not_hide_a_stall() -> None:
    nudge = message_to_plain(ChatMessage(role="user", content="Continue."))
    assert stalled([said("Working."), nudge, said("Working."), nudge, said("Working.")])


def test_a_call_counts_itself_and_the_same_ones_right_before_it() -> None:
    exchange: list[dict[str, Any]] = []
    counts = []
    for _ in range(END_AT):
        exchange.append(said("", call('{"path": "a"}')))
        counts.append(repeats(exchange, call('{"path": "a"}')))
        exchange.append(result("c1"))
    assert counts == [1, 2, 3, 4, 5]
    assert counts.index(REFUSE_AT) == 2


def test_identical_calls_in_one_answer_count_in_their_order() -> None:
    calls = [call(call_id=f"c{number}") for number in range(3)]
    assert [repeats([said("", *calls)], one) for one in calls] == [1, 2, 3]


def test_another_call_in_between_begins_the_count_again() -> None:
    exchange = [said("", call()), result("c1"), said("", call(name="list_files")), result("c1")]
    assert repeats(exchange, call()) == 1


def test_an_answer_that_is_not_in_the_exchange_yet_counts_behind_it() -> None:
    assert repeats([said("", call()), result("c1")], call()) == 2


def test_the_order_of_arguments_and_spaces_do_not_make_another_call() -> None:
    assert fingerprint("t", '{"a": 1, "b": 2}') == fingerprint("t", '{ "b":2,"a":1 }')
    assert fingerprint("t", '{"a": 1}') != fingerprint("t", '{"a": "1"}')
    assert fingerprint("t", '{"a": 1') == fingerprint("t", ' {"a": 1 ')
    assert fingerprint("t", "{}") != fingerprint("u", "{}")
