"""The rules of the crisis gate: known mistakes that must not come back, and the order of decisions."""

from __future__ import annotations

import pytest

from pipeline.safety.assessment import CrisisAssessment
from pipeline.safety.ladder import EarlierEntry, assess
from pipeline.safety.patterns import shipped_patterns
from pipeline.safety.plain_words import plain_words
from tests.support.tables import each

ASKED = EarlierEntry("bot", "Are you thinking about hurting yourself?")

HARMLESS = (
    "this is my last question",
    "did you get my last message?",
    "I'm headed to the river for a swim",
    "let's end it here for today",
    "ran 500 kms",
    "my friend died by suicide last year",
    "I'm done with my homework",
    "my fridge is empty",
    "I'm going to jump on a call",
    "need to pick up my pills today",
    "watching Top Gun tonight",
    "I'm not going to kill myself",
    "work is killing me",
    "I'm dead 😂",
    "that view is to die for",
    "I could kill for a coffee",
)
"""Messages that rules of this kind are known to take for danger."""

MISSED = (
    ("I can\u2019t do this anymore", 1),
    ("I don\u2019t want to be here anymore", 2),
    ("I don\u02bct want to be here any more", 2),
    ("i wanna die", 2),
    ("killing myself is all I think about", 2),
    ("k m s", 2),
    ("k.m.s", 2),
    ("quiero morir", 2),
    ("我想死", 2),
    ("k1ll mys3lf", 2),
    ("I want to k1!! mys3!f", 2),
    ("i want to k i l l m y s e l f", 2),
    ("I want to dieeee", 2),
    ("I WANT\u200b TO DIE", 2),
    ("\uff49 want to \uff44\uff49\uff45", 2),
)
"""Messages that rules of this kind are known to miss, with their level."""


@each("text", HARMLESS)
def test_known_false_alarms_are_no_alarms(text: str) -> None:
    assert assess(text).level == 0
    assert assess(text.replace("'", "\u2019")).level == 0


@each("text, level", MISSED)
def test_known_misses_are_found(text: str, level: int) -> None:
    assert assess(text).level == level


def test_a_level_decides_what_follows() -> None:
    follows = [
        (one.needs_crisis_response, one.needs_clarification)
        for one in (CrisisAssessment(level=level) for level in (-1, 0, 1, 2, 3, 9))
    ]
    assert follows == [
        (False, False),
        (False, False),
        (False, True),
        (True, False),
        (True, False),
        (True, False),
    ]


def test_words_of_the_last_six_entries_count_and_older_ones_do_not() -> None:
    history = [
        EarlierEntry("person", "I want to kill myself"),
        EarlierEntry("bot", "Thank you for telling me."),
    ]
    assert assess("I keep thinking about it", history).level == 2
    assert assess("I keep thinking about it", history).reason == "en.act earlier"
    between = [EarlierEntry("person", "ok"), EarlierEntry("bot", "I am here.")] * 3
    assert assess("what is for dinner?", [*history, *between]).level == 0


def test_what_the_bot_says_does_not_count_as_the_persons_words() -> None:
    assert assess("thanks", [EarlierEntry("bot", "I want to die, said the poet.")]).level == 0


def test_an_idiom_counts_for_its_own_message_only() -> None:
    past = [EarlierEntry("person", "work is killing me"), EarlierEntry("bot", "That sounds hard.")]
    assert assess("I want to kill myself", past).level == 2
    both = assess("homework is killing me and I want to die")
    assert (both.level, both.reason) == (2, "en.wish_to_die")
    after = assess("homework is killing me", [EarlierEntry("person", "I want to die")])
    assert (after.level, after.override) == (0, "idiomatic_safe")


def test_imminent_danger_comes_before_an_idiom() -> None:
    found = assess("work is killing me, so I'm going to kill myself tonight")
    assert (found.level, found.override, found.path) == (3, "imminent_risk", "override")


def test_an_explicit_denial_after_a_safety_check_ends_the_alarm() -> None:
    history = [EarlierEntry("person", "I can't do this anymore"), ASKED]
    denied = assess("no, I'm not suicidal, just venting", history)
    assert (denied.level, denied.override) == (0, "safety_denial")
    # Silence and evasion are no denial, and neither is a "no" in front of the intent.
    assert assess("…", history).level == 1
    assert assess("I don't want to say", history).level == 1
    assert assess("No, I'm still thinking about ending it", history).level == 2
    # Without the question, nothing was denied.
    assert assess("I'm safe", [EarlierEntry("person", "I want to die")]).level == 2


