"""The settings of the log: [log]."""

from __future__ import annotations

from typing import Literal

from gateway.config.section import Section, setting


class LogSettings(Section):
    """[log]: the log."""

    level: Literal["debug", "info", "warning", "error"] = setting(
        "info", "The least severe line that is logged."
    )
    format: Literal["auto", "json", "console"] = setting(
        "auto", "The form of the lines; auto is console in a terminal and json elsewhere."
    )
