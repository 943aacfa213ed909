"""Take up what is ready: do what needs no model, tool or person, and choose the rest for the engine."""

from __future__ import annotations

from pipeline.playbooks.checks import MAX_DEPTH
from pipeline.playbooks.document import (
    INTO_LOOP,
    NO,
    OUT_OF_LOOP,
    YES,
    Loop,
    Merge,
    PlaybookAgent,
    PlaybookCondition,
    PlaybookToolCall,
    PlaybookWait,
    Response,
    Router,
    SubWorkflow,
    Transfer,
    Trigger,
    UserInput,
    title,
)
from pipeline.playbooks.progress import Item, Progress
from pipeline.playbooks.settling import settle

_TOGETHER = PlaybookAgent | PlaybookToolCall


def advance(run: Progress) -> None:
    """Advance until a model, a tool, a person or a time is needed, or the run is over. `running` has the
    numbers of the items that the engine has to take up: several only of agents and tool calls."""
    while True:
        item = _next_mechanical(run)
        if item is not None:
            _take(run, item)
            continue
        settle(run)
        if _next_mechanical(run) is None:
            run.plain["running"] = _chosen(run)
            return


def _next_mechanical(run: Progress) -> Item | None:
    return next((one for one in run.work if one["is"] == "ready" and _is_mechanical(run, one)), None)


def _is_mechanical(run: Progress, item: Item) -> bool:
    node = run.node(item)
    if isinstance(node, Loop):
        return _is_decided(node, item) or node.mode == "template"
    if isinstance(node, PlaybookCondition):
        return node.mode == "template"
    return not isinstance(node, PlaybookAgent | PlaybookToolCall | Router | UserInput)


def _is_decided(node: Loop, item: Item) -> bool:
    """Whether a loop ends without a question to the model."""
    return bool(item.get("lost") and not item.get("back")) or item.get("turn", 0) >= node.max_iterations


def _take(run: Progress, item: Item) -> None:  # noqa: C901 - one case for each subtype
    node = run.node(item)
    before = run.result_of(item["in"], item["from"])
    if not isinstance(node, Loop) or "turn" not in item:
        run.tell("node_started", item)
    match node:
        case Trigger():
            run.complete(item, run.instance(item)["trigger"])
        case PlaybookCondition():
            _check(run, item, node)
        case Loop():
            _iterate(run, item, node)
        case Merge():
            run.complete(item, _merged(run, item))
        case Response():
            text = run.values(item).fill(node.text) if node.text.strip() else before
            if text.strip():
                run.say(text)
            run.complete(item, text)
        case PlaybookWait():
            item |= {"is": "waiting", "due": run.now + node.seconds}
            if node.message.strip():
                run.say(run.values(item).fill(node.message))
            run.tell("node_waiting", item, due=item["due"])
        case SubWorkflow():
            _enter(run, item, node)
        case Transfer():
            _leave(run, item, node)
        case _:
            run.complete(item, before)


def _check(run: Progress, item: Item, node: PlaybookCondition) -> None:
    holds, problem = (False, "") if node.holds is None else node.holds.evaluate({}, run.values(item).scope())
    if problem:
        run.fail(item, f"The condition {title(node)} could not be checked: {problem}")
    else:
        decide(run, item, holds=holds)


def decide(run: Progress, item: Item, *, holds: bool) -> None:
    """Continue from a condition or a loop with the answer to its question."""
    node = run.node(item)
    if isinstance(node, Loop):
        _repeat(run, item, node, more=holds)
    else:
        run.complete(item, "true" if holds else "false", YES if holds else NO)


def _iterate(run: Progress, item: Item, node: Loop) -> None:
    """Begin the next iteration of a loop, or leave it."""
    if item.get("lost") and not item.get("back"):
        run.fail(item, str(item["lost"]))
        return
    scope = run.values(item).scope(iteration=item.get("turn", 0))
    holds, problem = (True, "") if node.holds is None else node.holds.evaluate({}, scope)
    if problem:
        run.fail(item, f"The loop {title(node)} could not check its condition: {problem}")
    else:
        _repeat(run, item, node, more=holds)


def _repeat(run: Progress, item: Item, node: Loop, *, more: bool) -> None:
    turn = item.get("turn", 0)
    if not more or turn >= node.max_iterations:
        last = run.result_of(item["in"], item["back"]) if item.get("back") else ""
        run.complete(item, last, OUT_OF_LOOP, iterations=turn)
        return
    instance, book = run.instance(item), run.book(run.instance(item))
    body = book.bodies[node.id]
    instance["fired"] = [merge for merge in instance["fired"] if merge not in body]
    item |= {"is": "looping", "turn": turn + 1, "back": "", "lost": ""}
    for edge in book.outgoing[node.id]:
        if edge.handle == INTO_LOOP and not run.is_over:
            run.arrive(item["in"], edge)


def _merged(run: Progress, item: Item) -> str:
    """The results of the branches that have arrived, each below the name of its last node."""
    book = run.book(run.instance(item))
    sources = dict.fromkeys(book.edges[at].source for at in item["arrived"])
    results = [(title(book.nodes[source]), run.result_of(item["in"], source)) for source in sources]
    if len(results) == 1:
        return results[0][1]
    return "\n\n".join(f"{name}:\n{result}" for name, result in results if result)


def _enter(run: Progress, item: Item, node: SubWorkflow) -> None:
    above: Item | None = item
    depth = 0
    while above is not None:
        above = run.item(run.instance(above)["above"])
        depth += 1
    if depth > MAX_DEPTH:
        run.fail(item, f"The sub-workflow {title(node)} is nested deeper than {MAX_DEPTH} levels.")
        return
    given = run.values(item).fill(node.input)
    item["is"] = "inside"
    run.start(node.workflow, given, above=item["id"])


def _leave(run: Progress, item: Item, node: Transfer) -> None:
    others = [one for one in run.work if one is not item and one["is"] != "inside"]
    if others:
        run.fail(item, f"{title(node)} cannot transfer while another branch is at work.")
        return
    run.leave_for(item, node.workflow, run.values(item).fill(node.input))


def _chosen(run: Progress) -> list[int]:
    """What comes next: agents and tool calls together, then one decision of the model, then one question to
    the person, then the wait that is over first."""
    ready = [one for one in run.work if one["is"] == "ready"]
    together: dict[tuple[str, str], Item] = {}
    for one in ready:
        if isinstance(run.node(one), _TOGETHER):
            together.setdefault((run.instance(one)["of"], one["node"]), one)
    chosen = list(together.values())
    if not chosen:
        chosen = [one for one in ready if not isinstance(run.node(one), UserInput)][:1]
    if chosen:
        for one in chosen:
            one["is"] = "running"
            one["tries"] = one.get("tries", 0) + 1
            run.tell("node_started", one)
        return [one["id"] for one in chosen]
    asking = [one for one in run.work if one["is"] == "blocked"] or ready
    waiting = sorted(
        (one for one in run.work if one["is"] == "waiting"), key=lambda one: (one["due"], one["id"])
    )
    return [one["id"] for one in (asking or waiting)[:1]]


def wake(run: Progress) -> None:
    """End the waits that are over."""
    for item in [one for one in run.work if one["is"] == "waiting" and one["due"] <= run.now]:
        run.complete(item, run.result_of(item["in"], item["from"]))


def next_due(run: Progress) -> float | None:
    """When the first of the waits is over, in Unix seconds; None without any."""
    return min((one["due"] for one in run.work if one["is"] == "waiting"), default=None)
