"""What kind of file a platform describes, from its declared type, else from the end of its name."""

from __future__ import annotations

from pipeline.domain.messages import MediaKind

_BY_TYPE: dict[str, MediaKind] = {"audio": "audio", "image": "image", "video": "video"}
_SOUND_NAMES = (".aac", ".amr", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".weba", ".wma")
_NO_TYPES = ("", "application/octet-stream", "binary/octet-stream")


def media_kind(mime: str, name: str) -> MediaKind:
    """The kind; a file of no declared type counts as sound if its name ends like one of a sound file: what it
    really is, the decoder finds out from its bytes."""
    declared = mime.lower().partition(";")[0].strip()
    if declared in _NO_TYPES:
        return "audio" if name.lower().endswith(_SOUND_NAMES) else "file"
    return _BY_TYPE.get(declared.partition("/")[0], "file")
