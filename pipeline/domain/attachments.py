"""Describe a message's attachments as text: notes for the model, a line for the person.

The sender chooses file names, so they are shortened and can neither end a note nor format a line. Not here:
the content of files (`gateway.attachments`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipeline.domain.files import StoredFile
from pipeline.domain.messages import InboundMessage, MediaKind, MediaRef
from pipeline.domain.visible import is_seen

_KINDS: dict[MediaKind, str] = {
    "voice": "voice note",
    "audio": "sound file",
    "image": "picture",
    "video": "video",
    "file": "file",
}
_NAME_CHARS = 80
_MOST_NAMED = 5
_NOTE = "[Attached: {what}. The content is not available to you.]"
NOTE_BEGINS = "[Attached: "
"""How every note for the model begins."""
_USED_NOTE = NOTE_BEGINS + "{what}]"
_REASON = "I left out {what}. {reason}"
NOT_SEEN = "This model cannot see pictures."
"""Why a picture is left out for a model without vision."""
OTHER_CONTENT = "I cannot open that kind of content."
"""Why other content without text or bytes is left out."""
_LINE = "I cannot open attachments yet, so I left out {what}."
_UNNAMEABLE = str.maketrans({"[": "(", "]": ")", '"': "'", "`": "'"})


def attached_note(refs: Sequence[MediaRef], unusable: Sequence[str] = ()) -> str:
    """For the model: one line with the kind, name, type and size of each; empty without attachments."""
    what = [*(_for_model(ref) for ref in refs), *(_plain(one) for one in unusable)]
    return _NOTE.format(what=_joined(what, "; ")) if what else ""


def left_out_line(message: InboundMessage) -> str:
    """For the person: one line of Markdown that names the unused parts of `message`; empty if all of it was
    used."""
    what = [*(_for_person(ref) for ref in message.attachments), *(_plain(one) for one in message.unusable)]
    return _LINE.format(what=_listed(what)) if what else ""


def reasons_line(left_out: Mapping[str, Sequence[str]]) -> str:
    """For the person: one line of Markdown with what was left out, by the sentence that gives the reason;
    empty without any."""
    return " ".join(
        _REASON.format(what=_listed(list(what)), reason=reason) for reason, what in left_out.items() if what
    )


def used_note(file: StoredFile, more: str = "") -> str:
    """For the model: a line with the kind, name and known properties of a file that it is given; `more` says
    what of it follows."""
    name, about = _plain(file.name), _plain(file.about)
    what = f'{_KINDS[file.kind]} "{name}"' if name else _KINDS[file.kind]
    return _USED_NOTE.format(what="; ".join(part for part in (what, about, more) if part))


def plain_name(file: StoredFile) -> str:
    """The name of a file in a mark around its text; its kind if it has none."""
    return _plain(file.name) or _KINDS[file.kind]


def named_ref(ref: MediaRef) -> str:
    """An attachment for the person, in Markdown: its name, else its kind."""
    return _for_person(ref)


def named_file(file: StoredFile) -> str:
    """A stored file for the person, in Markdown: its name, else its kind."""
    name = _plain(file.name)
    return f"`{name}`" if name else f"a {_KINDS[file.kind]}"


def file_size(size: int) -> str:
    """A size in bytes as readable text, such as `1.2 MB`."""
    if size < 1_000:
        return f"{size} bytes"
    for unit, of in (("KB", 1_000), ("MB", 1_000_000)):
        if size < of * 999.5:
            return f"{size / of:.3g} {unit}"
    return f"{size / 1_000_000_000:.3g} GB"


def _for_model(ref: MediaRef) -> str:
    name, about = _plain(ref.name), [_plain(ref.mime)]
    about.append("" if ref.size is None else file_size(ref.size))
    known = ", ".join(one for one in about if one)
    named = f'{_KINDS[ref.kind]} "{name}"' if name else _KINDS[ref.kind]
    return f"{named} ({known})" if known else named


def _for_person(ref: MediaRef) -> str:
    name = _plain(ref.name)
    named = f"`{name}`" if name else f"a {_KINDS[ref.kind]}"
    return named if ref.size is None else f"{named} ({file_size(ref.size)})"


def _listed(what: list[str]) -> str:
    *others, last = _shortened(what)
    return f"{', '.join(others)} and {last}" if others else last


def _joined(what: Iterable[str], between: str) -> str:
    return between.join(_shortened(list(what)))


def _shortened(what: list[str]) -> list[str]:
    if len(what) <= _MOST_NAMED:
        return what
    return [*what[: _MOST_NAMED - 1], f"{len(what) - _MOST_NAMED + 1} more"]


def _plain(text: str) -> str:
    """`text` on one line, without characters that are invisible, reorder text or end the note."""
    seen = "".join(" " if one.isspace() else one for one in text if is_seen(one))
    words = " ".join(seen.translate(_UNNAMEABLE).split())
    return words if len(words) <= _NAME_CHARS else words[: _NAME_CHARS - 1] + "…"
