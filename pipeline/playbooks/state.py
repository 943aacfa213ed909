"""The keys of the state that a playbook's nodes share, and what they read of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pipeline.domain.frozen import dataclass
from pipeline.graph.definition.decisions import State
from pipeline.graph.definition.frozen_json import thaw
from pipeline.graph.definition.reducers import Channel, append, merge
from pipeline.graph.definition.retry import RetryPolicy
from pipeline.playbooks.document import Playbook
from pipeline.playbooks.progress import Item, Progress
from pipeline.runtime.context import RunContext
from pipeline.workflows.steps import SOURCES

PLAYBOOK: Final = "playbook"
"""How far the run has come; see `progress`."""
OUTPUTS: Final = "outputs"
"""What the nodes have given, by instance and node."""
DONE: Final = "done"
"""What became of the items that the engine took up, by their number, until the run has read it."""
STARTED: Final = "started"
"""What the agent of the conversation wants the playbook to be about, once it has started it."""
ASKED_BY: Final = "asked_by"
"""The message whose turn has asked or begun to wait last. If that turn continues, nothing of it was shown."""
ONCE: Final = RetryPolicy(max_attempts=1)
CHANNELS: Final[Mapping[str, Channel]] = {OUTPUTS: merge, DONE: merge, SOURCES: append}

Labels = Mapping[tuple[str, str], str]
"""The name in the graph of each node, by the key of its playbook and its id."""


def progress_of(state: State, playbook: Playbook, context: RunContext) -> Progress:
    """The run in the state."""
    return Progress(playbook, thaw(state[PLAYBOOK]), state.get(OUTPUTS, {}), now=context.clock.now())


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaybookPlace:
    """A node of a playbook among those that a run uses."""

    playbook: Playbook
    """The first of them."""
    of: str
    """The key of the node's own."""
    node: str

    def item(self, run: Progress) -> Item:
        """The visit of the node that the engine is to take up."""
        numbers = run.plain["running"]
        return next(
            one
            for one in run.work
            if one["id"] in numbers and one["node"] == self.node and run.instance(one)["of"] == self.of
        )


def done(item: Item, status: str, **more: Any) -> dict[str, Any]:
    """The update with what became of an item: `completed`, `chosen`, `decided`, `blocked` or `failed`."""
    return {str(item["id"]): {"tries": item.get("tries", 0), "status": status, **more}}
