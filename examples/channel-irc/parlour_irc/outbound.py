"""From an answer to lines of IRC, and from a server's refusal to a failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from irctokens.line import Line

from adapters.channel import Failure, FailureKind, Outgoing, Part
from adapters.formatting.graphemes import cut_position
from adapters.formatting.plain import plain_text
from adapters.formatting.split import has_ink
from parlour_irc.connection import Closed
from parlour_irc.inbound import folded
from pipeline.domain.errors import ConfigurationError, InvalidInput

TEXT_BYTES = 300
"""Of one line. The server puts `:nick!user@host PRIVMSG target :` in front (up to 107, 9 and 52 bytes), and
the adapter the nick of the person answered (32): 512 bytes hold all of it."""
LEFT_OUT = "({count} more lines are left out here.)"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAK = re.compile(r"[\r\n\x85\u2028\u2029]+")
_BLANK = "…"
_FANTASY = ("!", ".", "`")
"""Other bots, and the services, take lines that begin so as commands."""
_SECONDS = re.compile(r"([0-9]{1,4}) ?s")
_TRY_AGAIN_S = 10.0
_REFUSALS: dict[str, tuple[FailureKind, str]] = {
    "401": ("not_found", "no one has that nick now"),
    "403": ("not_found", "there is no such room"),
    "404": ("permission", "the room takes no messages of the bot"),
    "407": ("invalid", "the server refuses the target"),
    "411": ("invalid", "the server refuses the target"),
    "412": ("invalid", "the line has no text"),
    "417": ("invalid", "the line is too long"),
    "442": ("permission", "the bot is not in the room"),
    "477": ("permission", "the room takes no messages of the bot"),
    "486": ("permission", "the person takes messages of accounts only"),
    "531": ("permission", "the person takes no messages of the bot"),
    "716": ("permission", "the person takes no messages of strangers"),
}
_TOO_FAST = frozenset({"263", "439"})


class Refused(Exception):
    """The server, or this adapter, did not carry out a post; carries its classification."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Unsent(ConnectionError):
    """There is no connection; nothing was sent."""


def render(outgoing: Outgoing, *, max_lines: int) -> tuple[Part, ...]:
    """One part for each line. A question is never cut: a person must not agree to what is not visible."""
    lines = [*_lines(outgoing.text, outgoing.heard)]
    if outgoing.questions or outgoing.attached:
        lines = [*_cut(outgoing.attached.decode("utf-8", "replace")), *lines]
    elif len(lines) > max_lines:
        count = len(lines) - (max_lines - 1)
        lines = [*lines[: max_lines - 1], LEFT_OUT.format(count=count)]
    return tuple(Part(body={"text": line}, plain=line) for line in lines or [_BLANK])


def harmless(text: str) -> str:
    """A line for a room that no other bot takes as a command to it."""
    return f" {text}" if text.startswith(_FANTASY) else text


def refusal(said: Sequence[Line], target: str) -> Refused | None:
    """The refusal of a message to `target` among the server's answers."""
    for line in said:
        if line.command in _TOO_FAST:
            seconds = _SECONDS.search(line.params[-1] if line.params else "")
            wait = float(seconds[1]) if seconds else _TRY_AGAIN_S
            words = f"the server asks to wait {wait:g} s"
            return Refused(Failure(kind="rate_limit", message=words, retry_after_s=wait, whole_account=True))
        if line.command == "FAIL":
            return Refused(Failure(kind="invalid", message="the server refuses the message"))
        if line.command in _REFUSALS and folded(target) in [folded(param) for param in line.params[1:2]]:
            kind, words = _REFUSALS[line.command]
            return Refused(Failure(kind=kind, message=words))
    return None


def classify(error: Exception) -> Failure:
    """The failure for an error of a post. Without the error's own text, which may be a foreign one."""
    match error:
        case Refused():
            return error.failure
        case Unsent():
            return Failure(kind="transient", message="there is no connection to the server")
        case Closed():
            return Failure(kind="transient", message=str(error), maybe_delivered=True)
        case ConfigurationError():
            return Failure(kind="auth", message=str(error))
        case InvalidInput():
            return Failure(kind="invalid", message=str(error))
        case TimeoutError():
            return Failure(kind="transient", message="the server gave no answer", maybe_delivered=True)
        case OSError():
            words = f"the connection failed ({type(error).__name__})"
            return Failure(kind="transient", message=words, maybe_delivered=True)
        case _:
            return Failure(kind="unknown", message=type(error).__name__, maybe_delivered=True)


def _lines(markdown: str, heard: str) -> Iterator[str]:
    yield from _cut(plain_text(markdown, transcript=heard))


def _cut(text: str) -> Iterator[str]:
    """The lines of `text`, each within TEXT_BYTES and with something to see. No character is cut, and no
    control character is left: \\x01 would make a line a command of CTCP."""
    for line in _BREAK.split(_CONTROL.sub("", text.replace("\t", " "))):
        left = line.rstrip()
        while left:
            piece = _within(left)
            left = left[len(piece) :].lstrip() if len(piece) < len(left) else ""
            if has_ink(piece):
                yield piece.rstrip()


def _within(line: str) -> str:
    """The longest good beginning of `line` that fits."""
    encoded = line.encode("utf-8", "replace")
    if len(encoded) <= TEXT_BYTES:
        return line
    most = len(encoded[:TEXT_BYTES].decode("utf-8", "ignore"))
    return line[: cut_position(line[:most], line[most:]) or most]
