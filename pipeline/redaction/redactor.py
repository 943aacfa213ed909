"""Remove secrets from texts, streams, events and chat messages. Other packages use only this module.

Configured secrets come first, then private keys, then patterns. A stream gives exactly the result of the
whole text, whatever its chunks. A caller that shows only the beginning of a text cuts it with `excerpt`:
after an earlier cut, half a secret would remain, which no pattern finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, get_args

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.events import LlmToken, PipelineEvent, Thought
from pipeline.domain.frozen import dataclass
from pipeline.redaction.known import KnownSecrets, KnownStream
from pipeline.redaction.patterns import may_hold_secret
from pipeline.redaction.private_keys import OPENING, KeyStream
from pipeline.redaction.words import WordStream

EventT = TypeVar("EventT", bound=PipelineEvent)

_LOOKED_UP_EVERY_S = 1.0
"""Seconds between reads of the secrets: they may be files, which are not read for every line."""
_CHUNK_CHARS = 4_096
"""The chunk in which an excerpt is read: at most this much is read in excess."""
_LINE_LOOKED_AT = 4
"""For one line, this many times its length and one chunk are read: line breaks and indents are dropped, and
the beginning of a long word is shown only where enough of the word is read."""
_SWALLOWED_CHARS = 65_536
"""The most that is read beyond the shown length because of secrets: a server may return megabytes of them."""
_MOST_CLEAN = 2_000
_TEXTS = frozenset(
    {"text", "summary", "reasoning", "reason", "task", "status", "result", "content", "message"}
)
"""Fields of events with free text; ids, names and options are not changed."""
_THOUGHTS = "thoughts"
_TEXTS_OF: Mapping[type, tuple[str, ...]] = {
    kind: tuple(one.name for one in fields(kind) if one.name in _TEXTS or one.name == _THOUGHTS)
    for kind in get_args(PipelineEvent)
}
"""The free-text fields of each kind of event."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text, without secrets."""

    text: str
    whole: bool
    """Whether nothing was left out."""


class StreamingRedactor:
    """Redacts one text in chunks."""

    def __init__(self, known: KnownSecrets) -> None:
        self._known = KnownStream(known)
        self._keys = KeyStream()
        self._words = WordStream()

    def feed(self, chunk: str) -> str:
        """The redacted text that is safe to show now, without the last word or the beginning of a secret."""
        known, keys = self._known, self._keys
        # Nothing waits and nothing begins: so it is with most words of most answers.
        if known.held or known.may_begin(chunk) is not None:
            chunk = known.feed(chunk)
        if keys.held or keys.inside or "-" in chunk:
            chunk = keys.feed(chunk)
        return self._words.feed(chunk)

    def finish(self) -> str:
        """The rest of the redacted text. Afterwards the redactor can be used for another text."""
        rest = ""
        if self._known.held or self._keys.held or self._keys.inside:
            rest = self._words.feed(self._keys.feed(self._known.finish()) + self._keys.finish())
        return rest + self._words.finish()


