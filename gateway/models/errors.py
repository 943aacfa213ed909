"""The errors of fetching model files.

ParlourError
└── FetchFailed      no source delivered the files, or they cannot be stored here
SourceFailed         one source failed; the next one is tried. Never leaves this package.
"""

from __future__ import annotations

from pipeline.domain.errors import ParlourError


class FetchFailed(ParlourError):
    """A model could not be fetched; the text says why and what to do."""

    code = "model_fetch"
    permanent = False


class SourceFailed(Exception):
    """This source failed; the text is the reason."""
