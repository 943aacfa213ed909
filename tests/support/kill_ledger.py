"""The judge of a kill run: it counts failed guarantees, only from what the clients received.

It reads no store and no log; `kill_run` produces its input.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tests.support.web_client import Line, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatHistory:
    """One chat: what was sent, what its client received meanwhile, and what it shows at the end."""

    sent: Mapping[str, str]
    """client_id -> text."""
    expected: Mapping[str, str]
    """client_id -> the one right answer."""
    seen: Seen
    final: Sequence[Line]
    """The entries of a new connection that requested the whole history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Counts of failed guarantees. All but `accepted` must be 0."""

    accepted: int = 0
    lost: int = 0
    """Accepted messages without an answer in the final history."""
    answered_twice: int = 0
    """Messages with two answers, two terminal events, or one line shown twice in one history."""
    wrong_text: int = 0
    """Answers that belong to another message."""
    order_errors: int = 0
    """Neighbours in the order of acceptance whose answers are in the reverse order."""
    unknown: int = 0
    """Answers to messages that were never accepted, and client_ids with two message_ids."""
    unaccepted: int = 0
    """Messages that were sent and, at the end, still not accepted."""

    @property
    def broken(self) -> dict[str, int]:
        """The failed guarantees, by name."""
        names = ("lost", "answered_twice", "wrong_text", "order_errors", "unknown", "unaccepted")
        return {name: count for name in names if (count := getattr(self, name))}


def judge(chats: Iterable[ChatHistory]) -> Verdict:
    """The sum over all chats."""
    total = Verdict()
    for chat in chats:
        one = _judge_chat(chat)
        total = replace(
            total, **{name: getattr(total, name) + getattr(one, name) for name in Verdict.__slots__}
        )
    return total


def _judge_chat(chat: ChatHistory) -> Verdict:
    accepted = chat.seen.accepted
    answers: dict[str, list[Line]] = {}
    for line in chat.final:
        if line.role == "assistant":
            answers.setdefault(line.message_id, []).append(line)
    return Verdict(
        accepted=len(accepted),
        lost=sum(message_id not in answers for message_id in accepted.values()),
        answered_twice=sum(_answered_twice(chat, message_id, answers) for message_id in accepted.values()),
        wrong_text=sum(
            line.text != chat.expected[client_id]
            for client_id, message_id in accepted.items()
            for line in answers.get(message_id, ())
        ),
        order_errors=_order_errors(list(accepted.values()), answers),
        unknown=len(chat.seen.clashes) + len(answers.keys() - set(accepted.values())),
        unaccepted=len(chat.sent.keys() - accepted.keys()),
    )


def _answered_twice(chat: ChatHistory, message_id: str, answers: Mapping[str, Sequence[Line]]) -> bool:
    shown = answers.get(message_id, ())
    on_the_way = chat.seen.terminals_of(message_id)
    entry_ids = {line.entry_id for line in (*shown, *chat.seen.lines_of(message_id, "assistant"))}
    entry_ids |= {terminal.entry_id for terminal in on_the_way if terminal.type == "response_complete"}
    return len(shown) > 1 or len(on_the_way) > 1 or len(entry_ids) > 1


def _order_errors(accepted: Sequence[str], answers: Mapping[str, Sequence[Line]]) -> int:
    places = [answers[message_id][0].entry_id for message_id in accepted if message_id in answers]
    return sum(earlier > later for earlier, later in pairwise(places))
