"""What tier 1 examines of a proposal: its type and every text of its payload, each with what it is."""

from __future__ import annotations

from pipeline.shield.injection.findings import Kind, Part
from pipeline.shield.proposal import Proposal
from pipeline.shield.targets import COMMAND_KEYS, PATH_KEYS, strings


def parts_of(proposal: Proposal) -> tuple[Part, ...]:
    """The texts to examine."""
    texts = (Part(kind=_kind(key, text), text=text, where=key) for key, text in strings(proposal.payload))
    return (Part(kind="type", text=proposal.type, where="type"), *texts)


def _kind(key: str, text: str) -> Kind:
    if key in COMMAND_KEYS:
        return "command"
    if key in PATH_KEYS:
        return "path"
    return "url" if "://" in text else "argument"
