"""The phrases of the dispatcher: each family chooses its mode, each known false result stays away, and each
boundary between two modes is where it should be."""

from __future__ import annotations

from pipeline.companion.decision import MODES, DispatchDecision
from pipeline.companion.dispatch_rules import dispatch_by_rules, fallback
from pipeline.companion.phrases import BadPhrases, first, kinds, plain
from pipeline.safety.ladder import EarlierEntry
from tests.support.tables import each

REFLECTIVE = (
    "why do I keep pushing people away",
    "why does this keep happening to me",
    "why does this always happen",
    "I always end up apologizing first",
    "I keep saying yes to everything",
    "I keep feeling like the odd one out",
    "every time I trust somebody I get hurt",
    "it's the same thing over and over",
    "back in the same old cycle",
    "this keeps happening",
    "I'm stuck in this pattern",
    "I\u2019m stuck in the same loop",
    "I notice I always shut down",
    "I noticed that I often run from it",
    "is there a pattern in how I choose partners?",
    "Warum lande ich immer bei solchen Leuten?",
    "Pourquoi est-ce que je fais toujours ça ?",
    "¿Por qué siempre termino así?",
)
CONFUSED = (
    "huh?",
    "what?",
    "What do you mean by that?",
    "I don't understand",
    "I don\u2019t get it",
    "sorry, I don't follow",
    "I don't understand the question",
    "can you explain?",
    "could you clarify that please",
    "I'm not sure",
    "I\u2019m confused",
    "Was meinst du damit?",
    "Ich verstehe das nicht",
    "je ne comprends pas",
    "no entiendo",
)
TO_EXPLAIN = (
    "Why does grounding even work?",
    "I don't know why I'm so short with everyone",
    "I don't understand why I get so angry",
    "what is a panic attack?",
    "is it normal to feel nothing after a funeral?",
    "what happens in my body when I panic",
    "any tips for falling asleep?",
    "Can you give me some strategies for exams",
    "what can I do about the panic at night?",
    "how can I cope with the noise?",
    "do you have tips for a breathing exercise",
    "Warum hilft Atmen überhaupt?",
    "Hast du Tipps gegen das Grübeln?",
    "C'est quoi une crise de panique ?",
    "¿Qué puedo hacer contra el estrés?",
)
EXERCISE = (
    "Can we do a breathing exercise?",
    "let's try grounding",
    "STOP technique",
    "I'd like to do a thought record",
    "guide me through a body scan",
    "help me ground myself",
    "please walk me through some relaxation",
    "can we work through that",
    "Können wir eine Atemübung machen?",
    "On peut faire un exercice de respiration ?",
    "¿Podemos hacer un ejercicio de respiración?",
)
LEAVING = (
    "I should go",
    "ok, I have to go now",
    "bye",
    "good night!",
    "talk to you later",
    "that's all for today",
    "let's stop here for today",
    "thanks, this helped",
    "Thank you so much, talking really helped",
    "Ich muss jetzt los",
    "au revoir",
    "hasta mañana",
)
SUPPORT = (
    "hello",
    "Hi there, how are you?",
    "what can you do?",
    "who are you",
    "thanks, that helps",
    "thank you",
    "I can't calm down. Nothing is helping.",
    "I\u2019m having a panic attack",
    "Hallo",
    "merci, ça aide",
)
UNDECIDED = (
    "ok",
    "yes",
    "not really",
    "I feel so alone since she left",
    "Every time I try your grounding exercise it helps",
    "How do I say goodbye to my dad? He has a month left.",
    "I have to go to work tomorrow and I dread it",
    "I should go to the doctor",
    "My mother says I have to leave the house more",
    "I'm stuck in traffic",
    "I don't understand my mother",
    "I'm so confused about what I feel for him",
    "I used the same thing for dinner",
    "I don't want to do an exercise",
    "we did a breathing exercise at school",
    "I should exercise more",
    "I can't stop",
)


def _mode(text: str, *history: EarlierEntry, in_exercise: bool = False) -> str:
    found = dispatch_by_rules(text, history, in_exercise=in_exercise)
    return "" if found is None else found.mode


