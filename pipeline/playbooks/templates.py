"""Fill in the places of texts: `{{trigger}}`, `{{Label.result}}` and `{{nodeId.threadId}}`."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pipeline.graph.definition.frozen_json import thaw
from pipeline.playbooks.document import Node, title

_log = logging.getLogger(__name__)

_PLACE: Final = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
_FIELDS: Final = {"result": "result", "threadId": "thread"}
TRIGGER: Final = "trigger"

Shown = Callable[[str], str]


def as_it_is(text: str) -> str:
    """The value itself."""
    return text


class Values:
    """The values of one playbook that runs: what began it, and the outputs of its nodes so far."""

    def __init__(
        self, trigger: str, nodes: Mapping[str, Node], outputs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        """`outputs` are by the id of the node."""
        self.trigger = trigger
        self._nodes = nodes
        self._outputs = outputs

    def value(self, place: str) -> str | None:
        """The value of a place; None where there is none yet."""
        if place == TRIGGER:
            return self.trigger
        name, _, wanted = place.rpartition(".")
        found = self._outputs.get(node_named(name, self._nodes) or "")
        if wanted not in _FIELDS or found is None:
            return None
        return str(found.get(_FIELDS[wanted], ""))

    def fill(self, text: str, shown: Shown = as_it_is) -> str:
        """`text` with each value in its place, once and literally: places inside a value stay. A place
        without a value stays too, and a warning is logged. `shown` writes each value."""

        def put(place: re.Match[str]) -> str:
            value = self.value(place[1])
            if value is None:
                _log.warning("a place of a playbook has no value", extra={"place": place[1]})
                return place[0]
            return shown(value)

        return _PLACE.sub(put, text)

    def fill_tree(self, tree: Any) -> Any:
        """The same for every text of a JSON value."""
        if isinstance(tree, str):
            return self.fill(tree)
        if isinstance(tree, Mapping):
            return {key: self.fill_tree(value) for key, value in tree.items()}
        return [self.fill_tree(one) for one in tree] if isinstance(tree, list | tuple) else thaw(tree)

    def scope(self, **more: Any) -> Mapping[str, Any]:
        """What an expression reads: `trigger`, and each node by its id, and by its label where no node has
        that id."""
        found: dict[str, Any] = {
            title(node): self._outputs[name] for name, node in self._nodes.items() if name in self._outputs
        }
        return {**found, **self._outputs, TRIGGER: self.trigger, **more}


def places(text: str) -> tuple[str, ...]:
    """The places in `text`, each once."""
    return tuple(dict.fromkeys(_PLACE.findall(text)))


def node_named(name: str, nodes: Mapping[str, Node]) -> str | None:
    """The id of the node with that label, or that id; the first one of several with the label."""
    labelled = next((found for found, node in nodes.items() if node.label and node.label == name), None)
    return labelled or (name if name in nodes else None)


def place_problem(place: str, nodes: Mapping[str, Node]) -> str:
    """Why a place can never have a value; empty if it can."""
    if place == TRIGGER:
        return ""
    name, _, wanted = place.rpartition(".")
    if wanted not in _FIELDS:
        return f"{{{{{place}}}}} is no place; there are trigger, Label.result and nodeId.threadId"
    return "" if node_named(name, nodes) else f"{{{{{place}}}}} names no node"
