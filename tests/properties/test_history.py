"""Whatever a conversation is like, its care cuts no turn, loses nothing that is new, and comes to rest."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.domain.chat import ChatMessage, ToolCall
from pipeline.domain.conversation import Conversation, PastTurn, Summary
from pipeline.domain.inert_text import inert
from pipeline.history.compaction import Levels, beginning
from pipeline.history.facts import MAX_BOOK_CHARS, with_facts
from pipeline.history.observation_summary import too_old
from pipeline.history.stale_results import as_sent, brief, one_line, sent
from pipeline.history.summarization import cut_to_tokens
from pipeline.history.transcript import transcript
from pipeline.history.view import opening

STALE_AFTER = 4


@st.composite
def _turns(draw: st.DrawFn) -> tuple[PastTurn, ...]:
    sizes = st.integers(0, 600)
    turns = []
    for number in range(draw(st.integers(0, 12))):
        messages = [ChatMessage(role="user", content="u" * draw(sizes))]
        for call in range(draw(st.integers(0, 2))):
            asked = ToolCall(id=f"{number}.{call}", name="read", arguments="{}")
            messages.append(ChatMessage(role="assistant", content="", tool_calls=(asked,)))
            result = "r" * draw(sizes)
            messages.append(ChatMessage(role="tool", content=result, tool_call_id=asked.id))
        messages.append(ChatMessage(role="assistant", content="a" * draw(sizes)))
        turns.append(PastTurn(id=10 * number, messages=tuple(messages)))
    return tuple(turns)


@st.composite
def _levels(draw: st.DrawFn) -> Levels:
    budget = draw(st.integers(100, 3_000))
    return Levels(budget=budget, start=budget * 0.7, keep=budget * 0.5, summary=min(500, int(budget / 6)))


def _used(conversation: Conversation, newest: int) -> int:
    turns = conversation.turns
    before = sum(message.tokens for message in opening(conversation.summary, left_out=False))
    shown = [as_sent(turns, index, STALE_AFTER) for index in range(len(turns))]
    return newest + before + sum(turn.tokens for turn in shown)


def _applied(conversation: Conversation, old: tuple[PastTurn, ...], levels: Levels) -> Conversation:
    """With the longest summary there may be."""
    text = cut_to_tokens("word " * 600, levels.summary)
    return Conversation(summary=Summary(text=text, upto=old[-1].id), turns=conversation.turns[len(old) :])


@settings(max_examples=120, deadline=None)
@given(turns=_turns(), levels=_levels(), newest=st.integers(0, 300), summed_up=st.booleans())
def test_compaction_takes_whole_turns_from_the_beginning_down_to_its_level(
    turns: tuple[PastTurn, ...], levels: Levels, newest: int, summed_up: bool
) -> None:
    before = Summary(text="s" * levels.summary, upto=-1) if summed_up else None
    conversation = Conversation(summary=before, turns=turns)
    old = beginning(conversation, newest, levels, STALE_AFTER)

    assert old == turns[: len(old)]
    assert old == beginning(conversation, newest, levels, STALE_AFTER)
    if _used(conversation, newest) < levels.start:
        assert old == ()
    if not old:
        return
    after = _applied(conversation, old, levels)
    if after.turns:
        assert len(after.turns) == 1 or _used(after, newest) <= levels.keep + 1
    else:
        assert turns[-1].tokens + newest + levels.summary > levels.budget - 30
    assert _used(after, newest) <= max(levels.budget, newest + levels.summary + 30)


@settings(max_examples=60, deadline=None)
@given(turns=_turns(), levels=_levels(), newest=st.integers(0, 60))
def test_compaction_comes_to_rest(turns: tuple[PastTurn, ...], levels: Levels, newest: int) -> None:
    conversation = Conversation(turns=turns)
    rounds = 0
    while old := beginning(conversation, newest, levels, STALE_AFTER):
        conversation = _applied(conversation, old, levels)
        rounds += 1
        assert rounds <= 2


@settings(max_examples=60, deadline=None)
@given(turns=_turns(), above=st.integers(4, 40))
def test_the_background_takes_whole_turns_and_leaves_the_newest(
    turns: tuple[PastTurn, ...], above: int
) -> None:
    conversation = Conversation(turns=turns)
    old = too_old(conversation, above)
    assert old == turns[: len(old)]
    assert len(old) < max(1, len(turns))
    left = Conversation(turns=turns[len(old) :])
    assert bool(old) <= (conversation.size > above)
    assert left.size <= max(above, len(turns[-1].messages) if turns else 0)


@settings(max_examples=60, deadline=None)
@given(turns=_turns())
def test_a_brief_turn_is_the_same_talk_with_shorter_results(turns: tuple[PastTurn, ...]) -> None:
    for turn in turns:
        short = brief(turn)
        assert brief(short) == short
        assert short.tokens <= turn.tokens
        assert [(m.role, m.tool_calls, m.tool_call_id) for m in short.messages] == [
            (m.role, m.tool_calls, m.tool_call_id) for m in turn.messages
        ]
    assert set(sent(turns)) == {message for turn in turns for message in turn.messages}


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=300))
def test_cleaning_and_shortening_twice_is_doing_it_once(text: str) -> None:
    assert inert(inert(text)) == inert(text)
    assert one_line(one_line(text)) == one_line(text)


@settings(max_examples=60, deadline=None)
@given(turns=_turns(), room=st.integers(1, 4_000))
def test_a_transcript_keeps_its_bound(turns: tuple[PastTurn, ...], room: int) -> None:
    assert len(transcript(turns, room)) <= room


@settings(max_examples=60, deadline=None)
@given(
    book=st.text(st.sampled_from("ab #-\n"), max_size=200),
    facts=st.lists(
        st.text(st.sampled_from("abc d"), min_size=1, max_size=20).map(lambda text: f"x{text}"), max_size=8
    ),
)
def test_writing_facts_twice_is_writing_them_once(book: str, facts: list[str]) -> None:
    once = with_facts(book, facts, 0.0)
    assert with_facts(once, facts, 0.0) == once
    assert len(once) <= MAX_BOOK_CHARS + 300
    assert {line for line in book.splitlines() if line.strip()} <= set(once.splitlines())
