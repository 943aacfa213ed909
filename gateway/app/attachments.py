"""Build what takes the files that people send, for the composition root."""

from __future__ import annotations

from functools import partial

from gateway.app.components import Foundation
from gateway.app.sharing import downloads_of
from gateway.attachments.conversation_files import LoggedFiles
from gateway.attachments.intake import AttachmentIntake
from gateway.speech.voice_notes import VoiceNoteTranscriber

_MB = 1_000_000


def build_attachments(base: Foundation, speech: VoiceNoteTranscriber) -> AttachmentIntake:
    """What takes the attachments of messages."""
    return AttachmentIntake(
        channel_of=partial(downloads_of, base),
        files=base.files,
        reader=base.file_reader,
        max_bytes=base.settings.files.max_mb * _MB,
        hear=speech.transcribe_file if speech.enabled else None,
    )


def build_conversation_files(base: Foundation) -> LoggedFiles:
    """What finds and reads the files of a conversation."""
    return LoggedFiles(base.store, base.files, base.file_reader)
