"""What the configuration's tests share: a file with given text, and loading that is expected to fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from gateway.config import ConfigurationProblems, load

SECRETS: Mapping[str, str] = {
    "channels.web.token": "tiger-tiger-burning-bright",
    "channels.telegram.token": "1001:" + "Aa0_-" * 7,
    "channels.telegram.webhook_secret": "0123456789abcdef" * 2,
    "channels.slack.bot_token": "xoxb-tiger-tiger-burning-bright",
    "channels.slack.app_token": "xapp-tiger-tiger-burning-bright",
    "channels.slack.signing_secret": "f0e1d2c3b4a59687" * 2,
    "channels.discord.token": "dGlnZXI.Tiger.burning-bright-in-the-forests",
}
"""A value of the right shape for each secret of a channel; none of them opens anything."""


def variable(name: str) -> str:
    """The environment variable of the tests for the secret at the setting `name`."""
    return name.upper().replace(".", "_")


def secrets_environ(**changed: str) -> dict[str, str]:
    """Every secret of `SECRETS` in its variable, with some of them `changed` by variable."""
    return {**{variable(name): value for name, value in SECRETS.items()}, **changed}


def references(*names: str) -> list[str]:
    """Overrides that make the settings `names` refer to their variables."""
    return [f"{name}=env:{variable(name)}" for name in names]


def write_config(folder: Path, text: str) -> Path:
    path = folder / "parlour.toml"
    path.write_text(text, encoding="utf-8")
    return path


def problem_lines(
    path: Path | None, environ: Mapping[str, str] | None = None, overrides: Sequence[str] = ()
) -> list[str]:
    """The lines of the problems that loading raises."""
    with pytest.raises(ConfigurationProblems) as caught:
        load(path, environ or {}, overrides)
    lines = str(caught.value).split("\n")
    assert lines == [str(problem) for problem in caught.value.problems]
    return lines
