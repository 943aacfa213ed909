"""The ids of runs, and the threads on which they are: each run has a separate thread.

An id names its workflow, so that a run's agent is known by its thread alone, also after a restart.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from pipeline.domain.ids import AccountKey, ThreadKey

CHANNEL: Final = "api"
ACCOUNT: Final = "main"
KEY: Final[AccountKey] = (CHANNEL, ACCOUNT)
_ID: Final = re.compile(r"([a-z][a-z0-9_-]{0,31})\.([0-9a-f]{24})")


def new_run_id(workflow: str) -> str:
    """A run id that no one can guess, such as `triage.9f2c…`: 96 random bits."""
    return f"{workflow}.{secrets.token_hex(12)}"


def run_id_of(workflow: str, *parts: str) -> str:
    """The id of the run that `parts` name: the same for the same ones."""
    digest = hashlib.sha256()
    for part in (workflow, *parts):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return f"{workflow}.{digest.hexdigest()[:24]}"


def workflow_of(run_id: str) -> str:
    """The name of the workflow of a run; empty for a text that is no run's id."""
    found = _ID.fullmatch(run_id)
    return "" if found is None else found[1]


def stop_id(run_id: str) -> str:
    """The id of the command that stops a run."""
    return f"stop:{run_id}"


def thread_of(person: str, run_id: str) -> ThreadKey:
    """The thread of a run of `person`, the name of a token."""
    return ThreadKey(channel=CHANNEL, account=ACCOUNT, chat=person, topic=run_id)
