"""Which exercise is chosen: the keywords in their order, and what a message refers to."""

from __future__ import annotations

from pipeline.companion.exercise_choice import choose_exercise
from pipeline.safety.ladder import EarlierEntry
from tests.support.tables import each


@each(
    "text, exercise",
    [
        ("something with breath", "grounding_box_breathing"),
        ("my shoulders hold so much tension", "grounding_muscle_relaxation"),
        ("the STOP technique, for my breath", "grounding_stop_technique"),
        ("how to improve this moment", "emotion_regulation_improve"),
        ("to cope", "emotion_regulation_improve"),
        ("test a belief", "thought_work_behavioral_experiment"),
        ("prove my belief wrong", "thought_work_behavioral_experiment"),
        ("a thought record", "thought_work_simple_record"),
        ("a belief of mine", "thought_work_simple_record"),
        ("I'm stuck", "behavioral_activation_tiny_action"),
        ("no motivation", "behavioral_activation_tiny_action"),
        ("self-compassion", "self_compassion_break"),
        ("more compassion", "self_compassion_break"),
        ("my values", "defusion_values_compass"),
        ("meaning", "defusion_values_compass"),
        ("accept it", "defusion_leaves_on_stream"),
        ("let it go", "defusion_leaves_on_stream"),
        ("be grateful", "emotion_regulation_gratitude"),
        ("stop for a moment", "grounding_stop_technique"),
        ("a pause", "grounding_stop_technique"),
        ("I'm overwhelmed", "emotion_regulation_improve"),
        ("an exercise", "grounding_5_4_3_2_1"),
        ("5-4-3-2-1, I am so tense", "grounding_5_4_3_2_1"),
        ("I keep meaning to do an exercise", "grounding_5_4_3_2_1"),
        ("an intense day", "grounding_5_4_3_2_1"),
        ("Atemübung", "grounding_box_breathing"),
        ("un ejercicio de gratitud", "emotion_regulation_gratitude"),
    ],
)
def test_keywords_choose_the_exercise_in_order(text: str, exercise: str) -> None:
    assert choose_exercise(text) == exercise
    assert choose_exercise(text.upper()) == exercise


def test_work_through_that_looks_at_the_last_six_entries() -> None:
    belief = EarlierEntry("person", "I have this belief that I am a burden")
    filler = [EarlierEntry("person", "hm"), EarlierEntry("bot", "Say more.")]
    assert choose_exercise("can we work through that", [belief, *filler * 2]) == "thought_work_simple_record"
    assert choose_exercise("can we work through that", [belief, *filler * 3]) == "grounding_5_4_3_2_1"
    assert choose_exercise("another one", [belief]) == "grounding_5_4_3_2_1"


def test_the_newest_entry_with_a_keyword_counts() -> None:
    history = [
        EarlierEntry("person", "I have this belief"),
        EarlierEntry("bot", "Would you like to try box breathing?"),
    ]
    assert choose_exercise("yes please", history) == "grounding_box_breathing"
