"""Ends of sentences and complete thoughts, in the languages that people speak to the bot."""

# ruff: noqa: RUF001 - the signs and letters of many scripts

from __future__ import annotations

from tests.support.tables import each
from voice.endpointing.completeness import SentenceEnd, is_complete_thought, sentence_end


@each(
    "text",
    [
        "Hello there my friend.",
        "Are you there?",
        "Stop!",
        "Really?!",
        "今日は天気がいいです。",
        "你好吗？",
        "太好了！",
        "هل أنت هناك؟",
        "यह एक वाक्य है।",
        "यह अन्त है॥",
        "Սա նախադասություն է։",
        "ይህ ዓረፍተ ነገር ነው።",
        "یہ ایک جملہ ہے۔",
        'He said "hello."',
        "He said “hello.”",
        "He said ‘hello.’ ",
        "Il a dit « bonjour. »",
        "(This is all of it.)",
        "彼は「はい。」",
        "『終わり。』",
        "It costs nothing.\n",
        "Ζητώ βοήθεια\u037e",
    ],
)
def test_a_sentence_ends_with_its_sign_and_with_what_closes_behind_it(text: str) -> None:
    assert sentence_end(text) == "strong"


@each(
    "text, language, end",
    [
        ("I paid $3.", "en", "weak"),
        ("It was in 2024.", "en", "weak"),
        ("Wir treffen uns am 3.", "de", "weak"),
        ("Bread, butter, etc.", "en", "weak"),
        ("We meet at 5 p.m.", "en", "weak"),
        ("Well, I thought…", "en", "weak"),
        ("So did I.", "en", "weak"),
        ("Please ask for Dr.", "en", "none"),
        ("Fruit, e.g.", "en", "none"),
        ("Obst, z.B.", "de", "none"),
        ("Obst, z. B.", "de", "none"),
        ("Das sind ca.", "de", "none"),
        ("Demandez à Mme.", "fr", "none"),
        ("Pregunte a la Sra.", "es", "none"),
        ("Chieda alla sig.", "it", "none"),
        ("Fale com o Sr.", "pt", "none"),
        ("Vraag het dhr.", "nl", "none"),
        ("My name is John F.", "en", "none"),
        ("Well, I thought...", "en", "none"),
        ("Well, I thought..", "en", "none"),
        ("No sign at all", "en", "none"),
        ("", "en", "none"),
        ('"', "en", "none"),
        ("  ", "", "none"),
    ],
)
def test_a_dot_can_mean_something_else(text: str, language: str, end: SentenceEnd) -> None:
    assert sentence_end(text, language) == end
    assert sentence_end(text) == end


@each(
    "text, language",
    [
        # Openers, questions, verbs and closings.
        ("Can you send the report", "en"),
        ("could you look at that again", "en"),
        ("Please summarise this", "en"),
        ("I need a table for two people", "en"),
        ("I want a cheaper flight", "en"),
        ("Help me find my keys", "en"),
        ("What time does the shop open", "en"),
        ("how do I reset my password", "en"),
        ("when does the train leave", "en"),
        ("Where can we eat tonight", "en"),
        ("why did the build fail", "en"),
        ("create a new project", "en"),
        ("Build the release branch", "en"),
        ("make it a little shorter", "en"),
        ("generate three names", "en"),
        ("write an email to Anna", "en"),
        ("design a small logo", "en"),
        ("well that was it thank you", "en"),
        ("ok great thanks", "en"),
        ("and that’s all", "en"),
        ("and that's all", "en"),
        ("see you tomorrow goodbye", "en"),
        ("see you bye", "en"),
        ("who wrote that book", "en"),
        ("is the office open tomorrow", "en"),
        ("what’s the weather tomorrow", "en"),
        ("um well can you say that again", "en"),
        ("Kannst du mir den Bericht schicken", "de"),
        ("Bitte fass das zusammen", "de"),
        ("Wie komme ich zum Bahnhof", "de"),
        ("Stell bitte den Wecker, danke", "de"),
        ("Peux-tu envoyer le rapport", "fr"),
        ("Est-ce que le magasin est ouvert", "fr"),
        ("C’est bon, merci beaucoup", "fr"),
        ("Puedes enviar el informe", "es"),
        ("¿Cómo llego a la estación", "es"),
        ("Puoi mandare il rapporto", "it"),
        ("Dov’è la stazione", "it"),
        ("Você pode enviar o relatório", "pt"),
        ("Como chego à estação", "pt"),
        ("Kun je het rapport sturen", "nl"),
        ("Waar is het station", "nl"),
        ("駅はどこですか", "ja"),
        ("これを要約してください", "ja"),
        ("今日は会議があります", "ja"),
        ("你明天有时间吗", "zh"),
        ("请帮我总结一下这个文件", "zh"),
        ("我们什么时候走呢", "zh"),
        ("내일 회의가 몇 시입니까", "ko"),
        ("이것을 요약해 주세요", "ko"),
        ("내일 비가 올까요", "ko"),
    ],
)
def test_a_request_a_question_or_a_goodbye_is_complete_without_a_sign(text: str, language: str) -> None:
    assert is_complete_thought(text, language)
    assert is_complete_thought(text), "and without the language"