@each(
    "asked, answer, level",
    [
        ("Are you thinking about suicide?", "yes", 2),
        ("Do you want to die? Tell me.", "sometimes, at night", 2),
        ("You matter. Are you safe right now?", "no", 2),
        ("Are you safe right now?", "yes, I'm safe", 0),
        ("Are you thinking about hurting yourself?", "no", 0),
        ("Denkst du an Suizid?", "ja", 2),
        ("Bist du in Sicherheit?", "nein", 2),
        ("Penses-tu au suicide ?", "oui", 2),
        ("¿Estás a salvo?", "no", 2),
        ("Shall I suggest a recipe?", "yes", 0),
    ],
)
def test_a_bare_answer_to_a_question_about_danger_counts(asked: str, answer: str, level: int) -> None:
    assert assess(answer, [EarlierEntry("person", "hard day"), EarlierEntry("bot", asked)]).level == level


@pytest.mark.parametrize(
    ("asked", "answer", "level"),
    [
        ("Have you thought about how, or when?", "yes, I have", 3),
        ("Do you have a plan?", "yeah", 3),
        ("Weißt du schon, wie du es tun würdest?", "ja, weiß ich", 3),
        ("As-tu pensé à comment ?", "oui, j'y ai pensé", 3),
        ("¿Has pensado cómo?", "sí, ya lo sé", 3),
        ("Do you have a plan?", "no, not really", 2),
        ("Shall we plan your day?", "yes, let's", 2),
    ],
)
def test_a_yes_to_the_question_how_is_imminent_after_what_is_clear(
    asked: str, answer: str, level: int
) -> None:
    assert (
        assess(answer, [EarlierEntry("person", "I want to die"), EarlierEntry("bot", asked)]).level == level
    )


def test_a_yes_to_the_question_how_says_nothing_after_what_is_harmless() -> None:
    asked = EarlierEntry("bot", "Have you thought about how, or when?")
    assert assess("yes, I have", [EarlierEntry("person", "I want to travel"), asked]).level == 0


@each(
    "asked, answer, level",
    [
        ("Are you thinking about hurting yourself?", "No, not at all, we say that on the site", 0),
        ("Denkst du manchmal an Suizid?", "Nein, überhaupt nicht, das sagt man so bei uns", 0),
        ("As-tu envie de mourir ?", "Pas du tout, c'était une blague entre nous", 0),
        ("¿Has pensado en hacerte daño?", "Para nada, es un chiste de mi oficina, jaja", 0),
        # The same no denies no danger here.
        ("Are you safe right now?", "No, not at all, to be honest now", 2),
        ("Are you afraid to die?", "Not at all, I have thought about it", 2),
        ("Does anything keep you from hurting yourself?", "not at all, I have nothing here", 2),
        ("¿Tienes miedo de morir?", "para nada, lo he pensado mucho", 2),
        ("Are you thinking about hurting yourself?", "no", 2),
    ],
)
def test_a_plain_no_with_words_after_it_denies_what_the_bot_asked(
    asked: str, answer: str, level: int
) -> None:
    found = assess(answer, [EarlierEntry("person", "I want to die"), EarlierEntry("bot", asked)])
    assert found.level >= level
    assert (found.override == "safety_denial") == (level == 0)


def test_mistyped_words_of_danger_are_understood_and_other_words_are_kept() -> None:
    assert (
        plain_words("I want to kil myslef, im suicdial tonigt")
        == "i want to kill myself, im suicidal tonight"
    )
    assert (
        plain_words("himself chilling willing Selbstmord suicidarse")
        == "himself chilling willing selbstmord suicidarse"
    )


def test_a_denial_takes_nothing_from_other_words() -> None:
    assert assess("I don't want to kill myself, but I want to hurt myself").level == 2
    assert assess("I'm trying so hard not to kill myself").level == 2
    assert assess("why not kill myself").level == 2
    said = [EarlierEntry("person", "I'm going to kill myself tonight"), ASKED]
    assert assess("no, I'm not suicidal", said).level == 3


