"""The judge of the channels' fault runs: it checks the chats that people see in the end.

It reads only the fake platform's own history, neither the gateway's store nor its log. The driver is
`channel_faults`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

from tests.support.platforms.platform import FakePlatform, Place

ECHO = "You said:"
"""How the scripted echo begins its answers."""
REPEAT_LABEL = "(This may be a repeat.)"
_PLACEHOLDER = "…"
_SERVER_ERROR = 500
_RATE_LIMITED = 429
_DELETES = frozenset({"deleteMessage", "chat.delete", "delete_message"})
_WITHOUT_ACKS = frozenset({"discord"})
"""Channels without acknowledgements: the bot has to find missed messages itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelVerdict:
    """Counts over all chats of one channel."""

    accepted: int = 0
    """Messages that the bot acknowledged to the platform; all of them where there is no such thing."""
    lost: int = 0
    """Messages without a whole answer on the screen."""
    duplicates: int = 0
    """Repeats of an answer on the screen without a label that says so."""
    order_errors: int = 0
    """Neighbouring answers of a chat in another order than their messages."""
    strangers: int = 0
    """Bot messages that answer no message."""
    labelled_repeats: int = 0
    """Repeats with a label that says so."""
    placeholders: int = 0
    """Left-over messages without text: a blemish, not a failure."""
    fragments: int = 0
    """Left-over beginnings of answers: a blemish too."""
    deletions: int = 0
    """Messages that the bot deleted: a reader may have seen them."""
    rate_limited: int = 0
    """Calls that the platform answered 429."""
    failed_after: int = 0
    """Calls that the platform did, or may have done, and answered 5xx."""

    @property
    def broken(self) -> dict[str, int]:
        """The failed guarantees, by name."""
        names = ("lost", "duplicates", "order_errors", "strangers")
        return {name: count for name in names if (count := getattr(self, name))}

    def figures(self) -> dict[str, int]:
        """All counts by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatJudgement:
    """The counts of one chat's screen."""

    lost: int
    duplicates: int
    labelled_repeats: int
    order_errors: int
    placeholders: int
    fragments: int
    strangers: int


def judge_channel(
    platform: FakePlatform, asked: Mapping[Place, Sequence[str]], says: str = ECHO
) -> ChannelVerdict:
    """The sum over all chats of `platform`. `asked`: the messages of each place, oldest first; each is
    answered by `says` and its echo, and none is the beginning of another."""
    total: Counter[str] = Counter()
    for place, texts in asked.items():
        total.update(asdict(judge_chat(texts, platform.bot_texts(place), says)))
    said = sum(map(len, asked.values()))
    return ChannelVerdict(
        accepted=said - unacknowledged(platform),
        deletions=sum(call.method in _DELETES for call in platform.calls),
        rate_limited=sum(call.status == _RATE_LIMITED for call in platform.calls),
        failed_after=sum(call.status >= _SERVER_ERROR for call in platform.calls),
        **total,
    )


def has_acks(platform: FakePlatform) -> bool:
    """Whether the bot acknowledges messages to the platform."""
    return platform.name not in _WITHOUT_ACKS


def unacknowledged(platform: FakePlatform) -> int:
    """Events that the platform still has to deliver."""
    return platform.unacknowledged() if has_acks(platform) else 0


def judge_chat(asked: Sequence[str], shown: Sequence[str], says: str = ECHO) -> ChatJudgement:
    """Judge one chat. `asked`: what was said, oldest first; `shown`: the bot's messages, oldest first."""
    answers = {expected_answer(text, says): number for number, text in enumerate(asked)}
    whole: list[tuple[int, bool]] = []
    placeholders = fragments = strangers = 0
    for text in shown:
        words, labelled = _without_label(text)
        number = answers.get(words)
        if number is not None:
            whole.append((number, labelled))
        elif not words.strip(_PLACEHOLDER + ". "):
            placeholders += 1
        elif any(answer.startswith(words.rstrip(_PLACEHOLDER + " ")) for answer in answers):
            fragments += 1
        else:
            strangers += 1
    times = Counter(number for number, _ in whole)
    labels = Counter(number for number, labelled in whole if labelled)
    labelled_repeats = sum(min(labels[number], count - 1) for number, count in times.items())
    first_seen = list(dict.fromkeys(number for number, _ in whole))
    return ChatJudgement(
        lost=len(asked) - len(times),
        duplicates=sum(count - 1 for count in times.values()) - labelled_repeats,
        labelled_repeats=labelled_repeats,
        order_errors=sum(earlier > later for earlier, later in pairwise(first_seen)),
        placeholders=placeholders,
        fragments=fragments,
        strangers=strangers,
    )


def expected_answer(text: str, says: str = ECHO) -> str:
    """What an agent whose answers begin with `says` answers to `text`; without it, the scripted echo."""
    return f"{says} {' '.join(text.split())}"


def answered(asked: Sequence[str], shown: Sequence[str], says: str = ECHO) -> bool:
    """Whether every message of a chat has a whole answer."""
    words = {_without_label(text)[0] for text in shown}
    return all(expected_answer(text, says) in words for text in asked)


def _without_label(text: str) -> tuple[str, bool]:
    words = " ".join(text.split())
    bare = words.removeprefix(REPEAT_LABEL).lstrip()
    return bare, bare != words
