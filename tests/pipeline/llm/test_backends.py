"""A model's name decides its backend, and the backends keep their contract."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.domain.chat import ChatMessage, Role, ToolCall
from pipeline.domain.errors import ConfigurationError, ModelError, ModelRejected, ModelUnavailable
from pipeline.llm.backends import Kind, ModelBackend, resolve_backend
from pipeline.llm.client import LlmFinished
from pipeline.llm.completion import Completion, ReportedError, Unreadable
from pipeline.llm.failures import Target, empty_answer, retry_after_of, translate
from pipeline.llm.prices import Price, price_of
from pipeline.llm.tool_call_assembly import CallAssembly
from pipeline.llm.wire import messages_to_wire
from tests.support.tables import each

BASE = "http://127.0.0.1:8000/v1"
OPENAI = "https://api.openai.com/v1"


@each("model, base, kind, name, where", [
        ("local", None, "local", "local", None),
        ("scripted:echo", None, "scripted", "echo", None),
        ("openai/gpt-5-mini", None, "direct", "gpt-5-mini", OPENAI),
        ("openai/qwen/qwen3", BASE, "direct", "qwen/qwen3", BASE),
        ("openai_compatible/llama3", BASE, "direct", "llama3", BASE),
        ("litellm/openai/gpt-5-mini", None, "litellm", "openai/gpt-5-mini", None),
        ("openai/responses/gpt-5-pro", None, "litellm", "openai/responses/gpt-5-pro", None),
        ("anthropic/claude-sonnet-4-5", None, "litellm", "anthropic/claude-sonnet-4-5", None),
        ("ollama_chat/llama3", "http://127.0.0.1:11434", "litellm", "ollama_chat/llama3", "http://127.0.0.1:11434"),
        ("gpt-4o", None, "litellm", "gpt-4o", None),
    ])  # fmt: skip
def test_the_name_decides_the_backend(
    model: str, base: str | None, kind: Kind, name: str, where: str | None
) -> None:
    backend = resolve_backend(model, base)
    assert backend == ModelBackend(kind=kind, model=name, api_base=where)


def test_people_see_what_serves_the_model() -> None:
    assert resolve_backend("openai/gpt-5-mini").words() == f"gpt-5-mini, straight from {OPENAI}"
    assert (
        resolve_backend("ollama_chat/llama3", BASE).words()
        == f"ollama_chat/llama3, through litellm at {BASE}"
    )
    assert resolve_backend("groq/llama3").words() == "groq/llama3, through litellm"
    assert resolve_backend("local").words() == "the embedded model, on this machine"
    assert resolve_backend("scripted:echo").words() == "the shipped fake (echo), no real model"


def test_an_endpoint_without_an_address_is_refused_with_the_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"llm\.api_base"):
        resolve_backend("openai_compatible/llama3")


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=4), st.integers(1, 7), st.booleans())
def test_calls_are_whole_however_their_arguments_are_cut_and_mixed(
    texts: list[str], step: int, mixed: bool
) -> None:
    assembly = CallAssembly()
    fragments = [
        [(index, text[start : start + step]) for start in range(0, len(text), step)]
        for index, text in enumerate(texts)
    ]
    for index in range(len(texts)):
        assembly.add(index=index, call_id=f"id{index}", name="tool", arguments="")
    rows = itertools.zip_longest(*fragments) if mixed else fragments
    for index, piece in filter(None, itertools.chain.from_iterable(rows)):
        assembly.add(index=index, call_id=None, name=None, arguments=piece)
    assert [call.arguments for call in assembly.calls()] == texts
    assert [call.id for call in assembly.calls()] == [f"id{index}" for index in range(len(texts))]


@pytest.mark.parametrize(
    "fragments",
    [
        # Without an index, each whole.
        [(None, "a", "one", "{}"), (None, "b", "two", "[]")],
        # All with the same index, as Gemini's endpoint does.
        [(0, "a", "one", "{}"), (0, "b", "two", "[]")],
        # Neither index nor id.
        [(None, None, "one", "{}"), (None, None, "two", "[]")],
        # The name again with every fragment.
        [(0, "a", "one", "{"), (0, "a", "one", "}"), (1, "b", "two", "["), (1, "b", "two", "]")],
        # The name in pieces.
        [(0, "a", "o", ""), (0, None, "ne", "{}"), (1, "b", "two", "[]")],
        # One id for both.
        [(0, "a", "one", "{}"), (1, "a", "two", "[]")],
        # Arguments as JSON data instead of its text.
        [(0, "a", "one", {}), (1, "b", "two", [])],
    ],
)
def test_two_calls_are_distinguished_in_every_dialect(fragments: list[tuple[object, ...]]) -> None:
    assembly = CallAssembly()
    for index, call_id, name, arguments in fragments:
        assembly.add(index=index, call_id=call_id, name=name, arguments=arguments)
    calls = assembly.calls()
    assert [(call.name, call.arguments) for call in calls] == [("one", "{}"), ("two", "[]")]
    assert calls[0].id
    assert calls[0].id != calls[1].id != ""


def test_instructions_and_a_summary_are_one_system_message_for_the_provider() -> None:
    said: list[tuple[Role, str]] = [
        ("system", "Be brief."),
        ("system", "[Summary]"),
        ("user", "Hi"),
        ("system", "later"),
    ]
    wire = messages_to_wire([ChatMessage(role=role, content=content) for role, content in said])
    assert [(message["role"], message["content"]) for message in wire] == [
        ("system", "Be brief.\n\n[Summary]"),
        ("user", "Hi"),
        ("system", "later"),
    ]


def test_halves_of_characters_in_a_call_are_put_together_or_replaced() -> None:
    assembly = CallAssembly()
    assembly.add(index=0, call_id="i\ud800", name="t\udc00", arguments='{"a": "\ud83d')
    assembly.add(index=0, call_id=None, name=None, arguments='\ude00\ud800"}')
    (call,) = assembly.calls()
    assert (call.id, call.name, call.arguments) == ("i\ufffd", "t\ufffd", '{"a": "\U0001f600\ufffd"}')


KEYS = ["choices", "delta", "content", "tool_calls", "function", "index", "usage", "error"]
EVENTS = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=12,
)


@given(EVENTS)
def test_any_json_is_read_or_refused_and_nothing_else(event: object) -> None:
    completion = Completion()
    try:
        assert isinstance(completion.read(json.dumps(event).encode()), str)
    except (Unreadable, ReportedError):
        return
    assert completion.finished(called=False).prompt_tokens >= 0


def test_history_that_a_model_got_wrong_is_sent_in_a_form_that_providers_take() -> None:
    texts = ["[1]", "", "{'a': 1}", '{"a": 1}']
    calls = tuple(ToolCall(id=str(n), name="tool", arguments=text) for n, text in enumerate(texts))
    wire = messages_to_wire([ChatMessage(role="assistant", content="", tool_calls=calls)])[0]
    assert [call["function"]["arguments"] for call in wire["tool_calls"]] == [
        '{"unreadable": "[1]"}',
        "{}",
        '{"unreadable": "{\'a\': 1}"}',
        '{"a": 1}',
    ]
    assert wire["content"] is None


def test_the_price_of_a_known_model_is_counted_and_of_another_is_not() -> None:
    price = price_of("gpt-4o")
    assert price == Price(prompt=2.5e-6, cached=1.25e-6, completion=10e-6)
    assert price_of("no-such-model") is None
    completion = Completion(price)
    usage = {"prompt_tokens": 1000, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 400}}
    completion.read(json.dumps({"choices": [], "usage": usage}).encode())
    assert completion.finished(called=False).cost == pytest.approx(600 * 2.5e-6 + 400 * 1.25e-6 + 10 * 10e-6)


def test_what_the_endpoint_says_a_call_cost_is_believed() -> None:
    completion = Completion()
    completion.read(b'{"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1, "cost": 0.0125}}')
    assert completion.finished(called=False).cost == 0.0125


@pytest.mark.parametrize(
    ("status", "words", "kind", "said"),
    [
        (429, "You exceeded your current quota, please check your plan", ModelRejected, "no credit"),
        (402, "Insufficient credits", ModelRejected, "no credit"),
        (429, "Rate limit reached", ModelUnavailable, "limits the rate"),
        (503, "overloaded", ModelUnavailable, "cannot be reached"),
    ],
)
def test_a_refusal_is_reported_for_what_it_is(
    status: int, words: str, kind: type[ModelError], said: str
) -> None:
    error = translate(ReportedError(words, status=status), Target(model="m"))
    assert type(error) is kind
    assert said in str(error)
    assert words not in str(error), "people get our words"
    assert error.detail == words


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:00:00 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 0.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:30 GMT"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({}, None),
    ],
)
def test_the_wait_that_a_provider_asks_for_is_read_in_both_its_forms(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_of(ReportedError("wait", status=429, headers=headers)) == seconds


def test_an_answer_that_a_filter_withheld_is_not_asked_for_again() -> None:
    error = empty_answer(Target(model="m"), LlmFinished(finish_reason="content_filter"))
    assert isinstance(error, ModelRejected)
    assert "content filter" in str(error)
