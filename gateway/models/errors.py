"""What goes wrong while model files are fetched.

ParlourError
└── FetchFailed      no source gave the files, or they cannot be stored here
SourceFailed         one source did not; the next one is tried. Never leaves this package.
"""

from __future__ import annotations

from pipeline.domain.errors import ParlourError


class FetchFailed(ParlourError):
    """A model could not be fetched; the text says why and what to do."""

    code = "model_fetch"
    permanent = False


class SourceFailed(Exception):
    """This source does not deliver; the text is the reason."""
