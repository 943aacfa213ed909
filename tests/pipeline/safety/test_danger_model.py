"""The shipped weights of the crisis gate's model, their file, and that training is reproducible."""

from __future__ import annotations

import re
import time
import tomllib
from functools import cache
from pathlib import Path

import pytest

from evals.crisis import HALVES, READ, read_cases
from pipeline.safety import danger_model
from pipeline.safety.assessment import IMMINENT
from pipeline.safety.danger_model import (
    FILE,
    MAGIC,
    QUESTIONS,
    BadCrisisWeights,
    from_bytes,
    shipped_concepts,
    shipped_model,
    words_of,
)
from pipeline.safety.ladder import IMMINENT_AT, EarlierEntry, assess, clear_at, level_of
from pipeline.safety.patterns import LADDER, shipped_patterns
from pipeline.safety.plain_words import plain_words
from tests.support.tables import each
from tools.crisis.texts import (
    HERE,
    LANGUAGES,
    LEVELS,
    message_samples,
    messages,
    read_templates,
    templates,
)
from tools.crisis.training import SEEDS, Training, Weights, file_of


def test_the_shipped_weights_load_and_fit_in_two_megabytes() -> None:
    assert FILE.stat().st_size <= 2_000_000
    assert len(shipped_model().weights) == QUESTIONS


def test_the_model_finds_indirect_words_in_four_languages_and_no_harmless_ones() -> None:
    model = shipped_model()
    for text in (
        "i put one of my pills aside every day, now i have enough to never wake up",
        "ich habe die tabletten gezahlt und heute nacht nehme ich alle",
        "la corde est prete et ce soir je pars pour toujours",
        "ya deje la carta para mi mama, esta noche me voy para siempre",
    ):
        scores = model.score(text)
        assert scores.clear >= clear_at(len(words_of(text))), text
        assert scores.imminent >= IMMINENT_AT, text
    for text in (
        "how many pills are in a box of vitamin c?",
        "heute nacht fahren wir mit dem zug nach wien",
        "la fin du film etait nulle",
        "mi abuela murio el ano pasado y la extrano",
    ):
        assert model.score(text).clear < clear_at(len(words_of(text))), text


def test_a_word_has_the_concept_of_its_stem_however_long_it_is() -> None:
    known = shipped_concepts()
    assert known.of("suicidal") == known.of("suicid" + "x" * 9_000) != ()
    assert known.of("suici") == known.of("x" * 9_000) == ()
    begun = time.process_time()
    known.of("x" * 300_000)
    # A safety net: it takes no time that can be measured, and 17 s with each of its beginnings looked up.
    assert time.process_time() - begun < 2


@each("text", ["", " ", "a", "\n", "\ud800", "\u0301", "é" * 700, "die " * 5_000, "x" * 90_000])
def test_any_text_has_scores(text: str) -> None:
    assert all(0 <= score <= 1 for score in shipped_model().score(text))


def test_danger_in_a_long_text_is_found_wherever_it_is() -> None:
    page = "the garden opens at nine and the cafe at ten, children pay half. " * 30
    said = "i have saved up my pills and tonight i will take them all to die. "
    for place in (0, 650, len(page)):
        text = page[:place] + said + page[place:]
        assert level_of(shipped_model().score(text), len(words_of(text))) == IMMINENT


def test_the_model_only_raises_a_level() -> None:
    for text in ("I want to kill myself", "I'm going to kill myself tonight", "k m s"):
        rules_alone = assess(text, model=_silent())
        assert assess(text).level >= rules_alone.level >= 2
    idiom = "this homework is killing me"
    assert assess(idiom).level == 0


def test_an_earlier_message_that_the_model_finds_counts_for_three_exchanges() -> None:
    said = EarlierEntry("person", "i put one of my pills aside every day, now i have enough to never wake up")
    between = [EarlierEntry("bot", "Tell me more."), EarlierEntry("person", "ok")]
    later = assess("what is for dinner?", [said, *between])
    assert (later.level, later.reason) == (3, "model.imminent earlier")
    assert assess("what is for dinner?", [said, *between * 3]).level == 0


