"""Hours of the day in which nothing that repeats is said; it waits for their end."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from pipeline.domain.errors import InvalidInput
from pipeline.domain.frozen import dataclass

_FORM = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From one time of the day to another, over midnight if the second is the earlier one."""

    begin: int
    """Minutes after midnight."""
    end: int

    @classmethod
    def optional(cls, text: str) -> QuietHours | None:
        """As `parsed`; None for an empty text."""
        return cls.parsed(text) if text else None

    @classmethod
    def parsed(cls, text: str) -> QuietHours:
        """The hours of a text such as `22:00-07:00`. Raises InvalidInput."""
        match = _FORM.fullmatch(text.strip())
        if match is None:
            raise InvalidInput("quiet hours are written as 22:00-07:00")
        hours = [int(part) for part in match.groups()]
        if hours[0] > 23 or hours[2] > 23 or hours[1] > 59 or hours[3] > 59:
            raise InvalidInput("quiet hours: a time of the day is between 00:00 and 23:59")
        begin, end = hours[0] * 60 + hours[1], hours[2] * 60 + hours[3]
        if begin == end:
            raise InvalidInput("quiet hours: the two times are the same")
        return cls(begin, end)

    def over_at(self, at: float, zone: str) -> float:
        """The Unix time itself, or the end of the quiet hours that it falls into, in `zone`."""
        moment = datetime.fromtimestamp(at, ZoneInfo(zone))
        minutes = moment.hour * 60 + moment.minute
        into = (minutes - self.begin) % _DAY_MINUTES
        length = (self.end - self.begin) % _DAY_MINUTES
        if into >= length:
            return at
        midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        day = midnight if minutes < self.end else midnight + timedelta(days=1)
        return day.replace(hour=self.end // 60, minute=self.end % 60).timestamp()