class Redactor:
    """Removes secrets from texts. `known` returns the configured secrets, in any order."""

    def __init__(self, known: Callable[[], Iterable[str]] = tuple, *, clock: Clock | None = None) -> None:
        self._values = known
        self._clock = clock or SystemClock()
        self._looked_up_at = float("-inf")
        self._seen: frozenset[str] = frozenset()
        self._known = KnownSecrets(())
        self._clean: set[str] = set()
        """Texts that hold no secret, as far as `_clean_by` knows them."""
        self._clean_by = self._known

    def text(self, text: str) -> str:
        """`text` without configured secrets and without what looks like one."""
        if not text:
            return text
        known = self._current()
        if not (may_hold_secret(text) or OPENING in text or (not known.is_empty and known.is_in(text))):
            return text
        stream = StreamingRedactor(known)
        return stream.feed(text) + stream.finish()

    def is_clean(self, text: str) -> bool:
        """Whether `text` leaves it as it is. Remembered: for short texts that come again and again, such as
        the key of a thread in the lines of the log."""
        known = self._current()
        if self._clean_by is not known:
            self._clean, self._clean_by = set(), known
        if text in self._clean:
            return True
        if self.text(text) != text:
            return False
        if len(self._clean) >= _MOST_CLEAN:
            self._clean.clear()
        self._clean.add(text)
        return True

    def excerpt(self, text: str, chars: int, *, is_cut: bool = False) -> Excerpt:
        """The first `chars` characters of the redacted `text`; fewer where nearly all of it is secret.

        `is_cut` says that `text` is itself cut: then a word, or the beginning of a secret, at its end is left
        out. The time it takes depends on the length shown, not on the length of `text`.
        """
        if len(text) <= _CHUNK_CHARS and not is_cut:
            safe = self.text(text)
            return Excerpt(safe[:chars], len(safe) <= chars)
        stream, shown, room = self.stream(), list[str](), chars
        until = min(len(text), chars + _SWALLOWED_CHARS)
        for at in range(0, until, _CHUNK_CHARS):
            chunk = stream.feed(text[at : min(at + _CHUNK_CHARS, until)])
            shown.append(chunk)
            room -= len(chunk)
            if room < 0:
                break
        else:
            if until == len(text) and not is_cut:
                shown.append(stream.finish())
                room -= len(shown[-1])
                return Excerpt("".join(shown)[:chars], room >= 0)
        return Excerpt("".join(shown)[:chars], whole=False)

    def line(self, text: str, chars: int) -> str:
        """The beginning of `text` as one line of at most `chars` characters, with `…` where it is cut."""
        begun = self.excerpt(text, _LINE_LOOKED_AT * chars + _CHUNK_CHARS)
        # Redact again: a secret of several words across a line break is found only in one line.
        found = self.excerpt(" ".join(begun.text.split()), chars, is_cut=not begun.whole)
        return found.text if found.whole else found.text[: chars - 1] + "…"

    def configured(self, text: str) -> str:
        """`text` without configured secrets only: a person's own words stay unchanged otherwise."""
        if not text:
            return ""
        known = self._current()
        return text if known.is_empty else known.redact(text)

    def stream(self) -> StreamingRedactor:
        """A redactor for a text that comes in chunks."""
        return StreamingRedactor(self._current())

    def event(self, event: EventT) -> EventT:
        """The event with redacted text. An `LlmToken` stays unchanged: its stream redacts the text."""
        if isinstance(event, LlmToken):
            return event
        names = _TEXTS_OF[type(event)]
        if not names:
            return event
        changed: dict[str, Any] = {}
        for name in names:
            value = getattr(event, name)
            if name == _THOUGHTS:
                changed |= {name: tuple(map(self.thought, value))} if value else {}
            elif (safe := self.text(value)) != value:
                changed[name] = safe
        return replace(event, **changed) if changed else event

    def thought(self, thought: Thought) -> Thought:
        """The thought with redacted text."""
        detail = {name: self._plain(value) for name, value in thought.detail.items()}
        return replace(thought, summary=self.text(thought.summary), detail=detail)

    def message(self, message: ChatMessage) -> ChatMessage:
        """The message with redacted text and redacted arguments."""
        calls = tuple(replace(call, arguments=self.text(call.arguments)) for call in message.tool_calls)
        return replace(message, content=self.text(message.content), tool_calls=calls)

    def _plain(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {name: self._plain(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._plain(inner) for inner in value]
        return value

    def _current(self) -> KnownSecrets:
        now = self._clock.monotonic()
        if now - self._looked_up_at >= _LOOKED_UP_EVERY_S:
            # Earlier values stay known: old texts may still contain a rotated secret.
            seen = self._seen.union(self._values())
            if seen != self._seen:
                self._seen, self._known = seen, KnownSecrets(seen)
            # Set last: another thread that runs meanwhile must not use an incomplete set.
            self._looked_up_at = now
        return self._known