def test_the_language_of_what_the_model_finds_is_guessed_from_its_words() -> None:
    guess = shipped_concepts().language_of
    assert guess(words_of("ich habe die tabletten gezahlt und nehme sie heute")) == "de"
    assert guess(words_of("la corde est prete et ce soir je pars")) == "fr"
    assert guess(words_of("the belt is around the pipe")) == "en", "no French tea"
    assert guess(words_of("sie sind die letzten im haus")) == "de"
    assert guess(words_of("1 2 3")) == ""


@cache
def _spanish(seed: int, _time: int) -> Weights:
    """A training on some of the templates and of the texts without danger: on all it takes 5 s. Kept, unless
    it is asked for another `_time`."""
    some = {level: lines[::6] for level, lines in templates("es").items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tools.crisis.texts.HONEST_ENGLISH", 80)
        patch.setattr("tools.crisis.texts.HONEST_OTHERS", 12)
        return Training({"es": some}, each=1, epochs=1)(seed)


def test_training_is_reproducible() -> None:
    once, again = (file_of([_spanish(SEEDS[0], time)], "once") for time in (1, 2))
    assert once == again
    assert from_bytes(once, "once").score("quiero morir esta noche").clear > 0


def test_the_average_of_two_models_judges_between_them() -> None:
    parts = [_spanish(seed, 1) for seed in SEEDS[:2]]
    text = "tengo las pastillas en la mano y quiero morir"
    first, second, both = (
        from_bytes(file_of(some, "some"), "some").score(text).clear
        for some in ([parts[0]], [parts[1]], parts)
    )
    assert min(first, second) - 0.05 <= both <= max(first, second) + 0.05


def test_no_message_of_the_sets_that_were_not_read_is_a_template() -> None:
    lines = {
        line
        for language in ("en", "de", "fr", "es", "more")
        for one in templates(language).values()
        for line in one
    }
    lines |= {one.text for one in messages()}
    assert not lines & {case.text for half in HALVES if half not in READ for case in read_cases(half)}


def test_there_are_as_many_grave_messages_as_harmless_ones_in_four_languages() -> None:
    known = messages()
    assert len({(one.language, one.text) for one in known}) == len(known)
    for language in ("en", "de", "fr", "es"):
        grave = sum(one.level > 0 for one in known if one.language == language)
        harmless = sum(one.level == 0 for one in known if one.language == language)
        assert grave >= 250, language
        assert harmless >= 250, language
    assert sum(one.level > 0 for one in known) >= 1_500


def test_a_message_gives_texts_of_its_level_and_the_same_ones_again() -> None:
    some = messages()[:40]
    once = message_samples(some, 6, 7)
    assert [one.level for one in once] == [one.level for one in some for _ in range(6)]
    assert once == message_samples(some, 6, 7)
    assert once[0].text == plain_words(some[0].text)


def test_a_line_without_a_level_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "en_new.txt").write_text("1 I feel low\nhello there\n", encoding="utf-8")
    monkeypatch.setattr("tools.crisis.texts.MESSAGES", tmp_path)
    with pytest.raises(ValueError, match=r"en_new\.txt: 'hello there' does not begin with a level"):
        messages()


def test_a_damaged_file_is_named_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = FILE.read_bytes()
    for bad in (b"", data[:-1], data[:-1] + bytes([data[-1] ^ 1]), MAGIC + b"{}\n", b"x" + data):
        with pytest.raises(BadCrisisWeights, match="weights is damaged or no file of crisis weights"):
            from_bytes(bad, "weights")
    monkeypatch.setattr(danger_model, "concepts_hash", lambda: "another")
    with pytest.raises(BadCrisisWeights, match=r"was trained with another concepts\.toml"):
        from_bytes(data, "weights")


def _silent() -> danger_model.DangerModel:
    """A model that finds nothing."""
    return danger_model.DangerModel(
        weights=shipped_model().weights, scales=((0.0,) * 3,) * QUESTIONS, biases=(-60.0,) * QUESTIONS
    )


EVERYDAY = (
    "let me think",
    "tell me more about your day",
    "Please tell me more.",
    "erzähl mir mehr davon",
    "raconte-moi une histoire",
    "cuéntame más",
    "it's dark outside",
    "one more time please",
    "what is for dinner",
    "I forgot my umbrella at the office",
    "wo ist mein Schlüssel?",
    "write me a poem about tea",
)
TO_A_COMPANION = (
    "let's do box breathing",
    "can you help me calm down",
    "I feel calm now",
    "I'm ready to sleep",
    "hilf mir ruhig zu bleiben",
    "aide-moi à me calmer",
)


