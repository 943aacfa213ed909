"""Reading along: each sentence once, as soon as nothing that follows can change it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adapters.formatting.read_along import ReadAlong
from adapters.formatting.sentences import MAX_CHARS, sentences
from adapters.formatting.spoken import CODE_BLOCK, spoken_text
from tests.support.tables import each

ANSWERS = (
    "The tide **rises** twice a day. Dr. Smith says 3.5 m, e.g. here. It falls again.",
    "# Tides\n\nThe moon draws the water. The sun helps.\n\n- high water\n- low\n\n3. mix\n4. bake\n\nDone.",
    "Look at this code:\n\n```python\nprint('a. b')\nx = 1\n```\n\nIt prints the letters. That is it.",
    "See [the guide. It is long](https://example.org/a) now. And ![a red boat. Old](https://a.org/b) too.",
    "These are the hours:\n\n| Day | Open |\n|---|---|\n| Monday | 9 to 5 |\n| Sunday | |\n\nCome soon.",
    "潮は一日に二回満ちます。月が水を引きます。太陽も助けます。",
    "ज्वार दिन में दो बार आता है। चाँद पानी खींचता है। सूरज भी।",
    "> Water rises. It falls.\n\nThat was __quoted__ text. `code. here` too.",
)


def read_in_steps(answer: str, reader: ReadAlong, step: int = 1) -> list[tuple[int, str]]:
    """The parts with how many characters were written when each came."""
    parts = []
    for written in range(1, len(answer), step):
        while part := reader.next_part(answer[:written], ended=False):
            parts.append((written, part))
    while part := reader.next_part(answer, ended=True):
        parts.append((len(answer), part))
    return parts


@each("answer", ANSWERS)
@each("step", [1, 7])
def test_what_is_read_along_is_what_the_whole_answer_says(answer: str, step: int) -> None:
    parts = read_in_steps(answer, ReadAlong(), step)
    assert " ".join(part for _, part in parts) == " ".join(sentences(spoken_text(answer)))
    assert parts[0][0] < len(answer)


@given(st.text(st.sampled_from("ab1 .,!#*_`~|[]()<>\\-\n。"), max_size=120), st.integers(1, 5))
def test_whatever_is_written_all_that_the_answer_says_is_read(answer: str, step: int) -> None:
    read = Counter(" ".join(part for _, part in read_in_steps(answer, ReadAlong(), step)).split())
    whole = Counter(" ".join(sentences(spoken_text(answer))).split())
    assert whole - read == Counter()


def test_a_first_sentence_comes_with_the_beginning_of_the_second() -> None:
    reader = ReadAlong()
    assert reader.next_part("The tide rises twice a day.", ended=False) == ""
    assert reader.next_part("The tide rises twice a day. I", ended=False) == "The tide rises twice a day."
    assert reader.next_part("The tide rises twice a day. It falls", ended=False) == ""


def test_a_short_beginning_waits_for_the_next_sentence() -> None:
    reader = ReadAlong()
    assert reader.next_part("Yes. The tide rises", ended=False) == ""
    assert reader.next_part("Yes. The tide rises. Th", ended=False) == "Yes. The tide rises."


def test_an_answer_without_a_full_stop_is_read_in_pieces() -> None:
    text = "and then, the water came back and " * 20
    parts = read_in_steps(text, ReadAlong(), 3)
    assert parts[0][0] <= MAX_CHARS + 20
    assert all(len(part) <= MAX_CHARS for _, part in parts)
    assert " ".join(part for _, part in parts) == f"{text.strip()}."


def test_code_is_named_once_and_not_before_the_fence_is_known() -> None:
    reader = ReadAlong()
    text = "Here is the program:\n\n```\na. b\nc. d\n"
    parts = read_in_steps(text, reader)
    assert [part for _, part in parts] == ["Here is the program:", CODE_BLOCK]


def test_a_pause_settles_a_last_sentence_with_a_full_stop() -> None:
    reader = ReadAlong()
    assert reader.next_part("I look that up.", ended=False) == ""
    assert reader.next_part("I look that", ended=False, paused=True) == ""
    assert reader.next_part("I look that up.", ended=False, paused=True) == "I look that up."
    assert reader.next_part("I look that up.\n\nIt is four.", ended=True) == "It is four."


def test_a_final_answer_that_differs_further_on_is_read_on_as_it_is() -> None:
    reader = ReadAlong()
    assert reader.next_part("The tide rises twice a day. It fa", ended=False)
    assert reader.next_part("The tide rises twice a day. Twice it falls.", ended=True) == "Twice it falls."
    assert reader.next_part("The tide rises twice a day. Twice it falls.", ended=True) == ""


def test_a_final_answer_that_differs_further_back_has_only_its_new_sentences_read() -> None:
    reader = ReadAlong()
    begun = "The sum of both is five. It is odd, as you see. So"
    while reader.next_part(begun, ended=False):
        pass
    final = "The sum of both is six. It is odd, as you see. So be it."
    assert reader.next_part(final, ended=True) == "The sum of both is six. So be it."
    assert reader.next_part(final, ended=True) == ""


def test_a_long_answer_is_not_parsed_again_for_each_part_of_it() -> None:
    parsed: list[str] = []

    def spoken(markdown: str) -> str:
        parsed.append(markdown)
        return spoken_text(markdown)

    reader = ReadAlong(spoken)
    answer = "The **tide** rises twice a day, and `the moon` draws it. " * 200
    parts = [reader.next_part(answer, ended=False)]
    while part := reader.next_part(f"{answer}That is all.", ended=True):
        parts.append(part)
    assert len(parts) > 30
    # Once while it was written, once for what followed, and once to know that nothing is left.
    assert len(parsed) == 3
