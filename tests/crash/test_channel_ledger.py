"""The judge of the channels' fault runs, given broken screens on purpose: each kind of damage is seen."""

from __future__ import annotations

import aiohttp
import pytest

from tests.support.channel_ledger import (
    REPEAT_LABEL,
    ChatJudgement,
    answered,
    expected_answer,
    judge_channel,
    judge_chat,
)
from tests.support.platforms.platform import Call, Place
from tests.support.platforms.telegram import FakeTelegram

_ASKED = ("n0 one two", "n1 three", "n2 four")
_ANSWERS = tuple(expected_answer(text) for text in _ASKED)
_SOUND = ChatJudgement(
    lost=0, duplicates=0, labelled_repeats=0, order_errors=0, placeholders=0, fragments=0, strangers=0
)


def test_a_sound_screen_breaks_nothing() -> None:
    assert judge_chat(_ASKED, _ANSWERS) == _SOUND
    assert answered(_ASKED, _ANSWERS)


def _damage(*shown: str) -> dict[str, int]:
    found = judge_chat(_ASKED, shown)
    return {name: getattr(found, name) for name in ChatJudgement.__slots__ if getattr(found, name)}


@pytest.mark.parametrize(
    ("shown", "damage"),
    [
        (_ANSWERS[:2], {"lost": 1}),
        ((), {"lost": 3}),
        ((*_ANSWERS, _ANSWERS[0]), {"duplicates": 1}),
        ((*_ANSWERS, _ANSWERS[0], _ANSWERS[0]), {"duplicates": 2}),
        ((_ANSWERS[1], _ANSWERS[0], _ANSWERS[2]), {"order_errors": 1}),
        ((_ANSWERS[2], _ANSWERS[1], _ANSWERS[0]), {"order_errors": 2}),
        ((*_ANSWERS, f"{REPEAT_LABEL}\n{_ANSWERS[0]}"), {"labelled_repeats": 1}),
        ((f"{REPEAT_LABEL}\n{_ANSWERS[0]}", *_ANSWERS), {"labelled_repeats": 1}),
        ((f"{REPEAT_LABEL}\n{_ANSWERS[0]}", *_ANSWERS[1:]), {}),
        ((*_ANSWERS, _ANSWERS[0], f"{REPEAT_LABEL} {_ANSWERS[0]}"), {"duplicates": 1, "labelled_repeats": 1}),
        (("…", *_ANSWERS), {"placeholders": 1}),
        (("", *_ANSWERS), {"placeholders": 1}),
        (("You said: n0 one …", *_ANSWERS), {"fragments": 1}),
        (("You said: n0 one", *_ANSWERS[1:]), {"lost": 1, "fragments": 1}),
        ((*_ANSWERS, "You said: n9 no one asked"), {"strangers": 1}),
        ((*_ANSWERS[:2], "Something went wrong; please ask again."), {"lost": 1, "strangers": 1}),
        (tuple(f"{answer}\n" for answer in _ANSWERS), {}),
    ],
)
def test_each_damage_is_seen_and_counted(shown: tuple[str, ...], damage: dict[str, int]) -> None:
    assert _damage(*shown) == damage
    assert answered(_ASKED, shown) == ("lost" not in damage)


async def test_a_channels_verdict_adds_its_chats_and_counts_what_the_platform_played() -> None:
    async with FakeTelegram(lenient=True) as platform, aiohttp.ClientSession() as session:

        async def call(method: str, **fields: object) -> None:
            url = f"{platform.api_base}/bot{platform.token}/{method}"
            async with session.post(url, json=fields) as response:
                assert response.status == 200

        asked: dict[Place, tuple[str, ...]] = {}
        for name in ("ann", "bob"):
            person = platform.person(name)
            place = platform.private_chat(person)
            asked[place] = tuple(f"{name} {text}" for text in _ASKED)
            for text in asked[place]:
                await platform.say(place, person, text)
            for text in (asked[place][1], asked[place][0], asked[place][0]):
                await call("sendMessage", chat_id=int(place.chat), text=expected_answer(text))
        for method, status in (("sendMessage", 429), ("sendMessage", 502), ("deleteMessage", 200)):
            platform.calls.append(Call(method=method, payload={}, status=status, at=0.0))
        verdict = judge_channel(platform, asked)
        assert verdict.broken == {"lost": 2, "duplicates": 2, "order_errors": 2}
        assert verdict.accepted == 0
        assert (verdict.rate_limited, verdict.failed_after, verdict.deletions) == (1, 1, 1)
        await call("getUpdates", offset=10**9, timeout=0)
        assert judge_channel(platform, asked).accepted == 6