def test_a_reason_has_codes_and_no_words_of_the_person() -> None:
    codes = {family.code for family in sum(shipped_patterns().by_tier.values(), ())} | {"earlier"}
    codes |= {"model.unclear", "model.clear", "model.imminent"}
    for text, _ in MISSED:
        assert set(assess(text).reason.split()) <= codes
    assert len(CrisisAssessment(reason="x" * 900).reason) == 500


@each(
    "hostile",
    [
        "kill myself ",
        "i ",
        "k i l l ",
        "a",
        "aaa1",
        "not going to ",
        "don't want want ",
        "i'm going to the ",
        "I will take all my ",
        "ich will ",
        "1",
        "!@$",
    ],
)
def test_long_hostile_texts_end(hostile: str) -> None:
    # A pattern that takes more than linear time would not come back from 100 000 characters.
    assert assess((hostile * 100_000)[:100_000]).level in (0, 1, 2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "my brother says he wants to die",
        "My best friend says she doesn't want to live any more",
        "mein Kumpel schreibt, dass er nicht mehr leben will",
        "ma sœur dit qu'elle veut mourir",
        "mi hijo dice que ya no quiere vivir",
    ],
)
def test_what_somebody_else_says_of_themselves_is_no_word_of_the_person(text: str) -> None:
    found = assess(text)
    assert found.level < 2
    assert found.override == "none"
    # It is no denial either, and takes nothing from the person's own words.
    said = [EarlierEntry("person", "I want to die"), ASKED]
    assert assess(text, said).level >= 2
    assert assess(f"{text}, and I want to die too").level >= 2


@each(
    "text",
    [
        "I'm sitting on the ledge of the tower, my legs are over the edge",
        "the engine is running and the garage is shut",
        "ich sitze auf dem Balkon, die Beine hängen schon draußen",
        "je suis assise sur le toit, les pieds dans le vide",
        "estoy sentada en el borde de la azotea con los pies en el aire",
        "sono sul ponte e adesso mi butto",
        "estou na ponte e vou me jogar",
        "ik sta op de brug en ik spring zo",
        "стою на крыше, сейчас прыгну",
        "köprünün kenar\u0131nday\u0131m, birazdan atlayaca\u011f\u0131m",
        "stoję na moście i zaraz skoczę",
        "我在桥上马上就跳",
        "屋上にいる、今から飛び降りる",
    ],
)
def test_who_is_at_an_edge_or_in_fumes_is_in_imminent_danger(text: str) -> None:
    assert assess(text).level == 3


@each(
    "text, level",
    [
        ("the radio is plugged in and on the edge of the tub with me", 3),
        ("the radio is plugged in by the window, is the bath too close, is it safe?", 0),
        ("der Toaster steht am Rand der Badewanne, das Kabel reicht", 3),
        ("chained the cinder block to my ankles, the canal is deep here", 3),
        ("das Gewicht ist an meinem Bein, das Boot ist weit draußen", 3),
        ("Sie schreit, gleich bringt sie uns um, wir sind im Bad", 3),
        ("il dit qu'il va nous tuer, on est cachés dans la chambre", 3),
        ("grita que hoy nos mata, estamos encerrados en el baño, por favor", 3),
        ("the voices want me to jump and they do not stop", 2),
        ("las voces mandan que me corte", 2),
        ("my stepdad locks me out when I talk back", 2),
        ("espero que el tumor sea maligno", 2),
        ("I locked myself in the freezer at work and the lights are off", 3),
        ("hab die Tür verrammelt, der Strick hängt schon", 3),
        ("cuatro de las blancas, seis de las azules, tequila, y ya me pesan los párpados", 3),
        ("the belt is tied to the radiator, I only need to sit", 3),
        ("I won't be alive on Sunday", 3),
        ("I won't be around on Sunday, we fly to Rome", 0),
    ],
)
def test_families_of_indirect_words_are_known_by_rules(text: str, level: int) -> None:
    plain = plain_words(text)
    by_rules = [tier for tier in ("imminent", "clear") if shipped_patterns().first(tier, plain)]
    assert by_rules == {3: ["imminent"], 2: ["clear"], 0: []}[level]


def test_emoji_stay_and_spaces_are_single() -> None:
    assert plain_words("I\u2019m\tdead  \N{SKULL} 👨‍👩‍👧") == "i'm dead \N{SKULL} 👨‍👩‍👧"


def test_words_with_digits_stay_unless_the_patterns_know_them() -> None:
    assert plain_words("mp3 h4ck3r v1.2 d1e") == "mp3 h4ck3r v1.2 die"
