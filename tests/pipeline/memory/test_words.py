"""The terms by which memory compares texts."""

from __future__ import annotations

import pytest

from pipeline.memory.recall import same_evidence, token_recall
from pipeline.memory.words import (
    asks_about_oneself,
    normalised,
    stem_of,
    terms_of,
    terms_of_question,
    words_of,
)


def test_case_accents_and_width_do_not_count() -> None:
    assert normalised("\uff23afé MÜLLER Straße") == "cafe muller strasse"
    assert normalised("が") != normalised("か"), "a voiced sound is another letter"


@pytest.mark.parametrize(
    ("forms"),
    [
        ("run", "running", "runs", "ran"),
        ("bake", "baking", "baked", "baker"),
        ("study", "studied", "studying", "studies"),
        ("Kind", "Kinder", "Kindern"),
        ("schlafen", "schlief", "geschlafen"),
        ("ami", "amis", "amies"),
        ("perro", "perros", "perra"),
        ("cat", "cats"),
    ],
)
def test_common_forms_of_a_word_have_one_stem(forms: tuple[str, ...]) -> None:
    assert len({stem_of(normalised(form)) for form in forms}) == 1


def test_short_words_and_numbers_keep_their_ends() -> None:
    assert [stem_of(word) for word in ("dna", "as", "2019s", "bus")] == ["dna", "as", "2019s", "bus"]


def test_unspaced_writing_is_cut_into_pairs_and_han_characters() -> None:
    assert terms_of("我住上海")[:7] == ("我住", "住上", "上海", "我", "住", "上", "海")
    assert terms_of("犬")[0] == "犬"
    assert terms_of("ねこ") == ("ねこ",)
    assert terms_of("서울에서") == ("서울", "울에", "에서")
    assert words_of("我住 Leeds") == ["我", "住", "leeds"]


def test_stop_words_are_left_out_of_questions_alone() -> None:
    assert "my" in terms_of("my tea")
    assert "my" not in terms_of_question("my tea")
    for question in ("what is it", "was ist das", "qu'est-ce que c'est", "¿qué es?"):
        assert not {term for term in terms_of_question(question) if term[0] not in "=#"}, question


def test_names_joined_by_marks_or_capitals_are_separate_words() -> None:
    assert words_of("CopingStrategy:box_breathing") == ["coping", "strategy", "box", "breathing"]


def test_words_of_one_meaning_share_a_concept_in_every_language() -> None:
    asked = terms_of_question("my mum")
    assert 0 < asked["=mother"] < asked["mum"]
    for text in ("My mother called", "Meine Mutter rief an", "我的妈妈来了", "母は元気です", "Mi madre"):
        assert "=mother" in terms_of(text), text


def test_words_of_a_question_ask_for_a_category() -> None:
    assert "#goal" in terms_of_question("What do I want to study?")
    assert "#trigger" in terms_of_question("Wovor habe ich Angst?")
    assert "#person" in terms_of_question("Who is my landlord?")
    assert "#goal" not in terms_of("I want to study")


@pytest.mark.parametrize(
    ("text", "about_oneself"),
    [
        ("Where do I live?", True),
        ("Wie heißt mein Hund", True),
        ("我住在哪里", True),
        ("私の犬の名前は何ですか", True),
        ("hello", False),
        ("What is the capital of Peru?", False),
        ("My day was long.", False),
    ],
)
def test_a_question_about_oneself_is_recognised(text: str, about_oneself: bool) -> None:
    assert asks_about_oneself(text) is about_oneself


def test_token_recall_counts_the_words_of_the_question() -> None:
    assert token_recall("Where does Clara live?", "Clara has two cats") == 0.5
    assert token_recall("what is it", "it is") == 0.0
    assert token_recall("上海", "我住在上海") == 1.0


def test_two_quotes_are_the_same_with_85_percent_of_their_words_in_common() -> None:
    quote = "my sister Clara moved to Leeds with her kids"
    assert same_evidence(quote, quote.upper() + "!")
    assert not same_evidence(quote, "Clara moved to Leeds")
    assert same_evidence("…", "…")
    assert not same_evidence("…", "!")
