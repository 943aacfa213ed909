"""What a platform shows a file as, by its name, for platforms that go by the name."""

from __future__ import annotations

_ENDINGS = {
    "image": (".png", ".jpg", ".jpeg", ".gif", ".webp"),
    "audio": (".mp3", ".m4a", ".ogg", ".wav", ".flac"),
    "video": (".mp4", ".webm", ".mov"),
}


def shown_kind(name: str) -> str:
    """`image`, `audio`, `video` or `file`."""
    return next((kind for kind, endings in _ENDINGS.items() if name.lower().endswith(endings)), "file")
