"""What the small model is asked before an answer: which tool, with which arguments, in which words."""

from __future__ import annotations

from pipeline.domain.chat import ChatMessage, ToolCall, ToolDefinition
from pipeline.domain.marking import marked
from pipeline.llm.action_arguments import arguments_body, borrowed, bounded
from pipeline.llm.action_choice import choices_of, choosing_body
from pipeline.llm.action_examples import NO_TOOL
from pipeline.llm.action_view import in_plain_words


def tool(name: str, description: str = "Does it.", **properties: object) -> ToolDefinition:
    return ToolDefinition(
        name=name, description=description, parameters={"type": "object", "properties": properties}
    )


def loader(*groups: str) -> ToolDefinition:
    return tool("load_tools", groups={"type": "array", "items": {"type": "string", "enum": list(groups)}})


def says(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def test_a_tool_that_takes_names_out_of_a_list_is_one_choice_for_each_name() -> None:
    first, second, third = choices_of([loader("notes", "web"), tool("about")])
    assert (first.label, first.tool.name, first.arguments) == ("notes", "load_tools", {"groups": ["notes"]})
    assert (second.label, second.arguments) == ("web", {"groups": ["web"]})
    assert (third.label, third.arguments) == ("about", None)


def test_what_is_settled_is_no_choice_and_no_tool_can_take_the_label_of_an_answer() -> None:
    offered = [loader("notes", "web"), tool("answer"), tool("about"), tool("about", "Another.")]
    choices = choices_of(offered, {"notes"})
    assert [choice.label for choice in choices] == ["web", "about"]
    assert choices[1].tool.description == "Does it."


def test_the_grammar_has_the_labels_and_nothing_else() -> None:
    body = choosing_body(choices_of([loader("notes", "mcp:x"), tool("current_time")]), "hi")
    assert body["grammar"] == 'root ::= "answer" | "notes" | "mcp:x" | "current_time"'
    assert body["temperature"] == 0.0


def test_every_label_has_an_example_and_an_unknown_tool_is_shown_by_its_description() -> None:
    choices = choices_of([tool("lamp"), tool("forecast", "Tell the weather of a city. Or two.")])
    messages = choosing_body(choices, "hi")["messages"]
    shown = {(a["content"], b["content"]) for a, b in zip(messages[1::2], messages[2::2], strict=False)}
    assert ("Does it.", "lamp") in shown
    assert ("Tell the weather of a city", "forecast") in shown
    assert (NO_TOOL[0], "answer") in shown


def test_a_group_is_shown_by_its_name_where_it_is_the_choice() -> None:
    messages = choosing_body(choices_of([loader("mcp:a", "mcp:b")]), "hi")["messages"]
    reported = [b["content"] for a, b in zip(messages[1::2], messages[2::2], strict=False) if a["content"]]
    assert {"mcp:a", "mcp:b", "answer"} == set(reported)


def test_the_question_begins_alike_every_time_and_ends_with_the_words() -> None:
    choices = choices_of([tool("lamp")])
    one = choosing_body(choices, "one")["messages"]
    two = choosing_body(choices, "two", ("What time is it?", "lamp"))["messages"]
    assert two[: len(one) - 1] == one[:-1]
    assert two[-3:] == [
        says("user", "What time is it?"),
        says("assistant", "lamp"),
        says("user", "two"),
    ]
    assert choosing_body(choices, "two", ("Old words", "gone"))["messages"][:-1] == one[:-1]


def test_long_words_keep_their_beginning_and_their_end() -> None:
    last = choosing_body(choices_of([tool("about")]), "first " + "x" * 5_000 + " last")["messages"][-1]
    assert last["content"].startswith("first ")
    assert last["content"].endswith(" last")
    assert len(last["content"]) < 700


def test_an_argument_that_shares_no_word_with_what_was_said_is_borrowed() -> None:
    remind = tool("later", text={"type": "string"}, unit={"enum": ["minutes"]}, count={"type": "integer"})
    said = ("Erinnere mich an die Pflanzen", "before: tea")
    assert borrowed(remind, {"text": "eat"}, said)
    assert borrowed(remind, {"text": ["Pflanzen", "eat"]}, said)
    assert not borrowed(remind, {"text": "die PFLANZEN!", "unit": "minutes", "count": 3}, said)
    assert not borrowed(remind, {"text": "tea"}, said)
    assert not borrowed(remind, {"text": ""}, said)


def test_a_schema_keeps_its_shape_and_every_text_and_list_gets_an_end() -> None:
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 8_000, "pattern": "^(?!x)"},
            "kind": {"enum": ["a", "b"]},
            "count": {"type": "integer", "minimum": 1},
            "all": {"type": "array", "items": {"type": "string", "minLength": 3}},
            "any": {"anyOf": [{"type": "string"}]},
        },
        "required": ["text", "absent"],
        "$defs": {},
    }
    assert bounded(schema) == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "minLength": 0, "maxLength": 400},
            "kind": {"enum": ["a", "b"]},
            "count": {"type": "integer"},
            "all": {
                "type": "array",
                "items": {"type": "string", "minLength": 1, "maxLength": 400},
                "maxItems": 10,
            },
            "any": {"type": "string", "minLength": 0, "maxLength": 400},
        },
        "required": ["text"],
        "additionalProperties": False,
    }


