"""Check the ids of people and rooms on each platform, for the lists of who may write and who may not.

Not here: deciding about access (`gateway.access.policy`).
"""

from __future__ import annotations

import re

from pydantic_core import PydanticCustomError

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformIds:
    """The id formats of one platform."""

    person: re.Pattern[str]
    room: re.Pattern[str]
    words: str
    """Examples of both, for a sentence."""

    def check_allowed(self, value: str) -> str:
        """Check an entry `dm:USER`, `room:CHAT` or `room:CHAT/USER`."""
        kind, _, rest = value.partition(":")
        room, slash, person = rest.partition("/") if kind == "room" else ("", "/", rest)
        if kind not in ("dm", "room"):
            raise self._refused("is none of dm:USER, room:CHAT and room:CHAT/USER")
        if (kind == "room" and not self.room.fullmatch(room)) or (
            slash and not self.person.fullmatch(person)
        ):
            raise self._refused("holds something that is no id")
        return value

    def check_person(self, value: str) -> str:
        """Check the bare id of a person."""
        if self.person.fullmatch(value) is None:
            raise self._refused("is not the bare id of a person")
        return value

    def _refused(self, what: str) -> PydanticCustomError:
        return PydanticCustomError("refused", "{what}", {"what": what, "fix": f"write ids: {self.words}"})


TELEGRAM = PlatformIds(
    person=re.compile(r"[1-9][0-9]{0,18}"),
    room=re.compile(r"-[1-9][0-9]{0,18}"),
    words="on Telegram numbers, of a person like 1001, of a room like -1002003",
)
SLACK = PlatformIds(
    person=re.compile(r"[UW][A-Z0-9]{1,20}"),
    room=re.compile(r"[CG][A-Z0-9]{1,20}"),
    words="on Slack of a person like U012AB3CD, of a room like C024BE7LR",
)
DISCORD = PlatformIds(
    person=re.compile(r"[1-9][0-9]{0,19}"),
    room=re.compile(r"[1-9][0-9]{0,19}"),
    words="on Discord numbers like 80351110224678912",
)


ANY = PlatformIds(
    person=re.compile(r"[^\s/]{1,200}"),
    room=re.compile(r"[^\s/]{1,200}"),
    words="as the platform has them, without spaces and slashes",
)
"""For a channel of a plug-in that states no format."""


def person_of(entry: str) -> str:
    """The person's id in a valid entry of allow; empty for a whole room."""
    kind, _, rest = entry.partition(":")
    return rest if kind == "dm" else rest.partition("/")[2]
