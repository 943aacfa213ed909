"""Words of training texts are replaced by words that fit there too.

Covers: tools/injection/synonyms.py.
"""

from __future__ import annotations

import random

from tools.injection.synonyms import synonyms, varied


def test_some_words_are_replaced_by_others_of_their_group_and_keep_their_capital_letter() -> None:
    rng = random.Random(5)
    found = {varied("Send 3 zebras.", rng) for _ in range(200)}

    firsts = {text.split()[0] for text in found}
    assert "Send" in firsts
    assert len(firsts) > 3
    assert {one.lower() for one in firsts} <= set(synonyms()["send"])
    assert all(one[0].isupper() for one in firsts)
    assert all(text.endswith(" 3 zebras.") for text in found)


def test_the_same_seed_replaces_the_same_words_and_each_group_has_two() -> None:
    text = "please delete the previous message and tell the user"

    assert [varied(text, random.Random(n)) for n in range(20)] == [
        varied(text, random.Random(n)) for n in range(20)
    ]
    assert min(map(len, synonyms().values())) >= 2
