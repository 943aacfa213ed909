"""How far a run of a playbook has come: what is at work, what each node has given, what happened.

All of it is plain data, so that it can be a part of the engine's records: a run is resumed from them. It
knows no model and no chat. Every change is made here; `moves` and `settling` decide which.

An item of `work` is a visit of a node. Its `is` is its state: `ready` to be taken up, `running` in the
engine, `waiting` for a time, `blocked` by a question for the person, `joining` branches, `looping` while an
iteration runs, `inside` while a sub-workflow runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pipeline.playbooks.document import (
    LOOP_BACK,
    Edge,
    Loop,
    Merge,
    Node,
    Playbook,
    PlaybookAgent,
    PlaybookToolCall,
    Response,
    SubWorkflow,
    title,
)
from pipeline.playbooks.templates import Values

MAX_VISITS: Final = 200
"""Visits of nodes in one run, those of sub-workflows included; a run that needs more has failed."""
ROOT: Final = ""
"""The key of the first playbook among those that a run uses."""
TOO_MANY: Final = f"It took more than {MAX_VISITS} steps and was ended."

_SAID_AT_AN_END: Final = PlaybookAgent | PlaybookToolCall | SubWorkflow | Merge | Loop
"""Whose results are said to the person where nothing follows."""

Item = dict[str, Any]
Instance = dict[str, Any]


class Progress:
    """One run."""

    def __init__(
        self, playbook: Playbook, plain: dict[str, Any], outputs: Mapping[str, Any], *, now: float
    ) -> None:
        """`plain` is changed in place; `outputs` are those on record."""
        self.playbook = playbook
        self.plain = plain
        self.known = dict(outputs)
        self.now = now
        self.outputs: dict[str, Any] = {}
        """What was added to the outputs, by instance and node."""
        self.events: list[dict[str, Any]] = []
        self.said: list[str] = []
        """What was said to the person."""

    @classmethod
    def begin(cls, playbook: Playbook, trigger: str, *, now: float) -> Progress:
        """A run that is about to begin at the trigger."""
        plain: dict[str, Any] = {"next": 1, "visits": 0, "status": "running", "failure": ""}
        plain |= {"instances": {}, "work": [], "running": [], "unsaid": [], "left": []}
        run = cls(playbook, plain, {}, now=now)
        run.start(ROOT, trigger, above=0)
        return run

    # -- reading ------------------------------------------------------------------------------

    @property
    def work(self) -> list[Item]:
        """Everything at work, oldest first."""
        found: list[Item] = self.plain["work"]
        return found

    @property
    def is_over(self) -> bool:
        """Whether the run has ended."""
        return bool(self.plain["status"] != "running")

    def item(self, number: int) -> Item | None:
        """The item of that number, if it is still at work."""
        return next((one for one in self.work if one["id"] == number), None)

    def instance(self, item: Item) -> Instance:
        """The playbook that an item belongs to, as it runs."""
        found: Instance = self.plain["instances"][item["in"]]
        return found

    def book(self, instance: Instance) -> Playbook:
        """The document of an instance."""
        return self.playbook if instance["of"] == ROOT else self.playbook.others[instance["of"]]

    def node(self, item: Item) -> Node:
        """The node of an item."""
        return self.book(self.instance(item)).nodes[item["node"]]

    def items_in(self, name: str) -> list[Item]:
        """What is at work in one instance."""
        return [one for one in self.work if one["in"] == name]

    def values(self, item: Item) -> Values:
        """The values that the texts of an item's node may name."""
        instance, name = self.instance(item), item["in"]
        prefix = f"{name}|"
        known = {**self.known, **self.outputs}
        own = {key.removeprefix(prefix): found for key, found in known.items() if key.startswith(prefix)}
        return Values(instance["trigger"], self.book(instance).nodes, own)

    def result_of(self, name: str, node: str) -> str:
        """The newest result of a node in an instance; empty without one."""
        key = f"{name}|{node}"
        found = self.outputs.get(key) or self.known.get(key) or {}
        return str(found.get("result", ""))

    # -- changing -----------------------------------------------------------------------------

    def tell(self, kind: str, item: Item | None = None, *, within: str = "", **more: Any) -> None:
        """Add an event, of an item or `within` an instance."""
        event: dict[str, Any] = {"at": self.now, "type": kind}
        if item is not None:
            event |= {"node": item["node"], "in": item["in"]}
        elif within:
            event["in"] = within
        self.events.append({**event, **more})

    def start(self, of: str, trigger: str, *, above: int) -> str:
        """Begin a playbook; the name of its instance."""
        name = str(self._number())
        instance: Instance = {"of": of, "trigger": trigger, "above": above, "ended": 0, "failures": []}
        instance |= {"last": "", "said": "", "fired": []}
        self.plain["instances"][name] = instance
        book = self.book(instance)
        self.tell("workflow_started", within=name, workflow=book.name)
        self.add(name, book.trigger.id, "")
        return name

    def add(self, name: str, node: str, source: str, **more: Any) -> Item:
        """Add a visit of a node."""
        item: Item = {"id": self._number(), "in": name, "node": node, "from": source, "is": "ready", **more}
        self.work.append(item)
        self.plain["visits"] += 1
        if self.plain["visits"] > MAX_VISITS:
            self.end("failed", TOO_MANY)
        return item

    def _number(self) -> int:
        number: int = self.plain["next"]
        self.plain["next"] = number + 1
        return number

    def arrive(self, name: str, edge: Edge) -> None:
        """Follow an edge."""
        self.tell("edge_activated", within=name, source=edge.source, target=edge.target)
        book = self.book(self.plain["instances"][name])
        here = next((one for one in self.items_in(name) if one["node"] == edge.target), None)
        node = book.nodes[edge.target]
        if isinstance(node, Merge):
            self._arrive_at_merge(name, edge, node, here)
        elif isinstance(node, Loop) and (edge.into == LOOP_BACK or here is not None):
            if here is None or here["is"] != "looping":
                self.tell("node_skipped", within=name, node=edge.target)
            else:
                here["back"] = edge.source
        else:
            self.add(name, edge.target, edge.source)

    def _arrive_at_merge(self, name: str, edge: Edge, merge: Merge, here: Item | None) -> None:
        instance = self.plain["instances"][name]
        if merge.id in instance["fired"]:
            self.tell("node_skipped", within=name, node=merge.id)
            return
        at = self.book(instance).edges.index(edge)
        if here is None:
            here = self.add(name, merge.id, edge.source, arrived=[])
            here["is"] = "joining"
        if at not in here["arrived"]:
            here["arrived"].append(at)
        if merge.strategy == "first":
            instance["fired"].append(merge.id)
            here["is"] = "ready"

    def complete(self, item: Item, result: str, handle: str = "", **more: Any) -> None:
        """End a visit with its result, and follow the edges."""
        instance, name, node = self.instance(item), item["in"], self.node(item)
        output: dict[str, Any] = {"label": title(node), "subtype": node.subtype, "result": result}
        self.outputs[f"{name}|{node.id}"] = output | {"thread": "", "at": self.now} | more
        self.tell("node_completed", item, result=result)
        instance["last"] = result
        if isinstance(node, Response):
            instance["said"] = result
        self.work.remove(item)
        edges = self.book(instance).followed(node.id, handle)
        if not edges and not any(self._loops_around(item)):
            instance["ended"] += 1
            if isinstance(node, _SAID_AT_AN_END) and not instance["above"] and result.strip():
                self.say(result)
        for edge in edges:
            if not self.is_over:
                self.arrive(name, edge)

    def fail(self, item: Item, words: str) -> None:
        """End a visit without a result: nothing follows it."""
        self.tell("node_failed", item, content=words)
        self.work.remove(item)
        loops = list(self._loops_around(item))
        for loop in loops:
            loop["lost"] = words
        if not loops:
            self.instance(item)["failures"].append({"node": item["node"], "words": words})

    def _loops_around(self, item: Item) -> Iterator[Item]:
        bodies = self.book(self.instance(item)).bodies
        for one in self.items_in(item["in"]):
            if one["is"] == "looping" and item["node"] in bodies[one["node"]]:
                yield one

    def say(self, text: str) -> None:
        """Say something to the person."""
        self.said.append(text)
        self.plain["unsaid"].append(text)

    def end(self, status: str, words: str = "") -> None:
        """End the whole run."""
        self.plain |= {"status": status, "failure": words, "work": [], "running": []}
        self.tell(f"workflow_{status}", content=words)

    def leave_for(self, item: Item, key: str, trigger: str) -> None:
        """End every playbook of the run, and begin another."""
        before, after = self.book(self.instance(item)).name, self.playbook.others[key].name
        self.tell("node_completed", item, result=trigger)
        self.tell("workflow_completed", transferredTo=after)
        self.plain |= {"work": [], "running": [], "instances": {}}
        self.plain["left"].append({"workflow": before, "transferredTo": after})
        self.start(key, trigger, above=0)


def words_of(failures: list[Mapping[str, Any]], book: Playbook) -> str:
    """What failed, as words for the person."""
    if len(failures) == 1:
        return str(failures[0]["words"])
    listed = "; ".join(f"{title(book.nodes[one['node']])}: {one['words']}" for one in failures)
    return f"All parallel branches failed: {listed}"