@each(
    "text, language",
    [
        ("the weather is nice and", "en"),
        ("the weather is nice today", "en"),
        ("how do I configure the", "en"),
        ("Can you send it to", "en"),
        ("I need a", "en"),
        ("please", "en"),
        ("what", "en"),
        ("what is", "en"),
        ("Please order bread, butter,", "en"),
        ("Can you tell Anna:", "en"),
        ("Can you tell Anna that...", "en"),
        ("I would go there because", "en"),
        ("I would go there because.", "en"),
        ("The weather is nice and.", "en"),
        ("The weather is nice and…", "en"),
        ("Please ask for Dr.", "en"),
        ("Kannst du das Fenster und", "de"),
        ("Das Wetter ist schön und.", "de"),
        ("Bitte schick das an", "de"),
        ("Peux-tu envoyer le", "fr"),
        ("Je viendrai parce que", "fr"),
        ("Puedes enviar el", "es"),
        ("Me gusta pero", "es"),
        ("Puoi mandare il", "it"),
        ("Mi piace ma", "it"),
        ("Você pode enviar o", "pt"),
        ("Kun je de", "nl"),
        ("Ik kom omdat", "nl"),
        ("駅に行きたいけど", "ja"),
        ("今日は", "ja"),
        ("我想去但是", "zh"),
        ("내일 회의가 있는데", "ko"),
        ("회의는", "ko"),
        ("", "en"),
        ("'", "en"),
        ("...", "en"),
    ],
)
def test_what_dangles_is_not_complete(text: str, language: str) -> None:
    assert not is_complete_thought(text, language)
    assert not is_complete_thought(text), "and without the language"


@each(
    "text",
    [
        "That is what I was looking for.",
        "This is where I come from.",
        "I do not know what it is.",
        "I never said no.",
        "Who are you waiting for?",
        "What do you mean, and?",
        "Ich danke ihr.",
        "Stell die Heizung bitte ein.",
        "Io sto bene. Mi piace molto.",
        "Gosto muito.",
    ],
)
def test_punctuation_decides_where_a_word_can_end_a_sentence(text: str) -> None:
    assert is_complete_thought(text)


def test_a_number_with_a_dot_is_complete_once_there_is_a_pause() -> None:
    assert sentence_end("Yesterday I paid $3.") == "weak"
    assert is_complete_thought("Yesterday I paid $3.")


@each("language", ["pl", "xx", "EN", "en-GB", "pt_BR"])
def test_any_language_code_is_taken(language: str) -> None:
    assert sentence_end("Dobrze, to wszystko.", language) == "strong"
    assert is_complete_thought("Dobrze, to wszystko.", language)
