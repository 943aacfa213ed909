"""The arithmetic of Whisper's window, and what is believed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import each
from voice.transcription.mel_window import (
    FULL,
    FULL_FRAMES,
    MAX_TOKENS,
    Decoding,
    Window,
    batches,
    compression_ratio,
    confidence,
    echoes,
    fitted,
    judge,
    prompt_token_limit,
    token_budget,
    words_missing,
)

LOOP = "thank you for watching " * 12
SENTENCES = {
    "en": (
        "All human beings are born free and equal in dignity and rights. They are endowed with reason and "
        "conscience and should act towards one another in a spirit of brotherhood."
    ),
    "hi": (
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और "
        "अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए।"
    ),
    "ta": (
        "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்; அவர்கள் மதிப்பிலும் உரிமைகளிலும் சமமானவர்கள். "
        "அவர்கள் நியாயத்தையும் மனச்சாட்சியையும் இயற்பண்பாகப் பெற்றவர்கள். அவர்கள் ஒருவருடனொருவர் சகோதர "
        "உணர்வுப் பாங்கில் நடந்துகொள்ளல் வேண்டும்."
    ),
    "th": (
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ "
        "ต่างมีเหตุผลและมโนธรรม และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ"
    ),
    "ka": (
        "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით. მათ მინიჭებული აქვთ "
        "გონება და სინდისი და ერთმანეთის მიმართ უნდა იქცეოდნენ ძმობის სულისკვეთებით."
    ),
    "ja": (
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを"
        "授けられており、互いに同胞の精神をもって行動しなければならない。"
    ),
}
"""The first article of human rights."""
TOKENS = {"en": 37, "hi": 195, "ta": 200, "th": 125, "ka": 425, "ja": 81}
"""What it takes of Whisper's."""


def decoded(
    text: str = "Seven words were said in this sentence.",
    *,
    tokens: int = 9,
    log_probability: float = -0.2,
    no_speech_probability: float = 0.02,
) -> Decoding:
    return Decoding(
        text=text,
        tokens=tokens,
        log_probability=log_probability,
        no_speech_probability=no_speech_probability,
    )


@pytest.mark.parametrize(
    ("speech", "window"), [(0, 1000), (300, 1000), (500, 1000), (1100, 1600), (2500, 3000), (3000, 3000)]
)
def test_the_window_is_the_speech_and_five_seconds_and_never_under_ten(speech: int, window: int) -> None:
    assert Window().frames(speech) == window


@given(speech=st.integers(0, 3000), floor=st.integers(1, 3000), margin=st.integers(0, 3000))
def test_a_window_holds_the_speech_and_is_never_longer_than_whispers(
    speech: int, floor: int, margin: int
) -> None:
    frames = Window(floor=floor, margin=margin).frames(speech)
    assert max(speech, floor) <= frames <= FULL_FRAMES
    assert FULL.frames(speech) == FULL_FRAMES


@given(length=st.integers(1, 60), frames=st.integers(1, 60), peak=st.floats(-1.5, 2.0))
def test_a_fitted_spectrogram_keeps_the_speech_and_continues_in_silence(
    length: int, frames: int, peak: float
) -> None:
    mel = np.linspace(peak - 1, peak, 80 * length, dtype=np.float32).reshape(80, length)
    out = fitted(mel, frames)
    kept = min(length, frames)
    assert out.shape == (80, frames)
    assert out.dtype == np.float32
    assert (out[:, :kept] == mel[:, :kept]).all()
    assert out[:, kept:] == pytest.approx(float(mel.max()) - 2.0)


@given(
    seconds=st.floats(0, 30), prompt=st.integers(0, 447), language=st.sampled_from(("en", "hi", "th", "my"))
)
def test_answer_and_prompt_fit_the_decoder_and_an_answer_is_always_possible(
    seconds: float, prompt: int, language: str
) -> None:
    budget = token_budget(seconds, prompt_tokens=prompt, language=language)
    assert 1 <= budget <= MAX_TOKENS - prompt
    assert budget <= math.ceil(96 * seconds) + 24
    if language == "en":
        assert budget <= math.ceil(12 * seconds) + 24


def test_a_second_of_speech_may_become_thirty_six_tokens() -> None:
    assert token_budget(1.0, prompt_tokens=4, language="en") == 36


