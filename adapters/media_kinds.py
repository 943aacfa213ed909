"""The kind of a file, from its declared type, else from its name's extension."""

from __future__ import annotations

from pipeline.domain.messages import MediaKind

_BY_TYPE: dict[str, MediaKind] = {"audio": "audio", "image": "image", "video": "video"}
_SOUND_NAMES = (".aac", ".amr", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".weba", ".wma")
_NO_TYPES = ("", "application/octet-stream", "binary/octet-stream")


def media_kind(mime: str, name: str) -> MediaKind:
    """The kind; a file without a declared type counts as audio if its extension is one of an audio format:
    the decoder determines the real format from the bytes."""
    declared = mime.lower().partition(";")[0].strip()
    if declared in _NO_TYPES:
        return "audio" if name.lower().endswith(_SOUND_NAMES) else "file"
    return _BY_TYPE.get(declared.partition("/")[0], "file")