@each("text", EVERYDAY + TO_A_COMPANION)
def test_everyday_messages_do_not_alarm(text: str) -> None:
    assert assess(text).level == 0


@each("text", EVERYDAY)
def test_what_is_said_again_and_again_does_not_alarm_other_agents(text: str) -> None:
    assert assess(f"{text} " * 20, only_named=True).level == 0


@pytest.mark.parametrize(("name", "share"), [("everyday", 0.02), ("everyday_after", 0.05)])
def test_few_everyday_messages_that_no_training_saw_alarm(name: str, share: float) -> None:
    texts = [text for of_language in _everyday(name).values() for text in of_language]
    alarms = [text for text in texts if assess(text).needs_crisis_response]
    assert len(alarms) <= share * len(texts), alarms


@pytest.mark.parametrize("name", ["everyday", "everyday_after"])
def test_no_template_makes_a_message_of_the_everyday_lists(name: str) -> None:
    for language, texts in _everyday(name).items():
        made = _patterns(language)
        for text in texts:
            plain = text.lower().strip("¿¡.?! ")
            assert not any(pattern.fullmatch(plain) for pattern in made), text


def test_no_text_of_training_is_a_message_of_the_sets_read_last() -> None:
    """What was read of them became other words for the same ideas, and no copy."""
    said = {
        _letters(case.text)
        for half in ("after_parts", "after_all", "letters", "final")
        for case in read_cases(half)
    }
    assert not said & {_letters(one.text) for one in messages()}
    for language in LANGUAGES:
        frames: dict[int, list[str]] = {level: [] for level in LEVELS}
        read_templates(HERE / f"frames_{language}.txt", frames)
        for template in [line for lines in frames.values() for line in lines]:
            made = _pattern(re.sub(r"[^\w'(|)]", "", plain_words(template)))
            assert not [text for text in said if made.fullmatch(text)], template


def test_no_message_of_families_has_a_run_of_words_of_the_set_read_last() -> None:
    """A part of a sentence is no other word for its idea either."""
    said = {run for case in read_cases("final") for run in _runs(case.text)}
    written = [one.text for one in messages() if one.chunk.startswith("families")]
    assert len(written) >= 1_000
    assert not [text for text in written if not said.isdisjoint(_runs(text))]
    for family in (one for tier in LADDER for one in shipped_patterns().by_tier[tier]):
        assert not [run for run in said if " ".join(run) in family.pattern.pattern], family.code


def _runs(text: str) -> set[tuple[str, ...]]:
    """The runs of six words of a text in its plain form."""
    words = re.findall(r"[\w']+", plain_words(text))
    return set(zip(*(words[at:] for at in range(6)), strict=False))


def _letters(text: str) -> str:
    """A text's letters and digits alone, in its plain form."""
    return re.sub(r"[^\w']", "", plain_words(text))


@pytest.mark.parametrize("name", ["everyday", "everyday_after"])
def test_no_message_is_one_of_the_everyday_lists(name: str) -> None:
    known = {one.text.lower().strip("\u00bf\u00a1.?! ") for one in messages()}
    listed = {text.lower().strip("\u00bf\u00a1.?! ") for some in _everyday(name).values() for text in some}
    assert not known & listed


def _everyday(name: str) -> dict[str, list[str]]:
    """The messages of a list by language."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@cache
def _patterns(language: str) -> list[re.Pattern[str]]:
    """What each template of a language makes."""
    return [_pattern(one) for lines in templates(language).values() for one in lines]


def _pattern(template: str) -> re.Pattern[str]:
    """What a template makes, as a pattern."""
    return re.compile(
        "".join(char if char in "(|)" else r"\s*" if char == " " else re.escape(char) for char in template)
    )


def test_elsewhere_than_at_a_companion_the_model_needs_a_word_that_names_danger() -> None:
    farewell = "The key is under the mat, the cat eats at six, thank you all"
    words = words_of(plain_words(farewell))
    assert not shipped_concepts().names_danger(words)
    assert assess(farewell, only_named=True).level == 0
    assert shipped_concepts().names_danger(words_of(plain_words("I have the pills in my hand")))
    assert shipped_concepts().names_danger(words_of(plain_words("не хочу жить")))