@each(
    "text, mode",
    [
        *((text, "reflective") for text in REFLECTIVE),
        *((text, "clarifying") for text in CONFUSED),
        *((text, "psychoeducation") for text in TO_EXPLAIN),
        *((text, "guided_exercise") for text in EXERCISE),
        *((text, "closing") for text in LEAVING),
        *((text, "supportive") for text in SUPPORT),
        *((text, "") for text in UNDECIDED),
    ],
)
def test_phrases_choose_the_mode_however_they_are_typed(text: str, mode: str) -> None:
    for written in (text, text.upper(), text.replace("'", "\u2019"), f"  {text}\u200b "):
        assert _mode(written) == mode, written


def test_every_mode_is_reached_without_a_model() -> None:
    said = [*REFLECTIVE, *CONFUSED, *TO_EXPLAIN, *EXERCISE, *LEAVING, *SUPPORT]
    assert {_mode(text) for text in said} == set(MODES)


@each(
    "text, mode",
    [
        ("ok", "clarifying"),
        ("yes", "clarifying"),
        ("not really", "clarifying"),
        ("the thing at work", "clarifying"),
        ("I feel sad", "supportive"),
        ("I\u2019m sad", "supportive"),
        ("I've had enough of him", "supportive"),
        ("my chest hurts", "supportive"),
        ("it sucks", "supportive"),
        ("it's tough", "supportive"),
        ("so tired", "supportive"),
        ("one two three four five", "clarifying"),
        ("one two three four five six", "supportive"),
        ("Ich bin traurig", "supportive"),
        ("je suis triste", "supportive"),
        ("estoy triste", "supportive"),
        ("我很难过", "supportive"),
        ("мне плохо", "supportive"),
    ],
)
def test_without_a_phrase_short_words_get_a_question_and_all_else_support(text: str, mode: str) -> None:
    decision = fallback(text)
    assert (decision.mode, decision.source) == (mode, "fallback")


def test_a_bare_yes_begins_the_exercise_that_the_bot_has_just_offered() -> None:
    offer = EarlierEntry("bot", "Would you like to try a short breathing exercise together?")
    assert _mode("yes", offer) == "guided_exercise"
    assert _mode("yes please, let\u2019s try", offer) == "guided_exercise"
    assert _mode("yes, but not now", offer) == ""
    assert _mode("yes", offer, EarlierEntry("person", "hm"), EarlierEntry("bot", "Are you at home?")) == ""


def test_thanks_close_only_where_the_conversation_ends() -> None:
    ending = EarlierEntry("bot", "Is there anything else before we stop for today?")
    assert _mode("thanks, that helps") == "supportive"
    assert _mode("thanks, that helps", EarlierEntry("bot", "You could tell her so.")) == "supportive"
    assert _mode("thanks, that helps", ending) == "closing"
    assert _mode("thanks, this helped") == "closing"


def test_a_running_exercise_is_entered_again_whatever_is_said() -> None:
    for text in ("a lamp and a chair", "I always end up apologizing first", "hello", "bye", "ok"):
        assert dispatch_by_rules(text, in_exercise=True) == DispatchDecision(
            mode="guided_exercise", source="exercise", type="active_exercise"
        )


@each("text", ["never mind", "nvm", "stop the exercise", "please skip this activity", "can we just talk?"])
def test_an_exercise_is_left_by_words_that_say_so(text: str) -> None:
    found = dispatch_by_rules(text, in_exercise=True)
    assert found is not None
    assert (found.mode, found.clears_exercise) == ("supportive", True)


def test_a_question_within_an_exercise_keeps_it() -> None:
    unclear = dispatch_by_rules("What do you mean?", in_exercise=True)
    why = dispatch_by_rules("Why does this breathing help?", in_exercise=True)
    assert unclear is not None
    assert why is not None
    assert (unclear.mode, unclear.clears_exercise) == ("clarifying", False)
    assert (why.mode, why.clears_exercise) == ("psychoeducation", False)
    assert dispatch_by_rules("Do you think it will rain tomorrow?", in_exercise=True) is None


def test_a_decision_names_the_family_of_its_phrase() -> None:
    found = dispatch_by_rules("bye")
    assert found == DispatchDecision(mode="closing", source="rules", type="en.farewell")


def test_all_phrases_of_the_table_can_be_read() -> None:
    assert all(first(kind, plain("")) is None for kind in kinds())
    assert issubclass(BadPhrases, Exception)


def test_a_long_message_is_judged_by_its_beginning() -> None:
    assert _mode("what? " * 20_000) == ""
    assert _mode("I always end up apologizing first. " + "a" * 100_000) == "reflective"
