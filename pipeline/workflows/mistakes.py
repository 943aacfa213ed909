"""What is wrong in a workflow document, each with its place."""

from __future__ import annotations

from pipeline.domain.errors import GraphError
from pipeline.domain.frozen import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake."""

    what: str
    """What is wrong and what to do, as the end of a sentence."""
    node: str = ""
    """The node's id; its place in the list, such as `nodes[2]`, where it has none."""
    connection: str = ""
    """The place and the ends of a connection: `connections[1] (ask -> answer)`."""
    field: str = ""
    """The field in the node, the connection or the document: `data.conditions[0].value`."""

    def __str__(self) -> str:
        place = self.connection or (f"node {self.node}" if self.node else "")
        return ": ".join(part for part in (place, self.field, self.what) if part)


class WorkflowInvalid(GraphError):
    """A document with mistakes; `mistakes` has all of them, and the message one line for each."""

    code = "workflow_invalid"

    def __init__(self, name: str, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(f"workflow {name}: {mistake}" for mistake in mistakes))
        self.mistakes = mistakes
