"""Where an answer in progress belongs, and what its preview leaves for the final answer."""

from __future__ import annotations

from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The parts of the answered message that showing the answer needs."""

    message_id: str
    reply_handle: str = ""
    private: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenPreview:
    """The result of ending a preview, for the final answer."""

    native_id: str = ""
    """The id of the preview's message; empty for none."""
    unsettled: bool = False
    """An edit was interrupted: the platform may still carry it out and overwrite newer text."""
