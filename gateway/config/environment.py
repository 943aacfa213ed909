"""Read the process's environment, and the variables that are not settings.

No other module reads the environment. Not here: the overlay `PARLOUR__SECTION__KEY` (`sources`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from zoneinfo import ZoneInfo

from gateway.config.problems import ConfigurationProblems, Problem

CONFIG_VARIABLE = "PARLOUR_CONFIG"
CRASH_VARIABLE = "PARLOUR_CRASH_AT"
DEFAULT_FILE = Path("parlour.toml")
_MODELS = Path("models")

_COUNT = re.compile(r"[1-9][0-9]{0,8}")


def environment() -> Mapping[str, str]:
    """A read-only copy of the process's environment."""
    return MappingProxyType(dict(os.environ))  # noqa: TID251 - the one place that reads the environment


def machine_zone() -> str:
    """The IANA name of this machine's time zone from TZ or /etc/localtime; UTC if neither is set."""
    named = os.environ.get("TZ", "").removeprefix(":")  # noqa: TID251 - as above, and a copy takes longer
    linked = os.path.realpath("/etc/localtime").partition("/zoneinfo/")[2]
    for name in (named, linked):
        try:
            if name and not name.startswith("/"):
                return ZoneInfo(name).key
        except (KeyError, ValueError, OSError):
            continue
    return "UTC"


def models_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The default folder of the model files: `models` in this folder if it exists, else the user's own,
    parlour/models in XDG_DATA_HOME. `environ` replaces the process's environment."""
    if _MODELS.is_dir():
        return _MODELS
    given = os.environ if environ is None else environ  # noqa: TID251 - as in machine_zone
    data_home = Path(given.get("XDG_DATA_HOME") or "~/.local/share")
    # The specification of XDG says that a relative path is to be ignored.
    base = data_home if data_home.is_absolute() else Path("~/.local/share")
    try:
        return base.expanduser() / "parlour" / "models"
    except RuntimeError:  # no home folder is known
        return _MODELS


def config_file(path: Path | None, environ: Mapping[str, str]) -> Path | None:
    """The file to read: `path`, else what PARLOUR_CONFIG names, else ./parlour.toml if there is one."""
    if path is not None:
        return path
    if environ.get(CONFIG_VARIABLE):
        return Path(environ[CONFIG_VARIABLE])
    try:
        return DEFAULT_FILE if DEFAULT_FILE.exists() else None
    except OSError:
        # The folder cannot be searched: reading the file raises the readable error.
        return DEFAULT_FILE


def crash_at(environ: Mapping[str, str], *, labels: Sequence[str]) -> str | None:
    """The crash label `label:n` at which a test wants the process to die, or None.

    `labels` are all crash labels. Raises ConfigurationProblems for a malformed value or another label.
    """
    value = environ.get(CRASH_VARIABLE)
    if value is None:
        return None
    label, _, count = value.partition(":")
    if label in labels and _COUNT.fullmatch(count):
        return value
    raise ConfigurationProblems(
        [
            Problem(
                path=CRASH_VARIABLE,
                what="expected a crash label and a count from 1, as label:n",
                fix=f"unset the variable, or use one of the labels {', '.join(labels)}",
            )
        ]
    )