@pytest.mark.parametrize("language", SENTENCES)
def test_fast_speech_is_believed_and_has_room_in_every_script(language: str) -> None:
    tokens, sentence = TOKENS[language], SENTENCES[language]
    budget = token_budget(7.0, prompt_tokens=4, language=language)
    assert tokens < budget
    heard = decoded(sentence, tokens=tokens)
    assert judge(heard, speech_s=7.0, language=language, budget=budget) == "sure"
    twice = decoded(f"{sentence} {sentence[::-1]}", tokens=min(2 * tokens, 440))
    assert judge(twice, speech_s=14.0, language=language) == "sure"


@pytest.mark.parametrize("language", SENTENCES)
def test_a_loop_is_found_in_every_script(language: str) -> None:
    word = SENTENCES[language][:6]
    assert judge(decoded(word * 15, tokens=60), speech_s=7.0, language=language) == "looped"


def test_words_that_were_cut_off_are_not_sure() -> None:
    assert judge(decoded(tokens=36), speech_s=5.0, language="en", budget=37) == "sure"
    assert judge(decoded(tokens=36), speech_s=5.0, language="en", budget=36) == "unsure"


@given(seconds=st.floats(0, 30), language=st.sampled_from(("en", "hi", "th", "my")))
def test_the_words_before_leave_the_answer_its_room(seconds: float, language: str) -> None:
    room = prompt_token_limit(seconds, language=language, control_tokens=5)
    assert 0 <= room <= 223
    alone = token_budget(seconds, prompt_tokens=5, language=language)
    assert token_budget(seconds, prompt_tokens=5 + room, language=language) == alone


def test_fifteen_seconds_of_english_leave_all_the_room_that_there_is_for_the_words_before() -> None:
    assert prompt_token_limit(15.0, language="en", control_tokens=5) == 223
    assert prompt_token_limit(15.0, language="hi", control_tokens=5) == 0


@each(
    "decoding, verdict",
    [
        (decoded(), "sure"),
        (decoded(log_probability=-1.1), "unsure"),
        (decoded(tokens=61), "unsure"),
        (decoded(LOOP), "looped"),
        (decoded(""), "silent"),
        (decoded("... ♪"), "silent"),
        (decoded(no_speech_probability=0.7), "sure"),
        (decoded(no_speech_probability=0.7, log_probability=-0.7), "silent"),
        (decoded(LOOP, no_speech_probability=0.7), "silent"),
    ],
)
def test_words_are_believed_by_how_they_came_about(decoding: Decoding, verdict: str) -> None:
    assert judge(decoding, speech_s=5.0, language="en") == verdict


def test_a_short_word_is_not_spoken_too_fast() -> None:
    assert judge(decoded("Yes, please.", tokens=4), speech_s=0.3, language="en") == "sure"


def test_confidence_is_the_models_own_but_low_where_the_words_are_not_sure() -> None:
    assert confidence(decoded(log_probability=-0.2), "sure") == pytest.approx(0.819, abs=0.001)
    assert confidence(decoded(log_probability=-0.2), "unsure") == pytest.approx(0.368, abs=0.001)
    assert confidence(decoded(log_probability=-2.0), "unsure") == pytest.approx(0.135, abs=0.001)


@given(st.text(min_size=1, max_size=40))
def test_repeating_a_text_compresses_it(text: str) -> None:
    assert compression_ratio(text * 40) > compression_ratio(text)


@given(st.lists(st.integers(1000, 3000), max_size=12))
def test_every_window_is_decoded_once_and_together_only_with_its_like(frames: list[int]) -> None:
    groups = batches(frames)
    assert sorted(index for group in groups for index in group) == list(range(len(frames)))
    for group in groups:
        assert 1 <= len(group) <= 2
        lengths = [frames[index] for index in group]
        assert min(lengths) >= 0.75 * max(lengths)


def test_slow_speech_in_a_short_piece_is_not_taken_for_missing_words() -> None:
    assert not words_missing(8, 2.9, "en")
    assert words_missing(8, 4.0, "en")
    assert words_missing(16, 6.0, "en")


@pytest.mark.parametrize(
    ("text", "prompt", "echo"),
    [
        ("Page after page they showed.", "He said: page after page, they showed him.", True),
        ("page after page", "page after page", False),
        ("page after page they went", "page after page they showed", False),
        ("one two three four", "", False),
    ],
)
def test_words_of_the_prompt_written_again_are_an_echo(text: str, prompt: str, echo: bool) -> None:
    assert echoes(text, prompt) is echo