def test_arguments_are_asked_for_without_words_of_examples_and_with_what_was_said_before() -> None:
    remind = tool("remind_me", "Later.", text={"type": "string", "description": "Of what."})
    body = arguments_body(remind, "and of tea", ("Remind me of milk", "I will."))
    system, *pairs, last = body["messages"]
    assert "text (may be left out): Of what." in system["content"]
    assert "Remind me of milk" in system["content"]
    assert not pairs, "an example's words would be taken for the user's"
    assert last == says("user", "and of tea")


def test_a_conversation_with_calls_becomes_plain_words() -> None:
    load = ToolCall(id="a", name="load_tools", arguments='{"groups": ["system"]}')
    time = ToolCall(id="b", name="current_time", arguments="{}")
    messages = (
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="Time?"),
        ChatMessage(role="assistant", content="", tool_calls=(load,)),
        ChatMessage(role="tool", content="system: loaded", tool_call_id="a"),
        ChatMessage(role="assistant", content="Let me see.", tool_calls=(time,)),
        ChatMessage(role="tool", content="It is noon. " + "x" * 400, tool_call_id="b"),
        ChatMessage(role="assistant", content="Noon."),
        ChatMessage(role="user", content="Thanks"),
    )
    plain = in_plain_words(messages)
    assert [message.role for message in plain] == ["system", "user", "assistant", "assistant", "user"]
    assert plain[1].content.startswith("Time?\n\n(current_time says: It is noon.")
    assert len(plain[1].content) < 400, "what an earlier tool said is shown by its beginning"
    assert "loaded" not in str(plain)
    assert plain[-1].content == "Thanks"
    assert not any(message.tool_calls or message.tool_call_id for message in plain)


def test_the_newest_result_is_shown_whole_and_asked_to_be_used() -> None:
    call = ToolCall(id="b", name="read_file", arguments="{}")
    plain = in_plain_words(
        (
            ChatMessage(role="user", content="Read it"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            ChatMessage(role="tool", content="y" * 1_000, tool_call_id="b"),
        )
    )
    assert len(plain) == 1
    assert "y" * 1_000 in plain[0].content
    assert plain[0].content.endswith("Use this to answer.")


def test_an_earlier_turn_that_ended_in_a_refusal_is_not_shown() -> None:
    plain = in_plain_words(
        (
            ChatMessage(role="system", content="Be brief."),
            ChatMessage(role="user", content="Hello"),
            ChatMessage(role="assistant", content="Hi."),
            ChatMessage(role="user", content="What is RAM?"),
            ChatMessage(role="assistant", content="I'm sorry, but I can't assist with that."),
            ChatMessage(role="user", content="And ROM?"),
        )
    )
    assert [message.content for message in plain] == ["Be brief.", "Hello", "Hi.", "And ROM?"]


def test_a_result_is_shown_without_its_marks() -> None:
    call = ToolCall(id="b", name="list_files", arguments="{}")
    result = ChatMessage(role="tool", content=marked("list_files", "tea.txt"), tool_call_id="b")
    plain = in_plain_words(
        (
            ChatMessage(role="user", content="My files?"),
            ChatMessage(role="assistant", content="", tool_calls=(call,)),
            result,
        )
    )
    assert "(list_files says: tea.txt)" in plain[0].content


def test_a_conversation_without_calls_is_left_as_it_is() -> None:
    messages = (ChatMessage(role="system", content="s"), ChatMessage(role="user", content="u"))
    assert in_plain_words(messages) == messages
