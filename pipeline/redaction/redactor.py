"""What everybody else uses: secrets out of texts, streams, events and chat messages.

Configured secrets first, then private keys, then patterns. A stream gives exactly what the whole text would
give, however it is cut. Whoever shows only the beginning of a text has it cut here: cut before, a secret on
the cut would be half a secret, which nobody finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from pipeline.domain.chat import ChatMessage
from pipeline.domain.clock import Clock, SystemClock
from pipeline.domain.events import LlmToken, PipelineEvent, Thought
from pipeline.redaction.known import KnownSecrets, KnownStream
from pipeline.redaction.patterns import may_hold_secret
from pipeline.redaction.private_keys import OPENING, KeyStream
from pipeline.redaction.words import WordStream

EventT = TypeVar("EventT", bound=PipelineEvent)

_LOOKED_UP_EVERY_S = 1.0
"""Secrets may be files, which are not read for every line."""
_PIECE_CHARS = 4_096
"""Of a text of which only the beginning is shown: so much is looked at more than has to be."""
_LINE_LOOKED_AT = 4
"""Times as many characters as one line shows, and a piece: line breaks and indents do not count there, and
the beginning of a long word is shown only where there is enough of it."""
_SWALLOWED_CHARS = 65_536
"""Looked at beyond what is shown, where secrets stood: a server may return megabytes of them."""
_TEXTS = frozenset(
    {"text", "summary", "reasoning", "reason", "task", "status", "result", "content", "message"}
)
"""Fields of events that hold words; ids, names and options stay what they are."""
_THOUGHTS = "thoughts"
_texts: dict[type[PipelineEvent], tuple[str, ...]] = {}
"""The fields of each kind of event that hold words, as far as they have been asked for."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The beginning of a text, without secrets."""

    text: str
    whole: bool
    """Nothing was left out."""


class StreamingRedactor:
    """One text in pieces."""

    def __init__(self, known: KnownSecrets) -> None:
        self._known = KnownStream(known)
        self._keys = KeyStream()
        self._words = WordStream()

    def feed(self, chunk: str) -> str:
        """What can be shown now: all but the last word, or what may be the beginning of a secret."""
        return self._words.feed(self._keys.feed(self._known.feed(chunk)))

    def finish(self) -> str:
        """The rest. Then the redactor is as new."""
        keys = self._keys.feed(self._known.finish()) + self._keys.finish()
        return self._words.feed(keys) + self._words.finish()


class Redactor:
    """Takes secrets out. `known` gives the configured ones, longest ago first or not."""

    def __init__(self, known: Callable[[], Iterable[str]] = tuple, *, clock: Clock | None = None) -> None:
        self._values = known
        self._clock = clock or SystemClock()
        self._looked_up_at = float("-inf")
        self._seen: frozenset[str] = frozenset()
        self._known = KnownSecrets(())

    def text(self, text: str) -> str:
        """`text` without configured secrets and without what looks like one."""
        known = self._current()
        if not (may_hold_secret(text) or OPENING in text or known.is_in(text)):
            return text
        stream = StreamingRedactor(known)
        return stream.feed(text) + stream.finish()

    def excerpt(self, text: str, chars: int, *, goes_on: bool = False) -> Excerpt:
        """The first `chars` characters of what `text` gives; fewer where nearly all of it is secret.

        `goes_on` says that `text` is itself cut: a word, or the beginning of a secret, at its end is left out
        then. Costs what is shown costs, however long the text is.
        """
        if len(text) <= _PIECE_CHARS and not goes_on:
            safe = self.text(text)
            return Excerpt(safe[:chars], len(safe) <= chars)
        stream, shown, room = self.stream(), list[str](), chars
        until = min(len(text), chars + _SWALLOWED_CHARS)
        for at in range(0, until, _PIECE_CHARS):
            piece = stream.feed(text[at : min(at + _PIECE_CHARS, until)])
            shown.append(piece)
            room -= len(piece)
            if room < 0:
                break
        else:
            if until == len(text) and not goes_on:
                shown.append(stream.finish())
                room -= len(shown[-1])
                return Excerpt("".join(shown)[:chars], room >= 0)
        return Excerpt("".join(shown)[:chars], whole=False)

    def line(self, text: str, chars: int) -> str:
        """The beginning of `text` as one line of at most `chars` characters, with `…` where it is cut."""
        begun = self.excerpt(text, _LINE_LOOKED_AT * chars + _PIECE_CHARS)
        # Again: broken over two lines, a secret of several words is found only now.
        found = self.excerpt(" ".join(begun.text.split()), chars, goes_on=not begun.whole)
        return found.text if found.whole else found.text[: chars - 1] + "…"

    def configured(self, text: str) -> str:
        """`text` without configured secrets: for a person's own words, which are theirs otherwise."""
        return self._current().redact(text) if text else ""

    def stream(self) -> StreamingRedactor:
        """For a text that comes in pieces."""
        return StreamingRedactor(self._current())

    def event(self, event: EventT) -> EventT:
        """The event with safe words. The text of an `LlmToken` is its stream's business."""
        if isinstance(event, LlmToken):
            return event
        changed: dict[str, Any] = {}
        for name in _texts_of(event):
            value = getattr(event, name)
            if name == _THOUGHTS:
                changed |= {name: tuple(map(self.thought, value))} if value else {}
            elif (safe := self.text(value)) != value:
                changed[name] = safe
        return replace(event, **changed) if changed else event

    def thought(self, thought: Thought) -> Thought:
        """The thought with safe words."""
        detail = {name: self._plain(value) for name, value in thought.detail.items()}
        return replace(thought, summary=self.text(thought.summary), detail=detail)

    def message(self, message: ChatMessage) -> ChatMessage:
        """The message with safe words and safe arguments."""
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
            # Those seen before stay: texts outlive a rotation.
            seen = self._seen.union(self._values())
            if seen != self._seen:
                self._seen, self._known = seen, KnownSecrets(seen)
            # Last: another thread that asks meanwhile looks for itself, and does not take none for all.
            self._looked_up_at = now
        return self._known


def _texts_of(event: PipelineEvent) -> tuple[str, ...]:
    found = _texts.get(type(event))
    if found is None:
        found = tuple(one.name for one in fields(event) if one.name in _TEXTS or one.name == _THOUGHTS)
        _texts[type(event)] = found
    return found
