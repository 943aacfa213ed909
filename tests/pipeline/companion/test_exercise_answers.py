"""What an answer means for a step: leave, be stuck, complete, stay; and what only looks like one of them."""

from __future__ import annotations

from pipeline.companion.exercise_answers import count_items, is_question, read_answer
from pipeline.companion.exercise_book import ExerciseStep
from pipeline.companion.phrases import plain
from tests.support.tables import each

CONFIRM = ExerciseStep(kind="confirm")
ONE = ExerciseStep(kind="items")
FIVE = ExerciseStep(kind="items", expected=5, minimum=3)

EXITS = (
    "stop",
    "please stop",
    "can we stop this",
    "I want to quit",
    "cancel",
    "never mind",
    "skip this exercise",
    "I don't want to",
    "I don\u2019t want to do this anymore",
    "I don't want to continue",
    "this isn't helping",
    "it doesn\u2019t help at all",
    "can we just talk",
    "could we talk about something else",
    "I need to go",
    "I have to stop now",
    "I have to go to bed",
    "not in the mood",
    "I'm really not in the mood for this",
    "bye",
    "aufhören",
    "Ich will nicht mehr",
    "je veux arrêter",
    "no quiero seguir",
)
STUCK = (
    "I can't",
    "I can\u2019t think of anything",
    "I can't do this",
    "I don't know",
    "I don't know what to say",
    "idk",
    "nothing comes to mind",
    "my mind is blank",
    "it's stupid",
    "this feels pointless",
    "I'm stuck",
    "I'm stuck on this one",
    "no idea",
    "Mir fällt nichts ein",
    "Ich weiß nicht",
    "je ne sais pas",
    "no se me ocurre nada",
)
CONFIRMED = (
    "done",
    "ok",
    "Okay, done!",
    "yes",
    "yep",
    "ready",
    "finished",
    "sure",
    "I did",
    "I'm done",
    "took a breath",
    "I took a deep breath",
    "exhaled",
    "I breathed out slowly",
    "fertig",
    "ich habe ausgeatmet",
    "c'est fait",
    "listo",
)
NOT_CONFIRMED = (
    "not yet",
    "almost done",
    "I'm not done",
    "wait",
    "hmm",
    "how long should I hold it?",
    "ok but how often do I do this?",
    "my neighbour has a new dog",
    "I don't want to lose this feeling",
)


def _outcome(text: str, step: ExerciseStep, *, named: int = 0) -> str:
    return read_answer(text, step, named=named).outcome


@each("step", [CONFIRM, ONE, FIVE])
@each("text, outcome", [*((one, "exit") for one in EXITS), *((one, "stuck") for one in STUCK)])
def test_ends_and_being_stuck_are_read_the_same_in_every_step(
    text: str, outcome: str, step: ExerciseStep
) -> None:
    for written in (text, text.upper(), text.replace("'", "\u2019"), f" {text} "):
        assert _outcome(written, step) == outcome, written


@each(
    "text, outcome",
    [*((text, "complete") for text in CONFIRMED), *((text, "hold") for text in NOT_CONFIRMED)],
)
def test_a_step_to_confirm_waits_for_a_confirmation(text: str, outcome: str) -> None:
    assert _outcome(text, CONFIRM) == outcome


@each(
    "text",
    [
        "I don't want to lose this feeling",
        "I don\u2019t want to stop",
        "I can't stop thinking about it",
        "I need to go to work tomorrow",
        "I have to stop being so hard on myself",
        "my boss was not in the mood",
        "My medication isn't helping",
        "I can't see anything but a lamp",
        "I can't do anything right",
        "I don't know if I will pass the exam",
        "I don't know, maybe a walk",
        "I can't think of much, but there is my cup",
        "What if I fail?",
        "Why am I like this?",
        "a lamp?",
    ],
)
def test_what_only_looks_like_an_end_or_like_being_stuck_is_an_answer(text: str) -> None:
    assert _outcome(text, ONE) == "complete"


@each(
    "text",
    [
        "what's the weather tomorrow?",
        "Can you tell me a joke?",
        "do you have a name?",
        "how many steps are there",
        "ok",
        "hello",
        "thanks",
        "yes",
        "hm...",
        "👍",
        "?",
        "",
        "a",
    ],
)
def test_a_question_and_a_mere_sound_complete_no_step(text: str) -> None:
    assert _outcome(text, ONE) == "hold"


@each(
    "text, count",
    [
        ("a lamp", 1),
        ("a lamp, my desk and a cup", 3),
        ("I see a lamp; a chair & a window", 3),
        ("um, maybe like a lamp", 1),
        ("lamp\ndesk\ncup", 3),
        ("1. lamp 2. desk 3. cup", 3),
        ("- lamp\n- desk", 2),
        ("a lamp a chair my phone", 3),
        ("a lamp on a table", 1),
        ("lamp, lamp, a lamp", 1),
        ("x, y, z", 0),
        ("Lampe, Tisch und Stuhl", 3),
        ("je vois une lampe, une table et un livre", 3),
        ("veo una mesa y una silla", 2),
        ("台灯", 1),
    ],
)
def test_different_things_are_counted(text: str, count: int) -> None:
    assert count_items(plain(text)) == count


def test_a_step_of_several_things_is_complete_at_its_minimum_over_several_answers() -> None:
    assert read_answer("a lamp, a chair", FIVE).outcome == "hold"
    assert read_answer("a lamp, a chair", FIVE).items == 2
    assert _outcome("a lamp, a chair, a cup", FIVE) == "complete"
    assert _outcome("a cup", FIVE, named=2) == "complete"
    assert _outcome("ok", FIVE, named=5) == "hold"


def test_i_cannot_see_anything_but_a_lamp_names_one_thing() -> None:
    found = read_answer("I can\u2019t see anything but a lamp", FIVE)
    assert (found.outcome, found.items) == ("hold", 1)


def test_questions_to_oneself_are_none_to_the_bot() -> None:
    assert is_question(plain("What should I do now?"))
    assert not is_question(plain("What if everybody leaves me?"))
    assert not is_question(plain("A lamp, a chair?"))


def test_repeated_words_are_read_once() -> None:
    assert _outcome("i did it " * 200 + "x", ExerciseStep(kind="items")) == "complete"
    assert _outcome("i did it " * 200 + "?", CONFIRM) == "complete"
    assert count_items(plain("ok yes done " * 150 + "x")) == 0


def test_an_end_comes_before_being_stuck() -> None:
    assert _outcome("I don't know, can we stop", ONE) == "exit"
    assert _outcome("I can't. I don't want to do this.", ONE) == "exit"
