"""A graph run as rows of a thread's log: how each record is written down, and read back.

A record of the engine is one row of kind `step`, shortened where it says the usual; records that were made
in one turn of the event loop share a row. The records that end a
run have no row of their own: they ride in the record that shows the outcome, under `steps`. What the
records mean is the engine's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gateway.storage.ports import Record
from pipeline.graph.run.records import RawRecord

RIDING = "steps"
"""Where the last records stand in the body of the record that shows the outcome."""
TOGETHER = "records"
"""Where several records stand in one row."""
_HEAD = ("run", "graph", "entry", "given")
_NOT_RIDING = ("do", "update", "phase", "seconds")
"""What an ended run is not asked for any more: the answer stands beside it, with its time."""
_TO_THE_END = ["end"]
_COMPLETED = {"do": "end", "status": "completed", "reason": "completed"}


def to_row(record: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a record's row: a record without `do` is a step, and a head is flat."""
    body = {key: value for key, value in record.items() if key != "head"}
    if body["do"] == "step":
        del body["do"]
    return body | _flat_head(record)


def to_rows(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of the one row that holds records which were made together: a single one's own, or a list
    of them, with the head in front."""
    if len(records) == 1:
        return to_row(records[0])
    first, *others = [to_row(record) for record in records]
    keys = [key for key in _HEAD if key in first] if isinstance(first.get("run"), str) else []
    head = {key: first.pop(key) for key in keys}
    return {**head, TOGETHER: [first, *others]}


def to_riding(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records that end a run, as they ride in another record's body: what they wrote into the state is
    left out, for nobody goes on from there."""
    return [_riding(record) for record in records if record != _COMPLETED]


def from_row(body: Mapping[str, Any]) -> RawRecord:
    """The record behind a row's body; None for one that is not `to_row`'s, as those of earlier releases."""
    if not body or "next" in body:
        return None
    record = {"do": "step", **body}
    if isinstance(body.get("run"), str):
        name, _, signature = str(record.pop("graph", "")).rpartition("/")
        head = {"run": record.pop("run"), "graph": name, "signature": signature}
        record["head"] = head | {
            "entry": record.pop("entry", ""),
            "inputs": record.pop("given", {}),
        }
    return record


def from_rows(body: Mapping[str, Any]) -> list[RawRecord]:
    """The records behind `to_rows`' body; None for each that cannot be read."""
    if TOGETHER not in body:
        return [from_row(body)]
    together = body[TOGETHER]
    if not isinstance(together, list) or not together:
        return [None]
    head = {key: body[key] for key in _HEAD if key in body}
    rows = [row if isinstance(row, Mapping) else {} for row in together]
    return [from_row({**rows[0], **head}), *map(from_row, rows[1:])]


def newest_run(rows: Sequence[Record]) -> tuple[RawRecord, ...]:
    """The records of the run that the `step` rows of one message end with."""
    begins = [at for at, row in enumerate(rows) if isinstance(row.body.get("run"), str)]
    newest = rows[begins[-1] if begins else 0 :]
    return tuple(record for row in newest for record in from_rows(row.body))


def runs_of(rows: Iterable[Record]) -> dict[str, list[RawRecord]]:
    """Every run on record among the rows of a thread, by its id: for looking at, not for resuming.

    `rows` are records of all kinds, oldest first.
    """
    runs: dict[str, list[RawRecord]] = {}
    current: dict[str, str] = {}
    for row in rows:
        if row.kind == "step":
            records = from_rows(row.body)
            if records[0] is not None and "head" in records[0]:
                current[row.message_id] = records[0]["head"]["run"]
            runs.setdefault(current.get(row.message_id, ""), []).extend(records)
        elif RIDING in row.body:
            steps = _ended([_from_riding(plain) for plain in row.body[RIDING]])
            run_id = current.get(row.message_id) or _run_of(steps)
            runs.setdefault(run_id, []).extend(steps)
    runs.pop("", None)
    return runs


def _flat_head(record: Mapping[str, Any]) -> dict[str, Any]:
    head = record.get("head")
    if head is None:
        return {}
    flat = {"run": head["run"], "graph": f"{head['graph']}/{head['signature']}"}
    return flat | {
        key: value for key, value in (("entry", head["entry"]), ("given", head["inputs"])) if value
    }


def _riding(record: Mapping[str, Any]) -> dict[str, Any]:
    if record["do"] != "step":
        return to_row(record)
    body = {key: value for key, value in to_row(record).items() if key not in _NOT_RIDING} | _used(record)
    targets = list(body.pop("to", ()))
    return body if targets == _TO_THE_END else {**body, "to": targets}


def _used(record: Mapping[str, Any]) -> dict[str, Any]:
    """The tokens of a model call, prompt and answer: all of the update that is kept, for `graph trace`."""
    agent = record.get("update", {}).get("agent", {})
    tokens = [agent.get("prompt_tokens", 0), agent.get("completion_tokens", 0)]
    return {"used": tokens} if any(tokens) else {}


def _from_riding(body: Mapping[str, Any]) -> RawRecord:
    record = from_row(body)
    if record is None or record["do"] != "step":
        return record
    return {**record, "to": body.get("to", _TO_THE_END)}


def _ended(records: list[RawRecord]) -> list[RawRecord]:
    said = any(record is not None and record["do"] == "end" for record in records)
    return records if said else [*records, dict(_COMPLETED)]


def _run_of(steps: Sequence[RawRecord]) -> str:
    first = steps[0] if steps else None
    return str(first["head"]["run"]) if first is not None and "head" in first else ""
