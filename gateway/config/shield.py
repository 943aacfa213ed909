"""The settings of the security shield: [shield]."""

from __future__ import annotations

from typing import Literal

from gateway.config.section import PathSetting, Section, setting


class ShieldSettings(Section):
    """[shield]: what is decided about actions of tools."""

    policy: PathSetting | None = setting(
        None,
        "A TOML file with rules of your own, evaluated before the shipped ones; a rule of the same name "
        "replaces the shipped one. A changed file takes effect with the next action.",
        example="policy.toml",
    )
    flow: Literal["enforce", "audit"] = setting(
        "enforce",
        "Whether the rules about confidential data stop actions (enforce), or only note in the audit what "
        "they would stop (audit).",
    )
    approvals_per_hour: int = setting(
        10,
        "How often one person is asked in an hour whether a tool may be used; further actions are refused. "
        "0 sets no limit.",
        ge=0,
        le=1_000,
    )
