"""What follows when nothing is ready: merges that need not wait, iterations and playbooks that are over.

A merge waits for the edges that something at work can still reach, and for no other (ours: a merge behind a
condition would wait for ever).
"""

from __future__ import annotations

from pipeline.playbooks.document import INTO_LOOP, Merge
from pipeline.playbooks.progress import Item, Progress, words_of


def settle(run: Progress) -> None:
    """Make ready what need not wait longer, and end what is over."""
    changed = True
    while changed and not run.is_over and not any(one["is"] == "ready" for one in run.work):
        changed = any(_settle_one(run, name) for name in tuple(run.plain["instances"]))


def _settle_one(run: Progress, name: str) -> bool:
    """Whether something has changed in an instance."""
    items = run.items_in(name)
    if not items:
        _finish(run, name)
        return True
    for item in items:
        if item["is"] == "looping" and not _at_work_in_body(run, item):
            item["is"] = "ready"
            return True
    for item in items:
        if item["is"] == "joining" and not _may_still_come(run, item):
            item["is"] = "ready"
            return True
    rest = [item for item in items if item["is"] not in ("joining", "looping")]
    joining = [item for item in items if item["is"] == "joining"]
    if joining and not rest:
        # Merges that wait for each other: the oldest goes first.
        joining[0]["is"] = "ready"
        return True
    return False


def _at_work_in_body(run: Progress, loop: Item) -> bool:
    body = run.book(run.instance(loop)).bodies[loop["node"]]
    return any(one["node"] in body for one in run.items_in(loop["in"]))


def _may_still_come(run: Progress, merge: Item) -> bool:
    """Whether something else at work can reach an edge into the merge that was not followed yet."""
    book, node = run.book(run.instance(merge)), merge["node"]
    assert isinstance(book.nodes[node], Merge)  # noqa: S101 - only merges join; for the type checker
    missing = [edge for edge in book.arrivals(node) if book.edges.index(edge) not in merge["arrived"]]
    for one in run.items_in(merge["in"]):
        if one is merge:
            continue
        inside = one["is"] == "looping"
        reached = book.reached_from(one["node"], inside=inside, without=node)
        for edge in missing:
            own = edge.source == one["node"] and not (inside and edge.handle == INTO_LOOP)
            if own or edge.source in reached:
                return True
    return False


def _finish(run: Progress, name: str) -> None:
    """End an instance in which nothing is at work any more: on every way, the one above it continues."""
    instance = run.plain["instances"].pop(name)
    book, failures = run.book(instance), instance["failures"]
    failed = bool(failures) and not instance["ended"]
    words = words_of(failures, book) if failed else ""
    result = instance["said"] or instance["last"]
    if not instance["above"]:
        run.plain["notes"] = [] if failed else [one["words"] for one in failures]
        run.end("failed" if failed else "completed", words)
        return
    above = run.item(instance["above"])
    run.tell("workflow_failed" if failed else "workflow_completed", within=name, content=words)
    if above is None:
        return
    if failed:
        run.fail(above, words)
    else:
        run.complete(above, result)
