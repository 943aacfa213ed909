"""The interface of every fake platform: people write to it, tests read it, and it can play faults.

A platform outlives the gateways that connect to it, as the real ones do: what it was not acknowledged it
delivers again. The wire formats are the single platforms' own modules'.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, Self

FaultKind = Literal["rate_limit", "error_before", "error_after", "hang", "drop", "refuse_format", "forbid"]
"""`rate_limit`: 429 with retry_after, nothing done. `error_before`: 5xx, nothing done. `error_after`: done,
and then 5xx. `hang`: done, and no answer until the client gives up. `drop`: the connection breaks before an
answer. `refuse_format`: 400 for what the platform calls bad formatting. `forbid`: a permission is missing,
nothing done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An account on the platform."""

    id: str
    name: str
    bot: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a person can write to the bot."""

    chat: str
    private: bool
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A message as a person in the place sees it now."""

    native_id: str
    author: str
    """A person's id; "" for the bot under test."""
    text: str
    """The text without formatting."""
    buttons: tuple[str, ...] = ()
    file_name: str = ""
    edits: int = 0
    reply_to: str = ""
    """The native id of the message that it replies to."""
    voice: bytes = b""
    """The audio of a voice message."""
    file: bytes = b""
    """The content of a file."""
    file_kind: str = ""
    """What the platform shows the file as: `image`, `audio`, `video` or `file`; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request of the bot, as it came in."""

    method: str
    payload: dict[str, object]
    status: int
    """The HTTP status of the answer; 0 for none."""
    at: float
    """`time.monotonic` seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One misbehaviour, played for the next call whose method contains `method`."""

    method: str
    kind: FaultKind
    retry_after_s: float = 1.0


@dataclass(slots=True, kw_only=True)
class Faults:
    """How the platform misbehaves: a script played in order, and shares drawn with a fixed seed."""

    script: deque[Fault] = field(default_factory=deque)
    duplicate_share: float = 0.0
    """The share of events to the bot that are delivered twice."""
    rate_limit_share: float = 0.0
    """The share of the bot's calls that show something which are answered 429."""
    error_after_share: float = 0.0
    """The share of those calls that are carried out and then answered 5xx."""
    retry_after_s: float = 1.0
    """The wait that a drawn 429 asks for; whole seconds if the platform's field has whole seconds."""
    answer_delay_s: float = 0.0
    """Between doing what a call asks for and answering it."""
    seed: int = 1
    _chance: random.Random | None = None

    def next_for(self, method: str, *, shows: bool) -> Fault | None:
        """The fault to play for this call, if any. `shows`: whether the call makes something visible."""
        if self.script and self.script[0].method in method:
            return self.script.popleft()
        if not shows or not (self.rate_limit_share or self.error_after_share):
            return None
        drawn = self._draw()
        if drawn < self.rate_limit_share:
            return Fault(method=method, kind="rate_limit", retry_after_s=self.retry_after_s)
        if drawn < self.rate_limit_share + self.error_after_share:
            return Fault(method=method, kind="error_after")
        return None

    def duplicates(self) -> bool:
        """Whether the next event is delivered twice."""
        return self.duplicate_share > 0 and self._draw() < self.duplicate_share

    def _draw(self) -> float:
        if self._chance is None:
            self._chance = random.Random(self.seed)
        return self._chance.random()


class FakePlatform(Protocol):
    """One platform with one bot. `async with` runs its servers on free loopback ports."""

    name: str
    """The channel's name: telegram, slack or discord."""
    faults: Faults
    lenient: bool
    """Disable the platform's own rate limits, for benchmarks. Everything else stays enforced."""

    @property
    def calls(self) -> list[Call]:
        """All requests of the bot, oldest first."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    def overrides(self, folder: Path) -> tuple[str, ...]:
        """`SECTION.KEY=VALUE` settings of a gateway for this bot, with open access; the secrets are written
        into files of `folder` with mode 600. The settings also work in a TOML file."""
        ...

    def person(self, name: str, *, bot: bool = False) -> Person:
        """An account; the same for the same name."""
        ...

    def private_chat(self, person: Person) -> Place:
        """The person's own chat with the bot."""
        ...

    def room(self, name: str, *members: Person) -> Place:
        """A group or channel with the bot and `members` in it; the same for the same name."""
        ...

    async def say(self, place: Place, person: Person, text: str, *, addressed: bool = True) -> str:
        """The person writes; the native id of the message. In a room `addressed` mentions the bot in the
        platform's own way. Returns when the event is queued for delivery, not when it was acknowledged."""
        ...

    async def speak(self, place: Place, person: Person, audio: bytes, *, mime: str) -> str:
        """The person sends a voice note of the platform's own kind; its native id."""
        ...

    async def press(self, place: Place, person: Person, native_id: str, label: str) -> str:
        """The person presses a button of the bot's message; returns the text that the platform shows only to
        that person, empty for none. Raises LookupError if there is no such button."""
        ...

    def visible(self, place: Place) -> tuple[Shown, ...]:
        """All messages of the place, including people's, oldest first."""
        ...

    def bot_texts(self, place: Place) -> list[str]:
        """The texts of the bot's messages, oldest first."""
        ...

    async def until(self, holds: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
        """Wait until `holds()`; checked when anything happens on the platform. Raises TimeoutError with the
        last calls in its message."""
        ...

    def unacknowledged(self) -> int:
        """Events that the bot has not acknowledged yet."""
        ...
