"""The errors that a tool raises, with a text for the model."""

from __future__ import annotations

from pipeline.domain.errors import ParlourError


class ToolFailed(ParlourError):
    """The tool could not do it; the message gives the reason to the model."""

    code = "tool_failed"


class Refused(ToolFailed):
    """The tool may not do it for any user; the message gives the reason to the model."""

    code = "tool_refused"
