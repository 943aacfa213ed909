"""Which tools run off the record: those of this program that only read. Checked where actions run."""

from __future__ import annotations

from pipeline.tools.tool import Tool

OTR_WORDS = "{name} is not available off the record: it is not a tool that only reads."
OTR_ANSWER = "This conversation is off the record and keeps nothing, so that was not done."


def allowed_off_the_record(tool: Tool) -> bool:
    """Whether the tool may run off the record."""
    return tool.reads_only and tool.built_in
