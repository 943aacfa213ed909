"""The question to a person about one action: what will happen, why it is asked, and what was read before.

The whole payload and the action's hash follow (see `shown`). Nothing is left out: a client that shortens a
long value has to offer the whole of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pipeline.shield.action_types import ActionType
from pipeline.shield.proposal import Proposal
from pipeline.shield.shield import Judgement
from pipeline.tools.action import Action
from pipeline.tools.shown import quoted, shown

_READ_FOREIGN = "This conversation holds text from elsewhere: {sources}."
_SUSPECTED = (
    "Careful: text read before, from {sources}, looks like instructions to the assistant. Allow this only if "
    "you want it yourself."
)
_READ_OWN = "It has read your own: {sources}."
_TAKEN = "A value below is taken from {sources}."
_CARRIED = "A value below holds words from {sources}."
_WHY = "Why I ask: {reasons}."
_WHAT: Final[Mapping[ActionType, str]] = {
    "write_file": "It changes the file {target}.",
    "delete_file": "It deletes the file {target}.",
    "delete_note": "It deletes the note below.",
    "write_note": "It keeps the note below.",
    "schedule": "It changes reminders or settings of yours.",
    "repeat": "It does what is below again and again, as you, until you end it.",
    "fetch_url": "It opens a page at {target}, which learns the whole address below.",
    "search_web": "It sends the words below to the search engine.",
    "message": "It sends what is below to others.",
    "command": "It runs the command below.",
    "unknown": "It hands what is below to a tool that is not part of this program.",
}
"""What will happen, by the action's type."""
_NO_TARGET = "named below"


def asked_words(action: Action, proposal: Proposal, judgement: Judgement, preview: str = "") -> str:
    """The question's text, one line for each part. `preview` is what the arguments mean."""
    labels, provenance = judgement.labels, judgement.provenance
    what = _WHAT.get(proposal.type, "").format(target=_target(proposal))
    lines = [
        f"May I use {action.tool.name}?",
        what,
        quoted(preview)[1:-1] if preview else "",
        _WHY.format(reasons=judgement.verdict.reasoning) if judgement.verdict.reasoning else "",
        _listed(_SUSPECTED, labels.suspects),
        _listed(_READ_FOREIGN, proposal.foreign),
        _listed(_READ_OWN, labels.sources),
        _listed(_TAKEN, provenance.taken),
        _listed(_CARRIED, provenance.carried),
        shown(action.payload),
        f"SHA-256: {action.hash}",
    ]
    return "\n".join(line for line in lines if line)


def _target(proposal: Proposal) -> str:
    """The path or host, with an escape for every invisible character."""
    return quoted(proposal.target)[1:-1] if proposal.target else _NO_TARGET


def _listed(words: str, sources: tuple[str, ...]) -> str:
    return words.format(sources=", ".join(sources)) if sources else ""
